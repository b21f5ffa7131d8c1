//! CPU time of the packet engine per packet that crosses the bottleneck, over the number of flows.

#[path = "../tests/common/mod.rs"]
mod common;

use aqumen_units::{Rate, Span};
use common::Dumbbell;

fn main() {
    let cases = [
        (120, 8_000_000, 1_000_000),
        (121, 8_000_000, 100_000),
        (1_000, 622_000_000, 10_000),
        (10_000, 10_000_000_000, 2_000),
        (100_000, 10_000_000_000, 5_000),
    ];
    println!("{:>8} {:>12} {:>10} {:>8} {:>10}", "flows", "packets", "cpu_s", "ns/pkt", "events/pkt");
    let only = std::env::args().skip(1).find_map(|arg| arg.parse::<u32>().ok());
    for (flows, bps, millis) in cases {
        if only.is_some_and(|only| only != flows) {
            continue;
        }
        let mut dumbbell = Dumbbell::exp1("pi", 1);
        dumbbell.flows = flows;
        dumbbell.rate = Rate::from_bps(bps);
        dumbbell.access_rate = Rate::from_bps((bps / flows as u64 * 100).max(10_000_000));
        dumbbell.duration = Span::from_millis(millis);
        dumbbell.buffer_pkts = (bps / 8_000 * 3 / 10).min(1_000_000) as u32;
        dumbbell.transport.send_overhead = Rate::from_bps(bps).time_for(aqumen_units::Bytes(500));
        let plan = dumbbell.plan();
        let result = aqumen_sim::run(&plan, aqumen_sim::Options::default(), &mut |_| true).unwrap();
        // What it costs to set the network up is not the packets' doing: a run of a microsecond tells it.
        dumbbell.duration = Span::from_micros(1);
        let setup =
            aqumen_sim::run(&dumbbell.plan(), aqumen_sim::Options::default(), &mut |_| true).unwrap().cost.cpu_s;
        let cpu_s = result.cost.cpu_s - setup;
        let all = &result.links["bottleneck"]["all"];
        println!(
            "{flows:>8} {:>12} {:>10.3} {:>8.1} {:>10.2}  util {:.4} queue {:.1} p {:?}",
            all.departures_pkts,
            cpu_s,
            cpu_s * 1e9 / all.departures_pkts as f64,
            result.cost.events as f64 / all.departures_pkts as f64,
            all.utilization.unwrap(),
            all.queue_mean_pkts,
            all.mark_ratio,
        );
    }
}
