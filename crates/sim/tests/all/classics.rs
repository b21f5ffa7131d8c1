//! Classic and modern AQMs in the packet engine: what each is known to do to a network of TCP flows.

use crate::common;

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

fn sojourn_p50_ms(link: &LinkMetrics) -> f64 {
    link.sojourn_p50_s.unwrap() * 1e3
}

#[test]
fn each_keeps_the_link_of_experiment_1_busy_and_the_queue_off_the_limit() {
    for name in NAMES {
        let link = steady(&Dumbbell::exp1(name, 60));
        assert!(link.utilization.unwrap() > 0.85, "{name}: {link:?}");
        // 300 is the limit. BLUE is known for filling it: overflow is what drives it.
        let most = if name == "blue" { 290.0 } else { 200.0 };
        assert!(link.queue_mean_pkts < most, "{name}: {link:?}");
        assert!(link.overflow_drop_ratio.unwrap() < 0.003, "{name}: {link:?}");
        assert!(link.mark_ratio.unwrap() + link.early_drop_ratio.unwrap() > 0.04, "{name}: {link:?}");
    }
}

#[test]
fn ared_holds_its_target_at_a_load_that_red_misses() {
    // Target 100. 120 flows need p near 0.13; RED's curve has that beyond max_th.
    let [ared, red] = ["ared", "red"].map(|name| steady(&Dumbbell::exp1(name, 60)).queue_mean_pkts);
    assert!((ared - 100.0).abs() < 15.0, "{ared}");
    assert!(red > 130.0, "{red}");
}

#[test]
fn the_delay_controllers_hold_their_delays_at_a_heavy_load() {
    // Targets 15 and 20 ms; the time average of a delay that swings about its target stays within a fifth of it.
    for (name, target_ms) in [("pie", 15.0), ("pi2", 20.0)] {
        let mean_ms = steady(&Dumbbell::exp1(name, 60)).sojourn_mean_s.unwrap() * 1e3;
        assert!((mean_ms / target_ms - 1.0).abs() < 0.2, "{name}: {mean_ms} ms");
    }
}

#[test]
fn pie_drops_what_it_could_mark_at_a_heavy_load_and_pi2_marks() {
    let [pie, pi2] = ["pie", "pi2"].map(|name| steady(&Dumbbell::exp1(name, 60)));
    // The load needs more than PIE's mark_p of 0.1.
    assert!(pie.early_drop_ratio.unwrap() > 0.1 && pie.mark_ratio.unwrap() < 0.01, "{pie:?}");
    assert!(pi2.mark_ratio.unwrap() > 0.1 && pi2.early_drop_ratio.unwrap() < 0.01, "{pi2:?}");
}

#[test]
fn codel_holds_its_target_with_large_windows_and_yields_to_a_heavy_load() {
    let large = sojourn_p50_ms(&steady(&large_windows("codel")));
    assert!((2.5..7.5).contains(&large), "{large} ms");
    // 120 flows with windows of two packets: the schedule of a single queue cannot reach each of them often enough.
    let heavy = sojourn_p50_ms(&steady(&Dumbbell::exp1("codel", 60)));
    assert!(heavy > 25.0, "{heavy} ms");
}

#[test]
fn cobalt_is_stricter_than_codel_and_pays_with_utilisation() {
    for dumbbell in [Dumbbell::exp1, |name, _| large_windows(name)] {
        let [codel, cobalt] = ["codel", "cobalt"].map(|name| steady(&dumbbell(name, 60)));
        assert!(cobalt.sojourn_mean_s < codel.sojourn_mean_s, "{cobalt:?}, {codel:?}");
        assert!(cobalt.utilization < codel.utilization, "{cobalt:?}, {codel:?}");
    }
}

#[test]
fn avq_keeps_the_load_near_the_utilisation_that_it_is_asked_for() {
    let mut dumbbell = Dumbbell::exp1("avq", 60);
    let high = steady(&dumbbell);
    dumbbell.values = vec![("gamma", 0.9)];
    let low = steady(&dumbbell);
    assert!((high.utilization.unwrap() - 0.98).abs() < 0.015, "{high:?}");
    assert!((low.utilization.unwrap() - 0.9).abs() < 0.03, "{low:?}");
    assert!(low.queue_mean_pkts < high.queue_mean_pkts);
}

#[test]
fn a_packet_that_is_dropped_at_the_head_is_accounted_for() {
    // Without ECN, CoDel and COBALT drop from the head: what arrived has left, was dropped, or still waits.
    for name in ["codel", "cobalt"] {
        let mut dumbbell = Dumbbell::exp1(name, 30);
        dumbbell.transport.ecn = false;
        let result = answer(&dumbbell);
        let link = &result.links["bottleneck"]["all"];
        assert!(link.early_dropped_pkts > 100 && link.marked_pkts == 0, "{name}: {link:?}");
        let gone = link.departures_pkts + link.early_dropped_pkts + link.overflow_dropped_pkts;
        assert!(link.arrivals_pkts - gone <= 301, "{name}: {link:?}");
        // Sources repair what is lost: all of the link that is not lost to repetitions is goodput.
        let goodput = result.flows["ftp"]["steady"].goodput_bps;
        assert!(goodput > 0.7 * 8e6 * 0.96, "{name}: {goodput}");
    }
}
