//! Steps per CPU second of a session, as an agent takes them: set a probability, run for 10 ms, observe; and the time
//! of a copy.
//!
//! `cargo bench -p aqumen-sim --bench session`. The network is that of experiment 1 of the ARM-PFC paper: 120 flows at
//! 8 Mbit/s, with the senders of preset `ns2` and of preset `linux`; the copies are also of 10 000 flows.

use std::time::Instant as Clock;

use aqumen_scenario::Scenario;
use aqumen_sim::{Options, Session};
use aqumen_units::Span;

const PERIOD: Span = Span::from_millis(10);

fn scenario(preset: &str, flows: u32, bps: u64) -> Scenario {
    let text = format!(
        "name = \"steps\"\nduration = \"200s\"\n[topology]\npreset = \"dumbbell\"\n\
         bottleneck = {{ rate = \"{bps}bit\", delay = \"20ms\", buffer = \"300pkt\" }}\n\
         access = {{ rate = \"{}bit\", delay = [\"1ms\", \"70ms\"] }}\n[[flows]]\nname = \"ftp\"\ncount = {flows}\n\
         start = [\"0s\", \"1s\"]\ntransport = {{ preset = \"{preset}\", ecn = true, packet = \"1000B\" }}\n",
        bps.max(10_000_000)
    );
    Scenario::parse(&text, "steps.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn begun(scenario: Scenario, every_service: bool) -> Session {
    let options = Options { every_service, ..Options::default() };
    let mut session = Session::new(scenario, 1, None, options).unwrap_or_else(|error| panic!("{error}"));
    let second = session.now() + Span::from_secs(2);
    session.advance_to(second, &mut |_: f64| true).unwrap_or_else(|error| panic!("{error}"));
    session
}

fn main() {
    for (preset, every_service) in [("ns2", false), ("ns2", true), ("linux", false)] {
        let mut session = begun(scenario(preset, 120, 8_000_000), every_service);
        let link = session.link("bottleneck").unwrap_or_else(|error| panic!("{error}"));
        let (steps, clock) = (15_000, Clock::now());
        for step in 0..steps {
            let p = 0.05 + 0.02 * f64::from(step % 7) / 7.0;
            let next = session.now() + PERIOD;
            session.set_probability(link, p).unwrap_or_else(|error| panic!("{error}"));
            session.advance_to(next, &mut |_: f64| true).unwrap_or_else(|error| panic!("{error}"));
            session.observe(link).unwrap_or_else(|error| panic!("{error}"));
        }
        let rate = f64::from(steps) / clock.elapsed().as_secs_f64();
        println!("{preset:>8}{:>10}{rate:>12.0} steps/s", if every_service { "packets" } else { "" });
    }
    for (flows, bps) in [(120, 8_000_000), (10_000, 10_000_000_000)] {
        let session = begun(scenario("ns2", flows, bps), false);
        let (copies, clock) = (20, Clock::now());
        (0..copies).for_each(|_| drop(session.clone()));
        println!("copy of {flows:>6} flows{:>10.3} ms", clock.elapsed().as_secs_f64() * 1e3 / f64::from(copies));
    }
}
