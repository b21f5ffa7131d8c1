//! Classic and modern AQMs in the packet engine: what each is known to do to a network of TCP flows.

mod common;

use aqumen_result::{LinkMetrics, RunResult};
use aqumen_sim::{Options, run};
use aqumen_units::Rate;
use common::Dumbbell;

const NAMES: [&str; 9] = ["ared", "ared-feng", "rem", "avq", "blue", "codel", "pie", "pi2", "cobalt"];

fn answer(dumbbell: &Dumbbell) -> RunResult {
    run(&dumbbell.plan(), Options::default(), &mut |_| true).unwrap()
}

fn steady(dumbbell: &Dumbbell) -> LinkMetrics {
    answer(dumbbell).links["bottleneck"]["steady"].clone()
}

/// A link that few flows fill with large windows: 20 flows, 40 Mbit/s, a round trip of 0.2 s, so 50 packets each.
fn large_windows(aqm: &'static str) -> Dumbbell {
    Dumbbell {
        flows: 20,
        rate: Rate::from_bps(40_000_000),
        access_rate: Rate::from_bps(100_000_000),
        buffer_pkts: 1500,
        ..Dumbbell::exp1(aqm, 60)
    }
}

#[test]
fn print() {
    for name in NAMES {
        for (which, dumbbell) in [("exp1", Dumbbell::exp1(name, 60)), ("large", large_windows(name))] {
            let link = steady(&dumbbell);
            println!(
                "{name:10} {which:6} util {:.4} q {:6.1} sd {:6.1} p50 {:7.4} mean {:7.4} mark {:.4} early {:.4} over {:.4}",
                link.utilization.unwrap(),
                link.queue_mean_pkts,
                link.queue_std_pkts,
                link.sojourn_p50_s.unwrap(),
                link.sojourn_mean_s.unwrap(),
                link.mark_ratio.unwrap(),
                link.early_drop_ratio.unwrap(),
                link.overflow_drop_ratio.unwrap(),
            );
        }
    }
}
