//! CPU time of the packet engine per packet that crosses the bottleneck, over the number of flows.

#[path = "../tests/common/mod.rs"]
mod common;

use aqumen_units::{Rate, Span};
use common::Dumbbell;

fn main() {
    let cases = [
        (120, 8_000_000, 100_000),
        (1_000, 622_000_000, 10_000),
        (10_000, 10_000_000_000, 2_000),
        (100_000, 10_000_000_000, 2_000),
    ];
    println!("{:>8} {:>12} {:>10} {:>8} {:>10}", "flows", "packets", "cpu_s", "ns/pkt", "events/pkt");
    for (flows, bps, millis) in cases {
        let mut dumbbell = Dumbbell::exp1("pi", 1);
        dumbbell.flows = flows;
        dumbbell.rate = Rate::from_bps(bps);
        dumbbell.access_rate = Rate::from_bps((bps / flows as u64 * 100).max(10_000_000));
        dumbbell.duration = Span::from_millis(millis);
        dumbbell.buffer_pkts = (bps / 8_000 * 3 / 10).min(1_000_000) as u32;
        dumbbell.transport.send_overhead = Rate::from_bps(bps).time_for(aqumen_units::Bytes(500));
        let plan = dumbbell.plan();
        let result = aqumen_sim::run(&plan, aqumen_sim::Options::default(), &mut |_| true).unwrap();
        let all = &result.links["bottleneck"]["all"];
        println!(
            "{flows:>8} {:>12} {:>10.3} {:>8.1} {:>10.2}  util {:.4} queue {:.1} p {:?}",
            all.departures_pkts,
            result.cost.cpu_s,
            result.cost.cpu_s * 1e9 / all.departures_pkts as f64,
            result.cost.events as f64 / all.departures_pkts as f64,
            all.utilization.unwrap(),
            all.queue_mean_pkts,
            all.mark_ratio,
        );
    }
}
