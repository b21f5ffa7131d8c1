//! Wi-Fi: contention before each transmission, and aggregates of packets that waited when the medium was won.
//!
//! A packet joins the aggregate before it if it follows without a gap, had arrived when that aggregate won the medium, and the
//! limits allow. The first packet of an aggregate takes contention, preamble and acknowledgement, each its own symbols.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::Wifi;
use aqumen_scenario::streams::Stream;

use super::radio::Radio;
use super::{Channel, Offered, Passage, Taken, Use};

pub(super) struct Medium {
    wifi: Wifi,
    collision: f64,
    radio: Radio,
    aggregate: Aggregate,
    free_at: u64,
    rng: Stream,
}

/// The transmission under way.
#[derive(Default)]
struct Aggregate {
    scheme: usize,
    packets: u32,
    air_bytes: u64,
    symbols_ns: u64,
    /// When the medium was won.
    won: u64,
    lost: bool,
}

impl Medium {
    pub(super) fn new(wifi: &Wifi, offered: Offered, stream: &dyn Fn(Use) -> Stream) -> Self {
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

    /// Contends for the medium: how long that takes, and whether the last attempt collides.
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

    /// How many of `slots` others take: they are skipped to, not tried one by one.
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

    fn transmit(&mut self, packet: Taken) -> Passage {
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
        // The symbols of a tiny packet may all have been there before.
        let time = time.max(1);
        self.free_at = packet.start + time;
        Passage { end: self.free_at, airtime: time, through: self.free_at, lost: aggregate.lost }
    }

    fn offered_bits(&mut self) -> Vec<f64> {
        self.radio.offered_bits()
    }
}
