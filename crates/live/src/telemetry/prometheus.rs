//! Status in Prometheus' text format.

use std::fmt::Write;

use super::Status;

/// Metric: name, kind, help and value.
type Metric = (&'static str, &'static str, &'static str, fn(&Status) -> f64);

const METRICS: [Metric; 18] = [
    ("backlog_bytes", "gauge", "backlog in bytes", |s| s.now.backlog_bytes.into()),
    ("backlog_packets", "gauge", "backlog in mean packets", |s| s.now.backlog_pkts),
    ("sojourn_seconds", "gauge", "estimated queueing delay", |s| s.now.sojourn_s),
    ("target_seconds", "gauge", "target delay", |s| s.target_s),
    ("probability", "gauge", "probability of a mark or drop", |s| s.now.probability),
    ("rate_bits_per_second", "gauge", "departure rate", |s| s.now.rate_bps),
    ("link_bits_per_second", "gauge", "departure rate while backlogged", |s| s.now.link_bps),
    ("reading_age_seconds", "gauge", "age of the last reading", |s| s.now.age_s),
    ("regulating", "gauge", "1 while the AQM regulates", |s| f64::from(u8::from(s.regulating))),
    ("warnings", "gauge", "active warnings", |s| s.warnings.len() as f64),
    ("arrived_packets_total", "counter", "packets that arrived", |s| s.totals.arrived_pkts as f64),
    ("departed_bytes_total", "counter", "bytes that left", |s| s.totals.departed_bytes as f64),
    ("marked_packets_total", "counter", "packets marked CE", |s| s.totals.marked_pkts as f64),
    ("early_dropped_packets_total", "counter", "packets dropped by the AQM", |s| s.totals.early_dropped_pkts as f64),
    ("overflow_dropped_packets_total", "counter", "packets dropped because the buffer was full", |s| {
        s.totals.overflow_dropped_pkts as f64
    }),
    ("spared_packets_total", "counter", "selected packets that are exempt", |s| s.totals.spared_pkts as f64),
    ("unregulated_packets_total", "counter", "selected packets that passed after the order had expired", |s| {
        s.totals.unregulated_pkts as f64
    }),
    ("missed_steps_total", "counter", "late steps of the AQM", |s| s.totals.missed_steps as f64),
];

/// Metrics of `status`, in Prometheus' format.
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
    fn the_dashboard_uses_existing_metrics() {
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
