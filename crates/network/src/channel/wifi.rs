//! Wi-Fi: contention before each transmission, and aggregation of the packets that wait when the medium is won.
//!
//! A packet joins the previous aggregate if it follows without a gap, had arrived when that aggregate won the medium,
//! and fits the limits. The first packet of an aggregate takes contention, preamble and acknowledgement; each packet
//! takes its own symbols.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::Wifi;
use aqumen_scenario::streams::Stream;

use super::medium::{Channel, Request, Transmission};
use super::offered::OfferedCapacity;
use super::radio::Radio;
use super::random::Use;

#[derive(Clone)]
pub(super) struct Medium {
    wifi: Wifi,
    collision: f64,
    radio: Radio,
    aggregate: Aggregate,
    free_at: u64,
    rng: Stream,
}

/// Current transmission.
#[derive(Clone, Default)]
struct Aggregate {
    scheme: usize,
    packets: u32,
    air_bytes: u64,
    symbols_ns: u64,
    /// Time at which the medium was won.
    won: u64,
    lost: bool,
}

impl Medium {
    pub(super) fn new(wifi: &Wifi, offered: OfferedCapacity, stream: &dyn Fn(Use) -> Stream) -> Self {
        let log_weights = wifi.log_weights();
        let level_bps = (0..log_weights.len()).map(|scheme| wifi.level_bps(scheme)).collect();
        Medium {
            wifi: wifi.clone(),
            collision: wifi.collision(),
            radio: Radio::new(&log_weights, level_bps, wifi.coherence, None, offered, stream),
            aggregate: Aggregate::default(),
            free_at: 0,
            rng: stream(Use::Access),
        }
    }

    /// Contends for the medium; returns the time that it takes, and whether the last attempt collides.
    fn contend(&mut self) -> (u64, bool) {
        let (slot, difs) = self.wifi.slot_and_difs_ns();
        let busy = self.wifi.busy_ns();
        let mut time = difs;
        for (attempt, &window) in self.wifi.windows().iter().enumerate() {
            if attempt > 0 {
                time += busy;
            }
            let slots = (self.rng.uniform() * f64::from(window)) as u64;
            let taken = self.busy_slots(slots);
            time += (slots - taken) * slot + taken * busy;
            if self.collision == 0.0 || self.rng.uniform() >= self.collision {
                return (time, false);
            }
        }
        (time, true)
    }

    /// Draws how many of `slots` other stations take, by geometric jumps.
    fn busy_slots(&mut self, slots: u64) -> u64 {
        if self.collision == 0.0 {
            return 0;
        }
        let idle = libm::log1p(-self.collision);
        let (mut at, mut taken) = (0, 0);
        loop {
            at += (libm::log1p(-self.rng.uniform()) / idle) as u64 + 1;
            if at > slots {
                return taken;
            }
            taken += 1;
        }
    }
}

impl Channel for Medium {
    fn ready(&mut self, at: u64) -> u64 {
        at
    }

    fn transmit(&mut self, packet: Request) -> Transmission {
        let air_bytes = self.wifi.air_bytes(packet.bytes);
        let joined = &self.aggregate;
        let joins = joined.packets > 0
            && packet.start == self.free_at
            && packet.arrived <= joined.won
            && self.wifi.fits(joined.scheme, joined.packets + 1, joined.air_bytes + air_bytes);
        let mut time = 0;
        if !joins {
            let scheme = self.radio.level(packet.start);
            let (contention, lost) = self.contend();
            self.aggregate = Aggregate { scheme, won: packet.start + contention, lost, ..Aggregate::default() };
            time = contention + self.wifi.frame_ns();
        }
        let aggregate = &mut self.aggregate;
        aggregate.packets += 1;
        aggregate.air_bytes += air_bytes;
        let symbols_ns = self.wifi.symbols_ns(aggregate.scheme, aggregate.air_bytes);
        time += symbols_ns - aggregate.symbols_ns;
        aggregate.symbols_ns = symbols_ns;
        // A tiny packet may fit into symbols that are already counted.
        let time = time.max(1);
        self.free_at = packet.start + time;
        Transmission { end: self.free_at, airtime: time, received: self.free_at, lost: aggregate.lost }
    }

    fn offered_bits(&mut self) -> Vec<f64> {
        self.radio.offered_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::channel::Channel as Model;
    use aqumen_scenario::streams::Kind;
    use aqumen_scenario::{Files, Medium as Carrier, Scenario};

    /// The medium of a Wi-Fi link with so many others on it.
    fn medium(contenders: u32) -> Medium {
        let text = format!(
            "name = \"t\"\nduration = \"1s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
             access = {{ rate = \"1Gbit\", delay = \"1ms\" }}\n[topology.bottleneck]\n\
             channel = {{ model = \"wifi\", contenders = {contenders} }}\ndelay = \"1ms\"\nbuffer = \"9pkt\"\n\
             [[flows]]\nname = \"f\"\ntransport = \"modern\"\n"
        );
        let plan = Scenario::parse_with(&text, "t.toml", Files::in_memory([])).unwrap().plan(1, None).unwrap();
        let Some(Carrier::Channel(Model::Wifi(wifi))) = plan.links[0].line.as_ref().map(|line| line.medium.clone())
        else {
            panic!("no Wi-Fi: {:?}", plan.links[0]);
        };
        let stream = |use_of: Use| Stream::new(1, Kind::Link, use_of as u64);
        Medium::new(&wifi, OfferedCapacity::new(&[], &[]), &stream)
    }

    #[test]
    fn alone_it_waits_for_difs_and_up_to_fifteen_slots() {
        let mut medium = medium(0);
        let (slot, difs) = medium.wifi.slot_and_difs_ns();
        let mut seen = [0u32; 16];
        for _ in 0..16_000 {
            let (time, lost) = medium.contend();
            assert!(!lost && time >= difs && (time - difs).is_multiple_of(slot), "{time}");
            seen[((time - difs) / slot) as usize] += 1;
        }
        // Each 1000 times, with a standard deviation of sqrt(1000 * 15 / 16) = 30.6.
        assert!(seen.iter().all(|n| n.abs_diff(1000) < 130), "{seen:?}");
    }

    #[test]
    fn others_take_slots_and_collide_as_often_as_they_send() {
        let mut medium = medium(3);
        let (p, busy) = (medium.collision, medium.wifi.busy_ns() as f64);
        let (slot, difs) = medium.wifi.slot_and_difs_ns();
        assert!(p > 0.05, "{p}");
        let windows = medium.wifi.windows().to_vec();
        // Attempt k is reached with probability p^k; each of its (W - 1) / 2 slots is taken with probability p.
        let of_slots = (1.0 - p) * slot as f64 + p * busy;
        let expected = windows.iter().enumerate().fold(difs as f64, |sum, (k, &window)| {
            let again = if k > 0 { busy } else { 0.0 };
            sum + p.powi(k as i32) * (again + (f64::from(window) - 1.0) / 2.0 * of_slots)
        });
        let times: Vec<(f64, bool)> =
            (0..1_000_000).map(|_| medium.contend()).map(|(t, lost)| (t as f64, lost)).collect();
        let n = times.len() as f64;
        let mean = times.iter().map(|(time, _)| time).sum::<f64>() / n;
        let variance = times.iter().map(|(time, _)| (time - mean) * (time - mean)).sum::<f64>() / n;
        assert!((mean - expected).abs() < 3.29 * (variance / n).sqrt(), "{mean}, not {expected}");
        // Lost after the last attempt.
        let (lost, share) = (times.iter().filter(|(_, lost)| *lost).count() as f64 / n, p.powi(windows.len() as i32));
        assert!((lost - share).abs() <= 3.29 * (share / n).sqrt() + 1e-9, "{lost}, not {share}");
    }
    fn packet(start: u64, arrived: u64) -> Request {
        Request { start, arrived, bytes: 1500 }
    }

    #[test]
    fn packets_that_wait_when_the_medium_is_won_form_an_aggregate() {
        let mut medium = medium(0);
        let wifi = medium.wifi.clone();
        // 1500 B are 1544 B on air, and 28 of them all that 5.484 ms allow.
        let air = |packets: u64| wifi.symbols_ns(7, packets * 1544);
        let (_, difs) = wifi.slot_and_difs_ns();
        let mut at = 5000;
        for aggregate in 0..3 {
            let began = at;
            for k in 1..=28u64 {
                let passage = medium.transmit(packet(at, began));
                assert_eq!((passage.airtime, passage.received, passage.lost), (passage.end - at, passage.end, false));
                if k > 1 {
                    assert_eq!(passage.end - at, air(k) - air(k - 1), "{aggregate} {k}");
                } else {
                    // The first takes contention, preamble and acknowledgement.
                    let contention = passage.end - at - wifi.frame_ns() - air(1);
                    assert!(contention >= difs && (contention - difs).is_multiple_of(9000), "{contention}");
                    assert!(contention <= difs + 15 * 9000, "{contention}");
                }
                at = passage.end;
            }
        }
    }

    #[test]
    fn a_packet_goes_by_itself_after_a_gap_or_if_it_came_too_late() {
        let overhead = |second: &dyn Fn(u64, u64) -> Request| {
            let mut medium = medium(0);
            let mut twin = self::medium(0);
            let (contention, _) = twin.contend();
            let first = medium.transmit(packet(0, 0));
            assert_eq!(first.end, contention + medium.wifi.frame_ns() + medium.wifi.symbols_ns(7, 1544));
            let second = second(first.end, contention);
            let took = medium.transmit(second).airtime;
            let frame = medium.wifi.frame_ns() + medium.wifi.slot_and_difs_ns().1 + medium.wifi.symbols_ns(7, 1544);
            took >= frame
        };
        // At the moment that the medium was won it was there; a nanosecond later it was not.
        assert!(!overhead(&|end, won| packet(end, won)));
        assert!(overhead(&|end, won| packet(end, won + 1)));
        assert!(overhead(&|end, _| packet(end + 1, 0)));
    }

    #[test]
    fn all_of_an_aggregate_is_lost_with_it() {
        let mut medium = medium(60);
        let share = medium.collision.powi(7);
        let (mut at, mut lost) = (0, 0u32);
        let aggregates = 20_000;
        for _ in 0..aggregates {
            let one = medium.transmit(packet(at, at));
            let other = medium.transmit(packet(one.end, at));
            let more = medium.wifi.symbols_ns(7, 2 * 1544) - medium.wifi.symbols_ns(7, 1544);
            assert_eq!((other.lost, other.airtime), (one.lost, more), "it has joined the first");
            lost += u32::from(one.lost);
            // A gap, so that the next goes by itself.
            at = other.end + 1;
        }
        let (got, n) = (f64::from(lost) / f64::from(aggregates), f64::from(aggregates));
        assert!(share > 0.01 && (got - share).abs() < 3.29 * (share / n).sqrt(), "{got}, not {share}");
    }

    #[test]
    fn it_offers_its_mean_rate() {
        let text = medium(0).wifi;
        let edges = [1_000_000_000, 3_000_000_000];
        let stream = |use_of: Use| Stream::new(1, Kind::Link, use_of as u64);
        let got = Medium::new(&text, OfferedCapacity::new(&edges, &[]), &stream).offered_bits();
        let expected = [1.0, 2.0].map(|seconds| text.mean_bps() * seconds);
        assert!(got.iter().zip(expected).all(|(got, bits)| (got / bits - 1.0).abs() < 1e-9), "{got:?} {expected:?}");
    }
}
