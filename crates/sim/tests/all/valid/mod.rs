//! A generator of valid scenarios: whatever it writes must be accepted and run. A seed gives a scenario.

use std::fmt::Write;

use aqumen_aqm::registry;
use aqumen_aqm::{Draw, QueueKind};
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::{Files, PRESETS};

/// A scenario as text, and what of it the checks need to know.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) text: String,
    pub(crate) duration_ms: u64,
    /// When the last group begins at the earliest.
    pub(crate) last_start_ms: u64,
    /// Names of AQMs to run it with.
    pub(crate) aqms: Vec<&'static str>,
}

struct Maker {
    draws: Stream,
    duration_ms: u64,
    links: Vec<String>,
    /// Links that have a plain rate, which an event can change.
    wires: Vec<String>,
    /// Routers between which groups run: each can reach the later ones and be reached by them.
    routers: Vec<String>,
    last_start_ms: u64,
    /// Groups with hosts of their own, and where these are.
    owners: Vec<(u64, [String; 2])>,
}

/// The files that scenarios name.
const FILES: [(&str, &str); 7] = [
    ("two-rates.csv", "0,8000000\n0.5,900000\n"),
    ("outage.csv", "0,4Mbit\n0.4,0\n0.7,1500kbit\n2,20Mbit\n"),
    ("even.mahimahi", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"),
    ("bursts.mahimahi", "1\n1\n1\n1\n4\n30\n30\n31\n90\n"),
    ("timed.frames", "0 I 0 4000\n1 P 40 900\n2 B 80 1\n3 B 120 65000\n4 P 160 1200\n"),
    ("plain.frames", "1000\n200\n30000\n"),
    ("sizes.txt", "100 0.5\n3000 0.9\n200000 1\n"),
];

impl Case {
    /// The files that it may name.
    pub(crate) fn files() -> Files {
        Files::in_memory(FILES.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())))
    }

    /// The scenario of `seed`.
    pub(crate) fn new(seed: u64) -> Case {
        let mut draws = Stream::new(seed, Kind::Traffic, 0);
        let duration_ms = 400 + (draws.uniform() * 2600.0) as u64;
        let mut maker = Maker {
            draws,
            duration_ms,
            links: Vec::new(),
            wires: Vec::new(),
            routers: Vec::new(),
            last_start_ms: 0,
            owners: Vec::new(),
        };
        let mut text = format!("name = \"case{seed}\"\nduration = \"{duration_ms}ms\"\n\n");
        text += &maker.topology();
        let groups = 1 + maker.up_to(4);
        for group in 0..groups {
            text += &maker.group(group);
        }
        text += &maker.events(groups);
        text += &maker.rest();
        let aqms = (0..2).map(|_| maker.aqm()).collect();
        Case { text, duration_ms, last_start_ms: maker.last_start_ms, aqms }
    }
}

impl Maker {
    /// 0 to `n` - 1.
    fn up_to(&mut self, n: u64) -> u64 {
        (self.draws.uniform() * n as f64) as u64
    }

    fn chance(&mut self, p: f64) -> bool {
        self.draws.uniform() < p
    }

    /// One of `words`.
    fn one<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.up_to(words.len() as u64) as usize]
    }

    /// An AQM by its name.
    fn aqm(&mut self) -> &'static str {
        let profiles = registry::PROFILES.iter().map(|profile| profile.name);
        let names: Vec<&'static str> = registry::algorithms().map(|row| row.name).chain(profiles).collect();
        names[self.up_to(names.len() as u64) as usize]
    }

    /// One of a single queue: others cannot take over a queue.
    fn aqm_of_one_queue(&mut self) -> &'static str {
        let rows = registry::algorithms().filter(|row| row.kind() == QueueKind::Single);
        let names: Vec<&'static str> = rows.map(|row| row.name).collect();
        names[self.up_to(names.len() as u64) as usize]
    }

    fn any_link(&mut self) -> String {
        let process = self.up_to(self.links.len() as u64);
        self.links[process as usize].clone()
    }

    fn any_wire(&mut self) -> String {
        let process = self.up_to(self.wires.len() as u64);
        self.wires[process as usize].clone()
    }

    /// Between `low` and `high`, evenly on a logarithmic scale.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.draws.uniform())
    }

    fn rate(&mut self, low_kbit: f64, high_kbit: f64) -> String {
        format!("\"{}kbit\"", self.scale(low_kbit, high_kbit) as u64)
    }

    fn millis(&mut self, low: f64, high: f64) -> String {
        format!("\"{}us\"", (self.scale(low, high) * 1e3) as u64)
    }

    fn buffer(&mut self) -> String {
        let packets = self.scale(1.0, 300.0) as u64;
        // The largest packet there is has 1500 bytes.
        if self.chance(0.3) { format!("\"{}B\"", packets * 1500) } else { format!("\"{packets}pkt\"") }
    }

    fn loss(&mut self) -> String {
        let p = self.scale(1e-4, 0.05);
        match self.up_to(4) {
            0 => format!("{p}"),
            1 => format!("{{ bit_errors = {} }}", p * 1e-4),
            2 => format!("{{ burst = {{ to_bad = {p}, to_good = 0.3, bad = 0.8 }} }}"),
            _ => format!("{{ random = {p}, burst = {{ mean_good = \"200ms\", mean_bad = \"5ms\" }} }}"),
        }
    }

    /// A time that differs from flow to flow, `count` of them.
    fn spread(&mut self, low_ms: f64, high_ms: f64, count: u64) -> String {
        let (a, b) = (self.scale(low_ms, high_ms), self.scale(low_ms, high_ms));
        let (low, high) = (a.min(b), a.max(b));
        match self.up_to(5) {
            0 => format!("\"{low:.3}ms\""),
            1 => format!("[\"{low:.3}ms\", \"{high:.3}ms\"]"),
            2 => format!("{{ law = \"normal\", mean = \"{high:.3}ms\", std = \"{:.3}ms\" }}", 0.2 * high + 0.001),
            3 => format!("{{ law = \"exponential\", mean = \"{low:.3}ms\", max = \"{:.3}ms\" }}", high + low + 0.01),
            _ => {
                let values: Vec<String> =
                    (0..count).map(|_| format!("\"{:.3}ms\"", self.scale(low_ms, high_ms))).collect();
                format!("{{ list = [{}] }}", values.join(", "))
            }
        }
    }

    /// Medium of a link, and whether it is a plain rate.
    fn carries(&mut self) -> (String, bool) {
        let rate = self.rate(300.0, 30_000.0);
        if self.chance(0.8) {
            return (format!("rate = {rate}\n"), true);
        }
        let (share, half) = (self.scale(0.2, 1.0), self.duration_ms / 2);
        let channel = match self.up_to(8) {
            6 => return (format!("rate = {{ csv = \"{}.csv\" }}\n", self.one(&["two-rates", "outage"])), true),
            7 => return (format!("rate = {{ mahimahi = \"{}.mahimahi\" }}\n", self.one(&["even", "bursts"])), false),
            0 => {
                let period = if self.chance(0.5) { ", period = \"500ms\"" } else { "" };
                let later = self.rate(300.0, 30_000.0);
                let at = if period.is_empty() { half } else { 300 };
                return (format!("rate = {{ steps = [[\"0s\", {rate}], [\"{at}ms\", {later}]]{period} }}\n"), true);
            }
            1 => {
                let (contenders, aggregate) = (self.up_to(4), 1 + self.up_to(32));
                format!("{{ model = \"wifi\", contenders = {contenders}, aggregate = {aggregate}, spread = {share} }}")
            }
            2 => format!("{{ model = \"wimax\", share = {share} }}"),
            3 => format!("{{ model = \"umts\", share = {share} }}"),
            4 => format!("{{ model = \"lte\", share = {share}, handover_interval = \"700ms\" }}"),
            _ => format!("{{ model = \"shared\", rate = {rate}, neighbours = {} }}", 1 + self.up_to(3)),
        };
        (format!("channel = {channel}\n"), false)
    }

    /// The keys of an access link.
    fn access(&mut self, count: u64) -> String {
        let mut keys = format!("rate = {}, delay = {}", self.rate(1000.0, 100_000.0), self.spread(0.05, 20.0, count));
        if self.chance(0.2) {
            let _ = write!(keys, ", loss = {}", self.loss());
        }
        if self.chance(0.2) {
            let _ = write!(keys, ", buffer = {}", self.buffer());
        }
        keys
    }

    fn reverse(&mut self) -> String {
        let mut keys = Vec::new();
        if self.chance(0.5) {
            keys.push(format!("rate = {}", self.rate(300.0, 30_000.0)));
        }
        if self.chance(0.3) {
            keys.push(format!("buffer = {}", self.buffer()));
        }
        if self.chance(0.2) {
            keys.push(format!("delay = {}", self.millis(0.1, 50.0)));
        }
        if self.chance(0.2) {
            keys.push(format!("loss = {}", self.loss()));
        }
        if self.chance(0.3) {
            keys.push("aqm = \"test\"".into());
        } else if self.chance(0.3) {
            keys.push("record = true".into());
        }
        format!("reverse = {{ {} }}\n", keys.join(", "))
    }

    fn topology(&mut self) -> String {
        match self.up_to(4) {
            0 => self.parking_lot(),
            1 => self.graph(),
            2 => self.uplink(),
            _ => self.dumbbell(),
        }
    }

    fn dumbbell(&mut self) -> String {
        self.routers = vec!["r1".into(), "r2".into()];
        let (carries, wire) = self.carries();
        self.link("bottleneck", wire, false);
        let (delay, buffer) = (self.millis(0.05, 50.0), self.buffer());
        let mut text = format!(
            "[topology]\npreset = \"dumbbell\"\naccess = {{ {} }}\n\n[topology.bottleneck]\n{carries}delay = {delay}\nbuffer = {buffer}\n",
            self.access(1)
        );
        if self.chance(0.3) {
            let _ = writeln!(text, "loss = {}", self.loss());
        }
        if self.chance(0.5) {
            text += &self.reverse();
        }
        text
    }

    fn parking_lot(&mut self) -> String {
        let links = 2 + self.up_to(2);
        self.routers = (0..=links).map(|i| format!("r{i}")).collect();
        (1..=links).for_each(|i| self.link(&format!("link{i}"), true, false));
        let rates: Vec<String> = (0..links).map(|_| self.rate(300.0, 30_000.0)).collect();
        let (delay, buffer) = (self.millis(0.05, 30.0), self.buffer());
        let mut text = format!(
            "[topology]\npreset = \"parking-lot\"\nrate = [{}]\ndelay = {delay}\nbuffer = {buffer}\naccess = {{ {} }}\n",
            rates.join(", "),
            self.access(1)
        );
        if self.chance(0.5) {
            // One direction is under test at least.
            text += &self.reverse();
        }
        text
    }

    /// A household: hosts, the air, a line that is narrow and narrower upwards, under test both
    /// ways, and the net behind it.
    fn uplink(&mut self) -> String {
        self.routers = ["n0", "n1", "n2", "n3"].map(String::from).into();
        let mut text = "[topology]\nnodes = [\"n0\", \"n1\", \"n2\", \"n3\"]\n".to_string();
        let _ = writeln!(text, "access = {{ {} }}", self.access(1));
        self.link("air", false, false);
        let air = format!("model = \"wifi\", contenders = {}, aggregate = {}", self.up_to(3), 1 + self.up_to(16));
        let _ = write!(
            text,
            "\n[[topology.links]]\nname = \"air\"\nfrom = \"n0\"\nto = \"n1\"\nchannel = {{ {air} }}\ndelay = \"100us\"\nbuffer = {}\n",
            self.buffer()
        );
        self.link("line", true, false);
        let (up, delay, buffer) = (self.rate(200.0, 5000.0), self.millis(1.0, 20.0), self.buffer());
        let _ = write!(
            text,
            "\n[[topology.links]]\nname = \"line\"\nfrom = \"n1\"\nto = \"n2\"\nrate = {up}\ndelay = {delay}\nbuffer = {buffer}\naqm = \"test\"\n\
             reverse = {{ rate = {}, buffer = {}, aqm = \"test\" }}\n",
            self.rate(1000.0, 30_000.0),
            self.buffer()
        );
        text += &self.graph_link("net", 2, 3, false, false);
        text
    }

    /// A row of routers, with a detour now and then.
    fn graph(&mut self) -> String {
        let nodes = 2 + self.up_to(3);
        self.routers = (0..nodes).map(|i| format!("n{i}")).collect();
        let quoted: Vec<String> = self.routers.iter().map(|node| format!("\"{node}\"")).collect();
        let mut text = format!("[topology]\nnodes = [{}]\n", quoted.join(", "));
        if self.chance(0.7) {
            let _ = writeln!(text, "access = {{ {} }}", self.access(1));
        }
        // Several bottlenecks, or one.
        let all = self.chance(0.3);
        for i in 0..nodes - 1 {
            text += &self.graph_link(&format!("l{i}"), i, i + 1, all || i == 0, false);
        }
        if nodes > 2 && self.chance(0.4) {
            text += &self.graph_link("detour", 0, nodes - 1, false, true);
        }
        text
    }

    fn graph_link(&mut self, name: &str, from: u64, to: u64, under_test: bool, may_be_one_way: bool) -> String {
        let (carries, wire) = self.carries();
        let one_way = may_be_one_way && self.chance(0.5);
        self.link(name, wire, one_way);
        let (delay, buffer) = (self.millis(0.05, 30.0), self.buffer());
        let mut text = format!(
            "\n[[topology.links]]\nname = \"{name}\"\nfrom = \"n{from}\"\nto = \"n{to}\"\n{carries}delay = {delay}\nbuffer = {buffer}\n"
        );
        if under_test || self.chance(0.3) {
            text += "aqm = \"test\"\n";
        } else if self.chance(0.5) {
            text += "record = true\ntarget = \"5pkt\"\n";
        }
        if self.chance(0.2) {
            let _ = writeln!(text, "loss = {}", self.loss());
        }
        if one_way {
            text += "one_way = true\n";
        } else if self.chance(0.3) {
            text += &self.reverse();
        }
        text
    }

    fn link(&mut self, name: &str, wire: bool, one_way: bool) {
        self.links.push(name.into());
        if !one_way {
            self.links.push(format!("{name}-reverse"));
        }
        if wire {
            self.wires.push(name.into());
        }
    }

    fn group(&mut self, number: u64) -> String {
        let count = 1 + self.up_to(6);
        let preset = PRESETS[self.up_to(PRESETS.len() as u64) as usize].0;
        let transport = self.transport(preset);
        let traffic = self.traffic(preset);
        let mut text = format!(
            "\n[[flows]]\nname = \"g{number}\"\ncount = {count}\ntransport = {transport}\ntraffic = {traffic}\n"
        );
        let (a, b) = (self.up_to(self.duration_ms / 2), self.up_to(self.duration_ms / 2));
        let (low, high) = if self.chance(0.3) { (0, 0) } else { (a.min(b), a.max(b)) };
        let _ = writeln!(text, "start = [\"{low}ms\", \"{high}ms\"]");
        self.last_start_ms = self.last_start_ms.max(low);
        if self.chance(0.2) {
            let stop = high + 1 + self.up_to(self.duration_ms - high);
            let _ = writeln!(text, "stop = \"{stop}ms\"");
        }
        if self.chance(0.2) {
            let from = self.up_to(self.duration_ms - 2);
            let until = from + 1 + self.up_to(self.duration_ms - from - 1);
            let _ = writeln!(text, "off = [[\"{from}ms\", \"{until}ms\"]]");
        }
        if traffic == "\"bulk\"" && self.chance(0.3) {
            let _ = writeln!(text, "transfer = \"{}B\"", self.scale(1.0, 1e6) as u64);
        }
        text += &self.process(number, count);
        if self.chance(0.2) {
            let _ = writeln!(text, "class = {}", self.up_to(256));
        }
        text
    }

    /// Where the flows of group `number` begin and end, and what delays they have.
    fn process(&mut self, number: u64, count: u64) -> String {
        let mut text = String::new();
        if !self.owners.is_empty() && self.chance(0.25) {
            let process = self.up_to(self.owners.len() as u64) as usize;
            let (of, [from, to]) = self.owners[process].clone();
            let _ = writeln!(text, "hosts_of = \"g{of}\"\nfrom = \"{from}\"\nto = \"{to}\"");
            return text;
        }
        let hosts = if self.chance(0.2) { 1 + self.up_to(count) } else { count };
        if hosts < count {
            let _ = writeln!(text, "hosts = {hosts}");
        }
        let routers = self.routers.len() as u64;
        let ends = (self.up_to(routers), self.up_to(routers));
        let (from, to) = if ends.0 == ends.1 { (0, routers - 1) } else { ends };
        let [from, to] = [from, to].map(|router| self.routers[router as usize].clone());
        let _ = writeln!(text, "from = \"{from}\"\nto = \"{to}\"");
        self.owners.push((number, [from, to]));
        // Groups of graphs have links of their own, so that a time can be added to them.
        if self.routers[0] == "n0" || self.chance(0.3) {
            let _ = writeln!(text, "access = {{ {} }}", self.access(hosts));
        }
        if self.chance(0.2) {
            let _ = writeln!(text, "extra_rtt = {}", self.spread(0.01, 100.0, hosts));
        } else if self.chance(0.2) {
            // More than any way there is: three links of 30 ms and an access of 40 ms, there and back.
            let _ = writeln!(text, "rtt = {{ list = [\"{}ms\"] }}", 1000 + self.up_to(1000));
        }
        text
    }

    fn transport(&mut self, preset: &str) -> String {
        let mut keys = vec![format!("preset = \"{preset}\"")];
        let tcp = !["udp", "rtp", "rtp-tfrc", "rtp-nada", "sctp", "sctp-ns2"].contains(&preset);
        // DCTCP and Prague require ECN.
        if !["udp", "dctcp", "prague"].contains(&preset) && self.chance(0.4) {
            keys.push(format!("ecn = {}", self.chance(0.5)));
        }
        if self.chance(0.3) {
            keys.push(format!("packet = \"{}B\"", 200 + self.up_to(1301)));
        }
        if tcp {
            // BBR requires SACK.
            if !preset.ends_with("bbr") && self.chance(0.3) {
                keys.push(format!("variant = \"{}\"", self.one(&["reno", "newreno", "sack"])));
            }
            if self.chance(0.3) {
                keys.push(format!("receive_window = \"{}pkt\"", self.scale(1.0, 500.0) as u64));
            }
            if self.chance(0.2) {
                keys.push(format!("delayed_ack = \"{}\"", self.one(&["none", "1ms", "100ms"])));
            }
            if self.chance(0.1) {
                keys.push("send_overhead = \"500us\"".into());
            }
            if self.chance(0.1) {
                keys.push(format!("syn = {}", self.chance(0.5)));
            }
        }
        format!("{{ {} }}", keys.join(", "))
    }

    fn traffic(&mut self, preset: &str) -> String {
        if preset.starts_with("rtp") {
            // The sender is a source by itself.
            return "\"bulk\"".into();
        }
        let rate = self.rate(30.0, 3000.0);
        let size = match self.up_to(5) {
            4 => "{ law = \"empirical\", file = \"sizes.txt\" }".into(),
            0 => format!("\"{}B\"", self.scale(1.0, 1e5) as u64),
            1 => format!("{{ law = \"exponential\", mean = \"{}B\" }}", self.scale(10.0, 1e5) as u64),
            2 => format!("{{ law = \"pareto\", mean = \"{}B\", shape = 1.3 }}", self.scale(10.0, 1e5) as u64),
            _ => format!("{{ law = \"uniform\", min = \"1B\", max = \"{}B\" }}", self.scale(10.0, 1e5) as u64),
        };
        let packet = 1 + self.up_to(1400);
        let pick = if preset == "udp" { 2 + self.up_to(7) } else { self.up_to(13) };
        match pick {
            0 => format!("{{ kind = \"transfers\", size = {size}, rate = \"{}/s\" }}", self.scale(0.5, 50.0)),
            1 => format!("{{ kind = \"transfers\", size = {size}, think = \"{}ms\" }}", 1 + self.up_to(500)),
            2 => format!("{{ kind = \"cbr\", rate = {rate}, packet = \"{packet}B\" }}"),
            3 => format!("{{ kind = \"poisson\", rate = \"{}pkt/s\" }}", self.scale(1.0, 500.0)),
            4 => {
                let law = self.one(&["exponential", "pareto"]);
                let shape = if law == "pareto" { ", shape = 1.5" } else { "" };
                format!(
                    "{{ kind = \"on-off\", rate = {rate}, packet = \"{packet}B\", on = {{ law = \"{law}\", mean = \"300ms\"{shape} }}, \
                     off = {{ law = \"exponential\", mean = \"200ms\" }} }}"
                )
            }
            5 => format!("{{ kind = \"self-similar\", rate = {rate}, sources = {} }}", 1 + self.up_to(20)),
            6 => format!("{{ kind = \"voip\", codec = \"{}\" }}", self.one(&["g711", "g729", "gsm"])),
            7 => "{ kind = \"mmpp\", preset = \"paper8\" }".into(),
            8 => {
                let (file, more) = if self.chance(0.5) { ("timed", "") } else { ("plain", ", fps = 25") };
                let scaled = if self.chance(0.5) { format!(", rate = {rate}") } else { String::new() };
                let repeat = self.chance(0.7);
                format!("{{ kind = \"video\", file = \"{file}.frames\"{more}{scaled}, repeat = {repeat} }}")
            }
            9 => {
                let (connections, connection) = (1 + self.up_to(4), self.one(&["object", "page", "session"]));
                format!(
                    "{{ kind = \"web\", reading = \"100ms\", connections = {connections}, connection = \"{connection}\" }}"
                )
            }
            _ => "\"bulk\"".into(),
        }
    }

    fn events(&mut self, groups: u64) -> String {
        let mut text = String::new();
        let mut moments: Vec<u64> = (0..self.up_to(4)).map(|_| 1 + self.up_to(self.duration_ms - 1)).collect();
        moments.sort_unstable();
        moments.dedup();
        // Links that are down, groups that have stopped.
        let (mut down, mut stopped): (Vec<String>, Vec<u64>) = (Vec::new(), Vec::new());
        for at in moments {
            let link = self.any_link();
            let what = match self.up_to(8) {
                5 => format!("aqm = \"{}\"\nlink = \"{link}\"", self.aqm_of_one_queue()),
                6 => format!("aqm = {{ threshold = {} }}\nlink = \"{link}\"", self.scale(0.2, 1.0)),
                0 if !self.wires.is_empty() => {
                    let wire = self.any_wire();
                    format!("capacity = {}\nlink = \"{wire}\"", self.rate(300.0, 30_000.0))
                }
                1 => format!("delay = {}\nlink = \"{link}\"", self.millis(0.05, 50.0)),
                2 => format!("loss = {}\nlink = \"{link}\"", self.loss()),
                3 => {
                    let state = match down.iter().position(|name| *name == link) {
                        Some(process) => {
                            down.remove(process);
                            "up"
                        }
                        None => {
                            down.push(link.clone());
                            "down"
                        }
                    };
                    format!("state = \"{state}\"\nlink = \"{link}\"")
                }
                4 => {
                    let group = self.up_to(groups);
                    match stopped.iter().position(|number| *number == group) {
                        Some(process) => {
                            stopped.remove(process);
                            format!("resume = \"g{group}\"")
                        }
                        None => {
                            stopped.push(group);
                            format!("stop = \"g{group}\"")
                        }
                    }
                }
                _ => continue,
            };
            let _ = write!(text, "\n[[events]]\nat = \"{at}ms\"\nname = \"at-{at}\"\n{what}\n");
        }
        text
    }

    fn rest(&mut self) -> String {
        let mut text = format!("\n[record]\ninterval = \"{}ms\"\n", 1 + self.up_to(100));
        if self.chance(0.3) {
            let link = self.any_link();
            let _ = writeln!(text, "links = [\"{link}\"]");
        }
        if self.chance(0.3) {
            let (a, b) = (self.up_to(self.duration_ms), self.up_to(self.duration_ms));
            let _ = writeln!(text, "\n[windows]\nmiddle = [\"{}ms\", \"{}ms\"]", a.min(b), a.max(b).max(a.min(b) + 1));
        }
        text
    }
}
