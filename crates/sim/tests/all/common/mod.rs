//! A dumbbell built by hand, for tests and benchmarks of the engine alone.

use std::sync::Arc;

use aqumen_aqm::{Catalogue, Limit, Network};
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::{AqmChoice, Flow, Group, Link, LinkSettings, OwnedValue, Plan, Protocol, Traffic, Window};
use aqumen_transport::tcp::TcpConfig;
use aqumen_units::{Instant, Rate, Span};

/// Parts of a dumbbell.
#[derive(Clone, Debug)]
pub(crate) struct Dumbbell {
    pub(crate) flows: u32,
    pub(crate) rate: Rate,
    pub(crate) access_rate: Rate,
    pub(crate) buffer_pkts: u32,
    pub(crate) aqm: &'static str,
    pub(crate) values: Vec<(&'static str, f64)>,
    pub(crate) transport: TcpConfig,
    pub(crate) duration: Span,
    pub(crate) seed: u64,
}

impl Dumbbell {
    /// Experiment 1 of the ARM-PFC paper, shortened to `secs` seconds.
    pub(crate) fn exp1(aqm: &'static str, secs: u64) -> Self {
        Dumbbell {
            flows: 120,
            rate: Rate::from_bps(8_000_000),
            access_rate: Rate::from_bps(10_000_000),
            buffer_pkts: 300,
            aqm,
            values: Vec::new(),
            transport: TcpConfig {
                ecn: true,
                receive_window: 1000,
                send_overhead: Span::from_micros(500),
                ..TcpConfig::ns2()
            },
            duration: Span::from_secs(secs),
            seed: 1,
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let network = Network {
            capacity: Rate::from_bps(10_000_000),
            flows: 100.0,
            base_rtt_s: 0.2,
            target_pkts: self.buffer_pkts as f64 / 3.0,
            packet_bytes: 1000.0,
            link_rate: self.rate,
            buffer_pkts: self.buffer_pkts as f64,
        };
        let link = |name: String, from, to, rate, delay, limit, aqm: &str, record| Link {
            name: name.into(),
            from,
            to,
            delay,
            settings: Arc::new(LinkSettings {
                rates: vec![(Instant::ZERO, rate)],
                line: None,
                limit: Limit::packets(limit),
                aqm: AqmChoice {
                    name: aqm.into(),
                    values: if record {
                        self.values.iter().map(|&(name, x)| (name.into(), OwnedValue::Number(x))).collect()
                    } else {
                        Vec::new()
                    },
                    network,
                    catalogue: Catalogue::BUILT_IN,
                },
                target_pkts: record.then_some(network.target_pkts),
                record,
            }),
        };
        let middle = Span::from_millis(20);
        let mut links = vec![
            link("bottleneck".into(), 0, 1, self.rate, middle, self.buffer_pkts, self.aqm, true),
            link("bottleneck-back".into(), 1, 0, self.rate, middle, 1_000_000, "droptail", false),
        ];
        let mut nodes = vec!["left".to_string(), "right".to_string()];
        let mut flows = Vec::new();
        for k in 0..self.flows {
            let mut rng = Stream::new(self.seed, Kind::Placement, k as u64);
            let [near, far] = [0, 1].map(|_| Span::from_secs_f64(rng.between(0.035, 0.045)));
            let start = Instant::ZERO + Span::from_secs_f64(rng.between(0.0, 1.0));
            let (source, sink) = (nodes.len() as u32, nodes.len() as u32 + 1);
            nodes.extend([format!("source{k}"), format!("sink{k}")]);
            let first = links.len() as u32;
            for (name, from, to, delay) in [
                ("up", source, 0, near),
                ("down", 1, sink, far),
                ("back-up", sink, 1, far),
                ("back-down", 0, source, near),
            ] {
                links.push(link(format!("{name}{k}"), from, to, self.access_rate, delay, 100_000, "droptail", false));
            }
            flows.push(Flow {
                group: 0,
                source: 2 * k,
                destination: 2 * k + 1,
                path: [first, 0, first + 1].as_slice().into(),
                return_path: [first + 2, 1, first + 3].as_slice().into(),
                on: [(start, None)].into(),
                transfer: None,
            });
        }
        let steady = Instant::ZERO + self.duration / 10;
        let end = Instant::ZERO + self.duration;
        Plan {
            scenario: "dumbbell".into(),
            seed: self.seed,
            duration: self.duration,
            nodes: nodes.into_iter().map(Into::into).collect(),
            links,
            groups: vec![Group {
                name: "ftp".into(),
                preset: "ns2".into(),
                transport: Protocol::Tcp(self.transport),
                traffic: Traffic::Bulk,
                flows: 0..self.flows,
                class: 0,
            }],
            nominal: network,
            actual: network,
            notes: Vec::new(),
            flows,
            windows: vec![
                Window { name: "all".into(), start: Instant::ZERO, end },
                Window { name: "steady".into(), start: steady, end },
            ],
            sample_interval: Span::from_millis(100),
        }
    }
}
