//! One file, many cells: variants, sweeps and their ids.

use crate::common;

use aqumen_scenario::Scenario;
use common::DUMBBELL;

const SWEEP: &str = r#"
[variants]
drops = { "flows.*.transport.ecn" = false, "bottleneck.buffer" = "50pkt" }
long = { duration = "200s" }

[sweep.n]
label = "n{}"
set = { "flows.ftp.count" = { from = 50, to = 200, step = 50 } }

[sweep.rtt]
set = { "flows.ftp.rtt" = { from = "100ms", to = "400ms", points = 3, log = true }, "bottleneck.delay" = ["1ms", "2ms", "3ms"] }
"#;

fn sweep() -> Scenario {
    Scenario::parse(&format!("{DUMBBELL}{SWEEP}"), "t.toml").expect("it is a scenario")
}

fn refusal(more: &str) -> String {
    Scenario::parse(&format!("{DUMBBELL}{more}"), "t.toml").expect_err("refused").to_string()
}

#[test]
fn axes_are_crossed_and_keys_of_one_axis_change_together() {
    let expected = ["100ms", "200ms", "400ms"];
    let ids: Vec<String> =
        [50, 100, 150, 200].iter().flat_map(|n| expected.iter().map(move |rtt| format!("n{n},{rtt}"))).collect();
    assert_eq!(sweep().cells(), ids);
    let cell = sweep().cell("n150,200ms").expect("a cell");
    let same = Scenario::parse(DUMBBELL, "t.toml").expect("a scenario").with_all(&[
        ("name", "test-n150-200ms"),
        ("flows.ftp.count", "150"),
        ("flows.ftp.rtt", "200ms"),
        ("bottleneck.delay", "2ms"),
    ]);
    assert_eq!(cell.to_toml(), same.expect("a scenario").to_toml());
}

#[test]
fn an_id_may_name_its_parts_in_any_order_and_leave_axes_as_they_are() {
    let one = sweep().cell("drops, n50").expect("a cell");
    assert_eq!(one.to_toml(), sweep().cell("n50,drops").expect("the same").to_toml());
    assert_eq!(one.spec().name.0, "test-n50-drops");
    assert_eq!(one.spec().flows[0].count, 50);
    // The round trip is that of the file.
    assert_eq!(one.spec().flows[0].rtt, None);
    assert!(one.cells().is_empty());
}

#[test]
fn a_star_reaches_every_entry_of_a_list() {
    let text = format!("{DUMBBELL}[[flows]]\nname = \"web\"\ntransport = {{ preset = \"ns2\", ecn = true }}\n");
    let off = Scenario::parse(&text, "t.toml").expect("a scenario").with("flows.*.transport.ecn", "false");
    let off = off.expect("both groups take it").to_toml();
    assert!(!off.contains("ecn = true"), "{off}");
}

#[test]
fn a_sweep_reads_back_as_written() {
    let again = Scenario::parse(&sweep().to_toml(), "t.toml").expect("it reads back");
    assert_eq!(again.spec(), sweep().spec());
}

#[test]
fn unknown_ids_are_refused_in_one_line() {
    let message = |id: &str| sweep().cell(id).expect_err("refused").to_string();
    assert_eq!(
        message("n51"),
        "t.toml: cell = \"n51\": no point or variant \"n51\"; did you mean n50? known: n50, n100, n150, n200, 100ms, 200ms, \
         400ms, drops, long"
    );
    assert_eq!(message("n50,n100"), "t.toml: cell = \"n50,n100\": n50, n100 are all on the axis \"n\": name one");
    assert!(message("").contains("no point or variant"), "{}", message(""));
}

#[test]
fn invalid_sweeps_are_refused_with_their_line() {
    assert_eq!(
        refusal("[sweep.n]\nset = { \"flows.ftp.count\" = [1, 2], duration = [\"10s\"] }\n"),
        "t.toml:23: sweep.n.set.duration = [\"10s\"]: has 1 values, flows.ftp.count has 2; keys of one axis need the same number"
    );
    assert_eq!(
        refusal("[sweep.n]\nset = { \"flows.ftp.count\" = { from = 1, to = 9, step = -1 } }\n"),
        "t.toml:23: sweep.n.set.flows.ftp.count: a range needs either `step`, leading from `from` to `to`, or `points`, 2 or \
         more; `log` goes with points and ends above 0"
    );
    assert_eq!(
        refusal("[sweep.n]\nset = { \"flows.ftp.rtt\" = { from = \"1ms\", to = \"1s\", points = 3 } }\n"),
        "t.toml:23: sweep.n.set.flows.ftp.rtt: `from`, `to` and `step` must be in one unit"
    );
    assert_eq!(
        refusal("[sweep.a]\nset = { \"flows.ftp.count\" = [1, 2] }\n[sweep.b]\nset = { \"nominal.flows\" = [2, 3] }\n"),
        "t.toml:24: sweep.b: the label \"2\" is ambiguous; give distinct labels, such as label = \"b{}\""
    );
    assert!(refusal("[sweep.n]\nvalues = [1]\n").contains("unknown key"));
    // The values of a cell are checked as those of the file.
    let impossible = format!("{DUMBBELL}[variants]\nnone = {{ \"bottleneck.delay\" = \"-1s\" }}\n");
    let message =
        Scenario::parse(&impossible, "t.toml").expect("a scenario").cell("none").expect_err("refused").to_string();
    assert!(message.starts_with("t.toml: topology.bottleneck.delay = \"-1s\": "), "{message}");
}
