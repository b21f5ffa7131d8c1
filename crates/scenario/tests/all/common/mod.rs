//! A scenario that uses every table, and ways to change it.

use aqumen_scenario::Scenario;

/// A dumbbell.
pub(crate) const DUMBBELL: &str = r#"name = "test"
duration = "100s"
aqm = "pi-x1000"

[topology]
preset = "dumbbell"

[topology.bottleneck]
rate = "8Mbit"
delay = "20ms"
buffer = "300pkt"

[topology.access]
rate = "10Mbit"
delay = ["35ms", "45ms"]

[[flows]]
name = "ftp"
count = 4
start = ["0s", "1s"]
transport = "ns2"
"#;

/// A line of three routers with two links under test, and cross traffic that has no access links.
pub(crate) const GRAPH: &str = r#"name = "line"
title = "Two bottlenecks"
duration = "60s"

[topology]
nodes = ["a", "b", "c"]

[[topology.links]]
name = "first"
from = "a"
to = "b"
rate = "30Mbit"
delay = "10ms"
buffer = "200pkt"
aqm = "test"

[[topology.links]]
name = "second"
from = "b"
to = "c"
rate = "15Mbit"
delay = "10ms"
buffer = "300kB"
aqm = "test"
target = "50pkt"

[topology.links.reverse]
rate = "1Mbit"
aqm = "pi:target=20pkt"
record = true
target = "20pkt"

[[flows]]
name = "through"
count = 3
from = "a"
to = "c"
stop = "50s"
off = [["10s", "20s"], ["30s", "35s"]]
access = { rate = "100Mbit", delay = "5ms", buffer = "1000pkt" }
extra_rtt = ["0ms", "40ms"]
transport = { preset = "modern", packet = "1000B", delayed_ack = "none" }

[[flows]]
name = "cross"
from = "b"
to = "c"
transfer = "1MB"
transport = "ns2"

[[events]]
at = "40s"
link = "second"
capacity = "6Mbit"

[[events]]
at = "45s"
name = "fewer"
stop = "through"
count = 2

[windows]
steady = "15s"
middle = ["20s", "30s"]

[record]
links = ["first-reverse"]
interval = "50ms"

[nominal]
flows = 10
target = "70pkt"

[aqms.slow]
algorithm = "pi-x1000"
frequency = "50Hz"

[aqms.slower]
algorithm = "slow"
frequency = "10Hz"
ecn = false
"#;

/// Three links in a row, with flows over all of them at listed round trips, and cross traffic over the middle one.
pub(crate) const PARKING_LOT: &str = r#"name = "row"
duration = "60s"

[topology]
preset = "parking-lot"
rate = ["30Mbit", "15Mbit", "30Mbit"]
delay = "10ms"
buffer = ["100pkt", "200pkt", "300pkt"]
reverse = { buffer = "50pkt" }
access = { rate = "1Gbit", delay = "1ms" }

[[flows]]
name = "through"
count = 4
start = { law = "exponential", mean = "1s", max = "5s" }
rtt = { list = ["100ms", "200ms"] }
transport = "ns2"

[[flows]]
name = "cross"
count = 3
from = "r1"
to = "r2"
extra_rtt = { law = "normal", mean = "40ms", std = "10ms" }
transport = "ns2"

[[events]]
at = "30s"
link = "link2"
capacity = "6Mbit"
"#;

/// `text` with `old`, which it holds once, replaced by `new`.
pub(crate) fn with(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old:?} must stand once in the scenario");
    text.replace(old, new)
}

/// The error message of `text`, which is one line.
pub(crate) fn error(text: &str) -> String {
    let message = Scenario::parse(text, "t.toml").expect_err("the scenario is wrong").to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// Reads a valid scenario.
pub(crate) fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
}
