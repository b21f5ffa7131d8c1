//! Sessions: cuts and looks change no bit, pushed events are those of the scenario, copies continue alike.

use aqumen_scenario::Scenario;
use aqumen_scenario::streams::mix;
use aqumen_sim::{Options, Session, Stop, run};
use aqumen_units::{Instant, Span};

use crate::scenarios::told;
use crate::valid::Case;

fn session(scenario: &Scenario, seed: u64, aqm: Option<&str>, every_service: bool) -> Session {
    let aqm = aqm.map(|name| scenario.aqm(name).unwrap());
    let options = Options { every_service, ..Options::default() };
    Session::new(scenario.clone(), seed, aqm, options).unwrap_or_else(|error| panic!("{error}"))
}

fn straight(scenario: &Scenario, seed: u64, aqm: Option<&str>) -> String {
    let aqm = aqm.map(|name| scenario.aqm(name).unwrap());
    told(&run(&scenario.plan(seed, aqm.as_ref()).unwrap(), Options::default(), &mut |_| true).unwrap())
}

/// Asserts equal texts; shows where they differ.
fn same(one: &str, other: &str, what: &str) {
    let from = one.bytes().zip(other.bytes()).position(|(a, b)| a != b);
    let near = |text: &str, at: usize| text[at.saturating_sub(300)..(at + 60).min(text.len())].to_string();
    if let Some(at) = from {
        panic!("{what}: {}\n in place of {}", near(one, at), near(other, at));
    }
    assert_eq!(one.len(), other.len(), "{what}");
}

fn finish(session: Session) -> String {
    told(&session.finish(&mut |_| true).unwrap())
}

/// Moments of a run, in order; some lie close together, some at samples.
fn moments(session: &Session, mut seed: u64, count: usize) -> Vec<Instant> {
    let duration = session.plan().duration.as_nanos();
    let sample = session.plan().sample_interval.as_nanos();
    let mut moments = Vec::new();
    for k in 0..count as u64 {
        seed = mix(seed ^ k);
        let at = seed % duration;
        moments.push(at);
        match seed >> 62 {
            0 => moments.push((at + 1).min(duration)),
            1 => moments.push(at - at % sample),
            _ => {}
        }
    }
    moments.sort_unstable();
    moments.into_iter().map(Instant::from_nanos).collect()
}

/// Advances to each moment, and looks at everything there.
fn play(session: &mut Session, moments: &[Instant]) {
    let links: Vec<u32> = (0u32..).zip(&session.plan().links).filter(|(_, link)| link.record).map(|(k, _)| k).collect();
    for &at in moments {
        let stop = session.advance_to(at, &mut |_| true).unwrap();
        assert_eq!(session.now(), at);
        assert_eq!(stop == Stop::End, at == session.end());
        for &link in &links {
            let seen = session.observe(link).unwrap();
            session.histogram(link).unwrap();
            if let Ok(waiting) = session.contents(link) {
                assert_eq!(waiting.len() as f64, seen.queue_pkts, "at {at:?}");
                assert_eq!(waiting.iter().map(|packet| f64::from(packet.bytes)).sum::<f64>(), seen.queue_bytes);
            }
        }
        session.flows();
    }
}

fn case(seed: u64) -> Option<Scenario> {
    let case = Case::new(seed);
    let scenario = Scenario::parse_with(&case.text, "valid.toml", Case::files()).unwrap();
    scenario.plan(seed, None).is_ok().then_some(scenario)
}

#[test]
fn cuts_and_looks_change_no_bit() {
    for seed in 0..250 {
        let Some(scenario) = case(seed) else { continue };
        let mut session = session(&scenario, seed, None, seed % 2 == 0);
        let moments = moments(&session, seed, 12);
        play(&mut session, &moments);
        same(&finish(session), &straight(&scenario, seed, None), &format!("case {seed}"));
    }
}

const SMALL: &str = r#"
name = "small"
duration = "4s"
[topology]
preset = "dumbbell"
bottleneck = { rate = "8Mbit", delay = "20ms", buffer = "100pkt" }
access = { rate = "80Mbit", delay = "4ms" }
[[flows]]
name = "long"
count = 9
start = ["0s", "1s"]
transport = "modern"
[[flows]]
name = "pages"
count = 3
transport = "cubic"
traffic = { kind = "web", reading = "200ms" }
"#;

fn small() -> Scenario {
    Scenario::parse(SMALL, "small.toml").unwrap()
}

/// Events at `at` milliseconds, most of which any scenario with a bottleneck and a group `long` takes.
fn events(at: u64) -> [String; 7] {
    [
        format!("{{ at = \"{at}ms\", capacity = \"3Mbit\" }}"),
        format!("{{ at = \"{at}ms\", delay = \"9ms\" }}"),
        format!("{{ at = \"{at}ms\", loss = 0.02 }}"),
        format!("{{ at = \"{at}ms\", aqm = \"codel\" }}"),
        format!("{{ at = \"{at}ms\", aqm = \"pi:target=20\" }}"),
        format!("{{ at = \"{at}ms\", state = \"down\" }}"),
        format!("{{ at = \"{at}ms\", stop = \"long\", count = 4 }}"),
    ]
}

#[test]
fn an_event_that_is_pushed_is_an_event_of_the_scenario() {
    for (seed, aqm) in (1..).zip(["pi", "codel", "fq-codel", "droptail", "arm-pfc"]) {
        let kinds = events(0).len() as u64;
        let mut session = session(&small(), seed, Some(aqm), seed % 2 == 0);
        let mut scenario = small();
        let mut at_ms = 0;
        for k in 0..4 {
            at_ms += 1 + mix(seed * 100 + k) % 900;
            session.advance_to(Instant::ZERO + Span::from_millis(at_ms), &mut |_| true).unwrap();
            session.flows();
            // At once, or somewhat later.
            let event = &events(at_ms + k % 2 * 50)[(mix(seed + k) % kinds) as usize];
            let Ok(longer) = scenario.with_event(event) else { continue };
            // A discipline of several queues keeps its AQM.
            if longer.plan(seed, Some(&longer.aqm(aqm).unwrap())).is_err() {
                continue;
            }
            session.push(event, &mut |_| true).unwrap();
            scenario = longer;
        }
        assert!(!scenario.spec().events.is_empty());
        let expected = straight(&scenario, seed, Some(aqm));
        assert_eq!(session.scenario().unwrap().to_toml(), scenario.to_toml());
        same(&finish(session), &expected, &format!("seed {seed}, {aqm}"));
    }
}

#[test]
fn a_played_probability_is_a_scenario() {
    let mut session = session(&small(), 3, Some("pi"), false);
    let link = session.link("bottleneck").unwrap();
    for (at_ms, p) in [(500, 0.01), (900, 0.2), (1500, 0.0), (2100, 0.03)] {
        session.advance_to(Instant::ZERO + Span::from_millis(at_ms), &mut |_| true).unwrap();
        session.set_probability(link, p).unwrap();
        assert_eq!(session.observe(link).unwrap().applied.get(), p);
    }
    let scenario = session.scenario().unwrap();
    assert_eq!(scenario.spec().events.len(), 4);
    let mut played = session.finish(&mut |_| true).unwrap();
    let aqm = scenario.aqm("pi").unwrap();
    let mut again = run(&scenario.plan(3, Some(&aqm)).unwrap(), Options::default(), &mut |_| true).unwrap();
    // Events open windows, at whose edges this sum of floats is split.
    for result in [&mut played, &mut again] {
        result.links["bottleneck"]["all"].sync_index = None;
    }
    assert_eq!(played.series["bottleneck"].queue_pkts, again.series["bottleneck"].queue_pkts);
    assert_eq!(played.links["bottleneck"]["all"], again.links["bottleneck"]["all"]);
}

#[test]
fn an_aqm_that_is_set_is_an_event_of_the_scenario() {
    for every_service in [false, true] {
        let mut session = session(&small(), 5, Some("pi"), every_service);
        let link = session.link("bottleneck").unwrap();
        // CoDel decides at the head: a port that computes departures at arrival gets an event.
        for (at_ms, spec) in [(400, "pi:target=9pkt"), (900, "red"), (1400, "codel"), (1900, "pie"), (2500, "pi")] {
            session.advance_to(Instant::ZERO + Span::from_millis(at_ms), &mut |_| true).unwrap();
            session.set_aqm(link, spec, &mut |_| true).unwrap();
        }
        assert!(session.set_aqm(link, "nosuch", &mut |_| true).unwrap_err().to_string().contains("nosuch"));
        let scenario = session.scenario().unwrap();
        let played = session.finish(&mut |_| true).unwrap();
        let aqm = scenario.aqm("pi").unwrap();
        let again = run(&scenario.plan(5, Some(&aqm)).unwrap(), Options::default(), &mut |_| true).unwrap();
        assert_eq!(played.series["bottleneck"].queue_pkts, again.series["bottleneck"].queue_pkts);
        assert_eq!(played.flows["long"]["all"], again.flows["long"]["all"]);
    }
}

#[test]
fn a_probability_and_an_event_of_one_moment_replay_in_their_order() {
    let mut session = session(&small(), 2, Some("pi"), true);
    let link = session.link("bottleneck").unwrap();
    session.advance_to(Instant::ZERO + Span::from_secs(1), &mut |_| true).unwrap();
    session.set_probability(link, 0.9).unwrap();
    session.set_probability(link, 0.01).unwrap();
    session.push("{ at = \"1s\", aqm = \"red\" }", &mut |_| true).unwrap();
    let scenario = session.scenario().unwrap();
    let played = session.finish(&mut |_| true).unwrap();
    let aqm = scenario.aqm("pi").unwrap();
    let again = run(&scenario.plan(2, Some(&aqm)).unwrap(), Options::default(), &mut |_| true).unwrap();
    assert_eq!(played.series["bottleneck"].probability, again.series["bottleneck"].probability);
}

#[test]
fn a_copy_continues_with_the_same_bits_and_differs_after_another_seed() {
    for (seed, aqm) in [(1, "pi"), (2, "fq-codel"), (3, "dualpi2"), (4, "red")] {
        let mut session = session(&small(), seed, Some(aqm), false);
        session.advance_to(Instant::ZERO + Span::from_millis(1700), &mut |_| true).unwrap();
        let (copy, mut other) = (session.clone(), session.clone());
        let expected = straight(&small(), seed, Some(aqm));
        other.reseed(99);
        // The copy is played after the session is gone.
        assert!(finish(session) == expected, "{aqm}");
        assert!(finish(copy) == expected, "{aqm}");
        assert!(finish(other) != expected, "{aqm}");
    }
}

#[test]
fn copies_of_random_runs_continue_with_the_same_bits() {
    for seed in 300..400 {
        let Some(scenario) = case(seed) else { continue };
        let mut session = session(&scenario, seed, None, seed % 2 == 0);
        let moments = moments(&session, seed, 2);
        session.advance_to(moments[0], &mut |_| true).unwrap();
        let copy = session.clone();
        play(&mut session, &moments);
        let (one, other) = (finish(session), finish(copy));
        same(&one, &other, &format!("case {seed}"));
        same(&one, &straight(&scenario, seed, None), &format!("case {seed}"));
    }
}

#[test]
fn a_step_of_one_packet_is_one_departure() {
    let mut session = session(&small(), 1, Some("pi"), true);
    session.advance_to(Instant::ZERO + Span::from_secs(1), &mut |_| true).unwrap();
    let link = session.link("bottleneck").unwrap();
    session.observe(link).unwrap();
    for _ in 0..200 {
        session.advance_packet(link, &mut |_| true).unwrap();
        assert_eq!(session.observe(link).unwrap().departures_pkts, 1.0);
    }
}

#[test]
fn what_a_session_cannot_do_is_said_and_it_stays_usable() {
    let mut session = session(&small(), 1, None, false);
    let said = |answer: Result<(), aqumen_sim::Error>| answer.unwrap_err().to_string();
    let link = session.link("bottleneck").unwrap();
    session.advance_to(Instant::ZERO + Span::from_secs(1), &mut |_| true).unwrap();
    assert_eq!(said(session.set_probability(link, f64::NAN)), "a probability is from 0 to 1, not NaN");
    assert_eq!(said(session.set_probability(link, 1.5)), "a probability is from 0 to 1, not 1.5");
    assert_eq!(said(session.link("x").map(drop)), "no link \"x\"; choose from: bottleneck");
    assert_eq!(said(session.set_probability(99, 0.5)), "no link 99");
    let late = session.advance_to(Instant::ZERO, &mut |_| true).map(drop);
    assert_eq!(said(late), "0 s has passed: the run is at 1 s");
    let past = session.push("{ at = \"500ms\", capacity = \"1Mbit\" }", &mut |_| true);
    assert_eq!(said(past), "at = \"0.5s\" has passed: the run is at 1 s");
    let unknown = session.push("{ at = \"2s\", link = \"x\", capacity = \"1Mbit\" }", &mut |_| true);
    assert!(said(unknown).contains("events.0.link"), "an unknown link");
    assert!(said(session.contents(link).map(drop)).contains("every_service"));
    // The host stops a stretch: the session continues.
    let stopped = session.advance_to(Instant::ZERO + Span::from_secs(3), &mut |_| false);
    assert!(matches!(stopped, Err(aqumen_sim::Error::Cancelled)));
    assert!(session.now() < Instant::ZERO + Span::from_secs(3));
    assert_eq!(session.advance_to(session.end(), &mut |_| true).unwrap(), Stop::End);
    let over = session.advance_to(session.end(), &mut |_| true).map(drop);
    assert_eq!(said(over), "the run is over");
    assert!(finish(session) == straight(&small(), 1, None));
}

#[test]
fn a_session_can_move_to_another_thread() {
    fn sends<T: Send>(_: &T) {}
    sends(&session(&small(), 1, None, false));
}
