//! AVQ: adaptive virtual queue (Kunniyur, Srikant 2001), as in the paper and as in ns-2.
//!
//! A virtual queue with the same buffer is served more slowly than the link. A packet that would overflow it is
//! signalled. The virtual capacity adapts to the arrivals, so that the utilisation tends to a chosen value gamma for
//! any number of flows. AVQ draws no random numbers.
//!
//! ```text
//! arrival of b after dt:  vq = max(vq - C~ dt, 0)
//!                         vq + b > B: signal            else: vq += b
//!                         C~ = max(min(C~ + alpha gamma C dt, C) - alpha b, 0)
//! ```
//!
//! Deviations:
//! - `form = ns2`: the virtual capacity is bounded after both terms, not between them. A dropped (not a marked) packet
//!   skips the update, so the next update covers the whole gap.
//! - A signalled packet that is not ECN-capable is dropped; ns-2 lets it pass: `spare_not_ect`.
//! - The unit is packets; `bytes` selects bytes, ns-2's `queue_in_bytes_`. A buffer in the other unit is converted with
//!   the mean packet size.

use core::fmt;

use aqumen_units::Instant;

use crate::{
    Algorithm, Aqm, Bound, Cx, DefaultValue, Draw, Kind, Network, Packet, Param, ParamError, Settings, Theory, Totals,
    Unit, Value, Verdict,
};

const DEFAULT_GAMMA: f64 = 0.98;
const DEFAULT_ALPHA: f64 = 0.15;
const DEFAULT_INITIAL_FRACTION: f64 = 0.8;
const DEFAULT_BUFFER_FRACTION: f64 = 1.0;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "avq",
    title: "AVQ",
    summary: "adaptive virtual queue: signals packets that overflow a slower virtual queue, whose rate follows the arrivals",
    reference: "Kunniyur, Srikant: Analysis and design of an adaptive virtual queue (AVQ) algorithm, 2001; ns-2.35",
    params: &[
        Param {
            name: "gamma",
            kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1.0) },
            default: DefaultValue::number(DEFAULT_GAMMA),
            doc: "target utilisation",
        },
        Param {
            name: "alpha",
            kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1e6) },
            default: DefaultValue::number(DEFAULT_ALPHA),
            doc: "speed of the virtual capacity's adaptation, 1/s",
        },
        Param::fraction(
            "initial_fraction",
            DefaultValue::number(DEFAULT_INITIAL_FRACTION),
            "virtual capacity at the start over the link's, ns-2's ecnlim_",
        ),
        Param::positive(
            "buffer_fraction",
            Unit::One,
            DefaultValue::number(DEFAULT_BUFFER_FRACTION),
            "virtual buffer over the real one, ns-2's buflim_",
        ),
        Param {
            name: "form",
            kind: Kind::Choice(&["paper", "ns2"]),
            default: DefaultValue::Value(Value::Choice("paper")),
            doc: "how the virtual capacity is updated: as the paper prints it, or as ns-2 does",
        },
        Param::flag("bytes", false, "count bytes instead of packets, ns-2's queue_in_bytes_"),
        Param::positive(
            "mean_packet",
            Unit::Bytes,
            DefaultValue::Designed("the network's packet size"),
            "mean packet size that turns the buffer's packets into bytes",
        ),
        Param::flag("spare_not_ect", false, "with ecn, pass signalled packets that are not ECN-capable, as ns-2 does"),
        Param::ECN,
    ],
};

/// Update rule of the virtual capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AvqForm {
    /// As in the paper.
    Paper,
    /// As in ns-2.35.
    Ns2,
}

/// The parameters of [`Avq`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AvqParams {
    /// Target utilisation, in (0, 1].
    pub gamma: f64,
    /// Speed of adaptation, 1/s.
    pub alpha: f64,
    /// Initial virtual capacity over the link's, in [0, 1].
    pub initial_fraction: f64,
    /// Virtual buffer over the real one.
    pub buffer_fraction: f64,
    /// Update rule of the virtual capacity.
    pub form: AvqForm,
    /// Count bytes instead of packets.
    pub bytes: bool,
    /// Mean packet size, bytes.
    pub mean_packet: f64,
    /// Capacity of the link, packets of the mean size per second.
    pub capacity_pps: f64,
    /// Pass signalled packets that are not ECN-capable.
    pub spare_not_ect: bool,
    /// Mark ECN-capable packets.
    pub ecn: bool,
}

/// The law: a virtual queue whose capacity follows the arrivals, in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VirtualQueue {
    /// Capacity of the link, C, per second.
    capacity: f64,
    /// Virtual capacity, C~, per second.
    virtual_capacity: f64,
    gamma: f64,
    alpha: f64,
    waiting: f64,
}

/// Adaptive virtual queue.
#[derive(Clone, Copy, Debug)]
pub struct Avq {
    params: AvqParams,
    queue: VirtualQueue,
    /// Time of the last service; `None` before the first packet.
    served: Option<Instant>,
    /// Time of the last update of the virtual capacity.
    updated: Option<Instant>,
    /// Time at which the virtual capacity first fell to 0.
    starved: Option<Instant>,
}

impl VirtualQueue {
    /// An empty virtual queue for a link of `capacity` per second.
    pub fn new(capacity: f64, initial_fraction: f64, gamma: f64, alpha: f64) -> Self {
        VirtualQueue { capacity, virtual_capacity: initial_fraction * capacity, gamma, alpha, waiting: 0.0 }
    }

    /// Serves the virtual queue for `dt_s` seconds.
    #[inline]
    pub fn serve(&mut self, dt_s: f64) {
        self.waiting = (self.waiting - self.virtual_capacity * dt_s).max(0.0);
    }

    /// Enqueues `amount` if it fits into a buffer of `capacity`; returns whether it does.
    #[inline]
    pub fn offer(&mut self, amount: f64, capacity: f64) -> bool {
        let fits = self.waiting + amount <= capacity;
        if fits {
            self.waiting += amount;
        }
        fits
    }

    /// Updates the virtual capacity for an arrival of `amount`, `dt_s` seconds after the previous one.
    #[inline]
    pub fn adapt(&mut self, amount: f64, dt_s: f64, form: AvqForm) {
        let credit = self.alpha * self.gamma * self.capacity * dt_s;
        let charge = self.alpha * amount;
        self.virtual_capacity = match form {
            AvqForm::Paper => ((self.virtual_capacity + credit).min(self.capacity) - charge).max(0.0),
            AvqForm::Ns2 => (self.virtual_capacity + credit - charge).clamp(0.0, self.capacity),
        };
    }

    /// The virtual capacity, C~, per second.
    pub const fn virtual_capacity(&self) -> f64 {
        self.virtual_capacity
    }

    /// Length of the virtual queue.
    pub const fn waiting(&self) -> f64 {
        self.waiting
    }
}

impl Avq {
    /// AVQ over an empty queue.
    pub fn new(params: AvqParams) -> Result<Self, ParamError> {
        Param::check_positive("capacity", params.capacity_pps, Unit::One)?;
        Param::check_positive("mean_packet", params.mean_packet, Unit::Bytes)?;
        Param::check_positive("alpha", params.alpha, Unit::One)?;
        Param::check_positive("buffer_fraction", params.buffer_fraction, Unit::One)?;
        if !(params.gamma > 0.0 && params.gamma <= 1.0) {
            return Err(ParamError::relation("gamma", params.gamma, "must be above 0, at most 1"));
        }
        if !(0.0..=1.0).contains(&params.initial_fraction) {
            return Err(ParamError::relation(
                "initial_fraction",
                params.initial_fraction,
                "must be at least 0, at most 1",
            ));
        }
        let unit = if params.bytes { params.mean_packet } else { 1.0 };
        let queue = VirtualQueue::new(params.capacity_pps * unit, params.initial_fraction, params.gamma, params.alpha);
        Ok(Avq { params, queue, served: None, updated: None, starved: None })
    }

    /// The virtual queue.
    pub const fn virtual_queue(&self) -> &VirtualQueue {
        &self.queue
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let number = |name: &str, otherwise: f64| settings.number(name).unwrap_or(otherwise);
        let flag = |name: &str, otherwise: bool| settings.flag(name).unwrap_or(otherwise);
        let mean_packet = number("mean_packet", network.packet_bytes);
        Avq::new(AvqParams {
            gamma: number("gamma", DEFAULT_GAMMA),
            alpha: number("alpha", DEFAULT_ALPHA),
            initial_fraction: number("initial_fraction", DEFAULT_INITIAL_FRACTION),
            buffer_fraction: number("buffer_fraction", DEFAULT_BUFFER_FRACTION),
            form: if settings.choice("form") == Some("ns2") { AvqForm::Ns2 } else { AvqForm::Paper },
            bytes: flag("bytes", false),
            mean_packet,
            capacity_pps: network.link_rate.as_bps() as f64 / (8.0 * mean_packet),
            spare_not_ect: flag("spare_not_ect", false),
            ecn: flag("ecn", true),
        })
    }
}

impl Aqm for Avq {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let AvqParams { buffer_fraction, form, bytes, mean_packet, spare_not_ect, ecn, .. } = self.params;
        let now = cx.now;
        let since = |then: Option<Instant>| then.map_or(0.0, |then| now.saturating_since(then).as_secs_f64());
        let (amount, unit) = if bytes { (packet.bytes as f64, mean_packet) } else { (1.0, 1.0) };

        self.queue.serve(since(self.served));
        self.served = Some(now);
        let capacity = buffer_fraction * cx.queue.limit.in_packets_of(mean_packet) * unit;
        let fits = self.queue.offer(amount, capacity);
        let exempt = ecn && spare_not_ect && !packet.ecn.is_ect();
        let verdict = if fits || exempt { Verdict::Pass } else { Verdict::signal(packet, ecn) };
        // ns-2 skips the update for a dropped packet.
        if form == AvqForm::Paper || !matches!(verdict, Verdict::Drop(_)) {
            self.queue.adapt(amount, since(self.updated), form);
            self.updated = Some(now);
            if self.queue.virtual_capacity <= 0.0 {
                self.starved.get_or_insert(now);
            }
        }
        verdict
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_queue", self.queue.waiting);
        visit("virtual_capacity", self.queue.virtual_capacity);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let params = &self.params;
        visit("gamma", Value::Number(params.gamma));
        visit("alpha", Value::Number(params.alpha));
        visit("initial_fraction", Value::Number(params.initial_fraction));
        visit("buffer_fraction", Value::Number(params.buffer_fraction));
        visit("form", Value::Choice(if params.form == AvqForm::Ns2 { "ns2" } else { "paper" }));
        visit("bytes", Value::Flag(params.bytes));
        visit("mean_packet", Value::Number(params.mean_packet));
        visit("spare_not_ect", Value::Flag(params.spare_not_ect));
        visit("ecn", Value::Flag(params.ecn));
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        if let Some(since) = self.starved {
            let (at, gamma) = (since.as_secs_f64(), self.params.gamma);
            tell(format_args!(
                "AVQ's virtual capacity fell to 0 at {at:.3} s: the arrival rate exceeded gamma = {gamma} of the link's rate for so \
                 long that the virtual queue no longer drains; from then on AVQ ignores the queue"
            ));
        }
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        let _ = (now, totals);
        if let Some(old) = old {
            (self.served, self.updated, self.starved) = (old.served, old.updated, old.starved);
            self.queue.waiting = old.queue.waiting;
            self.queue.virtual_capacity = old.queue.virtual_capacity;
        }
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Avq {
    fn not_linearizable(&self) -> Option<&'static str> {
        Some("it signals packets that overflow its virtual queue, and has no probability")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> VirtualQueue {
        VirtualQueue::new(1000.0, 0.8, 0.98, 0.15)
    }

    #[test]
    fn the_virtual_queue_is_served_at_the_virtual_capacity_and_overflows_at_its_limit() {
        let mut queue = queue();
        // 0.8 * 1000 = 800 per second.
        assert_eq!(queue.virtual_capacity(), 800.0);
        assert!(queue.offer(1.0, 2.0) && queue.offer(1.0, 2.0));
        assert!(!queue.offer(1.0, 2.0));
        assert_eq!(queue.waiting(), 2.0);
        // 1/800 s serves one packet.
        queue.serve(1.0 / 800.0);
        assert_eq!(queue.waiting(), 1.0);
        assert!(queue.offer(1.0, 2.0));
    }

    #[test]
    fn the_forms_differ_at_the_full_virtual_capacity() {
        // 800 + 0.15 * 0.98 * 1000 * 2 = 1094. Paper: min(1094, 1000) - 0.15; ns-2: min(1094 - 0.15, 1000).
        let (mut paper, mut ns2) = (queue(), queue());
        paper.adapt(1.0, 2.0, AvqForm::Paper);
        ns2.adapt(1.0, 2.0, AvqForm::Ns2);
        assert_eq!((paper.virtual_capacity(), ns2.virtual_capacity()), (999.85, 1000.0));
    }

    /// Runs 200 s with `pps` evenly spaced packets per second at C = 1000, gamma = 0.98, a buffer of 20. Returns the
    /// fraction signalled in the second half, and the final virtual capacity.
    fn run(pps: f64) -> (f64, f64) {
        let mut queue = queue();
        let (mut signalled, packets) = (0.0, (200.0 * pps) as u32);
        for i in 0..packets {
            queue.serve(1.0 / pps);
            let fits = queue.offer(1.0, 20.0);
            if i >= packets / 2 && !fits {
                signalled += 2.0 / f64::from(packets);
            }
            queue.adapt(1.0, 1.0 / pps, AvqForm::Paper);
        }
        (signalled, queue.virtual_capacity())
    }

    #[test]
    fn below_the_target_utilisation_no_packet_is_signalled() {
        // 900 < 980: the virtual capacity rises to the link's, minus one packet's charge.
        let (signalled, capacity) = run(900.0);
        assert_eq!(signalled, 0.0);
        assert!((capacity - 1000.0).abs() < 1.0, "{capacity}");
    }

    #[test]
    fn above_the_target_utilisation_the_virtual_capacity_falls_to_zero() {
        // dC~/dt = alpha (980 - 1020) = -6 per second: from 800 to 200 within 100 s and to 0 at 133 s. Then every
        // packet is signalled.
        let (signalled, capacity) = run(1020.0);
        assert!(signalled > 0.9, "{signalled}");
        assert_eq!(capacity, 0.0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let good = AvqParams {
            gamma: 0.98,
            alpha: 0.15,
            initial_fraction: 0.8,
            buffer_fraction: 1.0,
            form: AvqForm::Paper,
            bytes: false,
            mean_packet: 1000.0,
            capacity_pps: 1000.0,
            spare_not_ect: false,
            ecn: true,
        };
        assert!(Avq::new(good).is_ok());
        assert_eq!(Avq::new(AvqParams { gamma: 0.0, ..good }).unwrap_err().param, "gamma");
        assert_eq!(Avq::new(AvqParams { alpha: f64::NAN, ..good }).unwrap_err().param, "alpha");
        assert_eq!(Avq::new(AvqParams { initial_fraction: 1.5, ..good }).unwrap_err().param, "initial_fraction");
        assert_eq!(Avq::new(AvqParams { capacity_pps: 0.0, ..good }).unwrap_err().param, "capacity");
    }
}
