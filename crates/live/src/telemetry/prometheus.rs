//! The status in Prometheus' text format.

use std::fmt::Write;

use super::Status;

/// One metric: its name, kind, help and value.
type Metric = (&'static str, &'static str, &'static str, fn(&Status) -> f64);

const METRICS: [Metric; 18] = [
    ("backlog_bytes", "gauge", "bytes that wait", |s| s.now.backlog_bytes.into()),
    ("backlog_packets", "gauge", "the same in mean packets", |s| s.now.backlog_pkts),
    ("sojourn_seconds", "gauge", "estimated time in the queue", |s| s.now.sojourn_s),
    ("target_seconds", "gauge", "the time in the queue that is aimed at", |s| s.target_s),
    ("probability", "gauge", "probability of a mark or drop", |s| s.now.probability),
    ("rate_bits_per_second", "gauge", "what leaves", |s| s.now.rate_bps),
    ("link_bits_per_second", "gauge", "the rate at which a backlog leaves", |s| s.now.link_bps),
    ("reading_age_seconds", "gauge", "age of the last reading", |s| s.now.age_s),
    ("regulating", "gauge", "1 while an order is in force", |s| f64::from(u8::from(s.regulating))),
    ("warnings", "gauge", "warnings that hold", |s| s.warnings.len() as f64),
    ("arrived_packets_total", "counter", "packets that arrived", |s| s.totals.arrived_pkts as f64),
    ("departed_bytes_total", "counter", "bytes that left", |s| s.totals.departed_bytes as f64),
    ("marked_packets_total", "counter", "packets marked CE", |s| s.totals.marked_pkts as f64),
    ("early_dropped_packets_total", "counter", "packets dropped by the AQM", |s| s.totals.early_dropped_pkts as f64),
    ("overflow_dropped_packets_total", "counter", "packets that found no room", |s| {
        s.totals.overflow_dropped_pkts as f64
    }),
    ("spared_packets_total", "counter", "packets chosen and passed all the same", |s| s.totals.spared_pkts as f64),
    ("unregulated_packets_total", "counter", "chosen packets that passed, for no order was in force", |s| {
        s.totals.unregulated_pkts as f64
    }),
    ("missed_steps_total", "counter", "steps of the AQM that came too late", |s| s.totals.missed_steps as f64),
];

/// The whole page.
pub(crate) fn text(status: &Status) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    let labels = format!("device=\"{}\",aqm=\"{}\"", escaped(&status.device), escaped(&status.aqm));
    let mut text = String::new();
    for (name, kind, help, value) in METRICS {
        let _ = write!(text, "# HELP aqumen_{name} {help}\n# TYPE aqumen_{name} {kind}\n");
        let _ = writeln!(text, "aqumen_{name}{{{labels}}} {}", value(status));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_help_type_and_labels() {
        let mut status = Status { device: "eth\"0".into(), aqm: "pi".into(), ..Status::default() };
        status.now.sojourn_s = 0.005;
        let text = text(&status);
        assert!(text.contains(
            "# TYPE aqumen_sojourn_seconds gauge\naqumen_sojourn_seconds{device=\"eth\\\"0\",aqm=\"pi\"} 0.005\n"
        ));
        assert_eq!(text.lines().count(), 3 * METRICS.len());
        assert!(METRICS.iter().all(|(name, kind, ..)| name.ends_with("_total") == (*kind == "counter")));
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_there_are() {
        let dashboard = include_str!("../../dist/grafana.json");
        let known: Vec<&str> = METRICS.iter().map(|(name, ..)| *name).collect();
        let mut asked = 0;
        for rest in dashboard.split("aqumen_").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert!(known.contains(&name.as_str()), "{name}");
            asked += 1;
        }
        assert!(asked >= 8);
        serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
    }
}
