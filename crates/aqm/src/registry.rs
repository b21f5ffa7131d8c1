//! The algorithms by name: their parameter tables, and how one is built from what an operator gave.
//!
//! To add an algorithm: write its file with an `ALGORITHM` row and a `from_settings`, then add it to the list below; one with
//! several queues goes to the list of [`AnyQdisc`].

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use aqumen_units::{Instant, Probability, Span};

use crate::any_qdisc::{self, MULTI_QUEUE};
use crate::{
    Aaqm, Aqm, AqmMo, Ared, AredFeng, ArmPfc, ArmPfcAdaptive, Avq, Blue, Cobalt, Codel, Cx, Draw, DropTail, Fixed,
    Hooks, Limit, MAX_LOOPS, Network, Observation, PERIOD_MIN, Packet, Paqm, Param, ParamError, Pi, Pi2, Pie, Red, Rem,
    Requirement, Sampled, SampledLaw, SelfTuned, Settings, Threshold, Thresholded, Totals, TunableAqmMo, TunableArmPfc,
    TunablePi, TunableRed, Value, Verdict, aaqm, aqm_mo, ared, ared_feng, arm_pfc, arm_pfc_adaptive, avq, blue, cobalt,
    codel, droptail, fixed, paqm, pi, pi2, pie, red, rem, st_aqm_mo, st_arm_pfc, stpi, stred, threshold,
};

pub use crate::any_qdisc::AnyQdisc;

/// An algorithm's row in the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Algorithm {
    /// The name users type.
    pub name: &'static str,
    /// The name users read.
    pub title: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// The paper or RFC it follows.
    pub reference: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// How many queues an algorithm looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// One: an [`Aqm`], which a [`Fifo`](crate::Fifo) hosts.
    Single,
    /// Several, with a scheduler: a [`Qdisc`](crate::Qdisc).
    Multi,
}

/// An algorithm under another name, with settings of its own that an operator can still override.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The name users type.
    pub name: &'static str,
    /// The algorithm that it sets up.
    pub algorithm: &'static str,
    /// Its settings.
    pub settings: &'static [(&'static str, Value<'static>)],
    /// One line on where the settings come from.
    pub doc: &'static str,
}

/// Every built-in profile.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "red-ns2",
        algorithm: "red",
        settings: &[
            ("thresholds", Value::Choice("ns2-auto")),
            ("weight_rule", Value::Choice("ns2-auto")),
            ("bytes", Value::Flag(true)),
            ("queue_in_bytes", Value::Flag(true)),
            ("use_mark_p", Value::Flag(true)),
        ],
        doc: "RED as ns-2 sets it up when nothing is said: automatic thresholds and weight, bytes, mark_p",
    },
    Profile {
        name: "red50",
        algorithm: "red",
        settings: &[
            ("min_th", Value::Number(50.0)),
            ("max_th", Value::Number(150.0)),
            ("weight", Value::Number(0.002)),
            ("max_p", Value::Number(0.1)),
            ("use_mark_p", Value::Flag(false)),
        ],
        doc: "RED with thresholds 50 and 150 packets, centred on a target of 100",
    },
    Profile {
        name: "ared-ns2",
        algorithm: "ared",
        settings: &[
            ("thresholds", Value::Choice("ns2-auto")),
            ("weight_rule", Value::Choice("ns2-auto")),
            ("bytes", Value::Flag(true)),
            ("queue_in_bytes", Value::Flag(true)),
            ("use_mark_p", Value::Flag(true)),
            ("bottom_rule", Value::Choice("ns2-auto")),
            ("ns2_stale_gentle", Value::Flag(true)),
        ],
        doc: "ARED as ns-2 sets it up when told no more than adaptive_",
    },
    Profile {
        name: "codel-linux",
        algorithm: "codel",
        settings: &[
            ("limit", Value::Number(1000.0)),
            ("mtu", Value::Number(LINUX_MTU)),
            ("inverse_root", Value::Choice("newton")),
            ("ecn", Value::Flag(false)),
        ],
        doc: "CoDel as Linux sets it up (sch_codel): 1000 packets, no ECN, one Newton step a signal",
    },
    Profile {
        name: "pie-linux",
        algorithm: "pie",
        settings: LINUX_PIE,
        doc: "PIE as Linux sets it up (sch_pie): 1000 packets, no ECN, faster above 250 ms, updates from 500 ms on",
    },
    Profile {
        name: "fq-codel-linux",
        algorithm: "fq-codel",
        settings: &[
            ("limit", Value::Number(10_240.0)),
            ("mtu", Value::Number(LINUX_MTU)),
            ("inverse_root", Value::Choice("newton")),
            ("ecn", Value::Flag(true)),
        ],
        doc: "FQ-CoDel as Linux sets it up (sch_fq_codel): 10240 packets, ECN, one Newton step a signal",
    },
    Profile {
        name: "fq-pie-linux",
        algorithm: "fq-pie",
        settings: &{
            let mut settings = [("overflow", Value::Choice("arriving")); LINUX_PIE.len() + 1];
            let mut i = 0;
            while i < LINUX_PIE.len() {
                settings[i] = LINUX_PIE[i];
                i += 1;
            }
            settings[0] = ("limit", Value::Number(10_240.0));
            settings
        },
        doc: "FQ-PIE as Linux sets it up (sch_fq_pie): 10240 packets, no ECN, the arriving packet gives way, PIE as in pie-linux",
    },
    Profile {
        name: "dualpi2-linux",
        algorithm: "dualpi2",
        settings: &[
            ("limit", Value::Number(10_000.0)),
            ("l4s", Value::Choice("step")),
            ("min_packets", Value::Number(0.0)),
            ("selection", Value::Choice("random")),
            ("min_backlog", Value::Number(2.0 * LINUX_MTU)),
        ],
        doc: "DualPI2 as Linux sets it up (sch_dualpi2): 10000 packets, a step at 1 ms, no coupled signals below two full packets",
    },
    Profile {
        name: "cake-linux",
        algorithm: "cake",
        settings: &[("limit", Value::Number(10_240.0))],
        doc: "CAKE as Linux sets it up (sch_cake) with the link's rate: what cake is, and 10240 packets at most",
    },
    Profile {
        name: "red-linux",
        algorithm: "red",
        settings: &[
            ("thresholds", Value::Choice("tc")),
            ("weight_rule", Value::Choice("tc")),
            ("max_p", Value::Number(0.02)),
            ("gentle", Value::Flag(false)),
            ("queue_in_bytes", Value::Flag(true)),
            ("spacing", Value::Choice("linux")),
            ("above", Value::Choice("mark")),
            ("ecn", Value::Flag(false)),
        ],
        doc: "RED as Linux and tc set it up from a limit alone (sch_red): thresholds of a twelfth and a quarter, no ECN, not gentle",
    },
    Profile {
        name: "sfq-linux",
        algorithm: "sfq",
        settings: &[
            ("quantum", Value::Number(LINUX_MTU)),
            ("limit", Value::Number(127.0)),
            ("depth", Value::Number(127.0)),
            ("flows", Value::Number(128.0)),
            ("rehash", Value::Flag(true)),
        ],
        doc: "SFQ as Linux sets it up (sch_sfq): 127 packets in all, turns of 1514 B",
    },
    Profile {
        name: "rem-ns2",
        algorithm: "rem",
        settings: &[
            ("target", Value::Number(20.0)),
            ("signal_at", Value::Choice("dequeue")),
            ("ns2_limit", Value::Flag(true)),
        ],
        doc: "REM as ns-2 with markpkts_: a target of 20 packets, marks at the head and for ECN-capable packets alone",
    },
    Profile {
        name: "avq-ns2",
        algorithm: "avq",
        settings: &[("form", Value::Choice("ns2")), ("spare_not_ect", Value::Flag(true))],
        doc: "AVQ as ns-2 with markpkts_, packets counted",
    },
    Profile {
        name: "pi-printed",
        algorithm: "pi",
        settings: &[("a", Value::Number(6.48e-7)), ("b", Value::Number(6.42e-7)), ("frequency", Value::Number(150.0))],
        doc: "PI with the gains that the ARM-PFC paper prints for its comparison; about 1000 times too small to regulate",
    },
    Profile {
        name: "pi-x1000",
        algorithm: "pi",
        settings: &[("a", Value::Number(6.48e-4)), ("b", Value::Number(6.42e-4)), ("frequency", Value::Number(150.0))],
        doc: "pi-printed with gains 1000 times larger, as if the printed ones were per byte: regulates",
    },
    Profile {
        name: "arm-pfc-printed",
        algorithm: "arm-pfc",
        settings: ARM_PFC_PRINTED,
        doc: "ARM-PFC with the numbers of its paper: N = 100, 10 Mbit/s, R0 = 0.28 s, target 100, d = 5, h = 7, Psi = 0.83",
    },
    Profile {
        name: "arm-pfc-literal",
        algorithm: "arm-pfc",
        settings: &{
            let mut settings = [("variant", Value::Choice("A")); ARM_PFC_PRINTED.len() + 1];
            let mut i = 0;
            while i < ARM_PFC_PRINTED.len() {
                settings[i] = ARM_PFC_PRINTED[i];
                i += 1;
            }
            settings
        },
        doc: "arm-pfc-printed with the paper's literal controller, variant A, which settles beside the target",
    },
    Profile {
        name: "aaqm-literal",
        algorithm: "aaqm",
        settings: &[("reading", Value::Choice("plain")), ("u", Value::Choice("literal"))],
        doc: "AAQM as its paper prints it: steps of 0.7 and 1.0 each 10 ms, U = A / B; starves the link",
    },
];

/// A full packet with its Ethernet header, by which Linux counts.
const LINUX_MTU: f64 = 1514.0;

/// Linux's PIE; the first is the limit.
const LINUX_PIE: &[(&str, Value<'static>)] = &[
    ("limit", Value::Number(1000.0)),
    ("start", Value::Number(0.5)),
    ("delay_boost", Value::Flag(true)),
    ("safeguards", Value::Choice("linux")),
    ("mean_packet", Value::Number(LINUX_MTU)),
    ("ecn", Value::Flag(false)),
];

/// The ARM-PFC paper's numbers. The controller they set up is the default variant, which settles on the target: the profile is about
/// the printed values, and the literal controller has a profile of its own.
const ARM_PFC_PRINTED: &[(&str, Value<'static>)] = &[
    ("flows", Value::Number(100.0)),
    ("capacity", Value::Number(1e7)),
    ("r0", Value::Number(0.28)),
    ("target", Value::Number(100.0)),
    ("d", Value::Number(5.0)),
    ("h", Value::Number(7.0)),
    ("psi", Value::Number(0.83)),
];

/// The algorithm of one queue, or the profile of one, called `name` with the operator's `values`, designed for `network` where they leave it open.
/// The operator's values override a profile's. `None` if there is no such name.
pub fn build(name: &str, values: &[(&str, Value<'_>)], network: &Network) -> Option<Result<AnyAqm, ParamError>> {
    let of = |values: &[(&str, Value<'_>)]| build_unchecked(name, values, network);
    Some(with_a_period(values, |aqm: &AnyAqm| aqm.next_timer(), of(values)?, of))
}

/// `built` of `values`, or what makes its updates come closer than [`PERIOD_MIN`]: the first of `values` without which `of` builds
/// one whose updates do not. `first` is when its first update is due.
pub(crate) fn with_a_period<T>(
    values: &[(&str, Value<'_>)],
    first: impl Fn(&T) -> Option<Instant>,
    built: Result<T, ParamError>,
    of: impl Fn(&[(&str, Value<'_>)]) -> Option<Result<T, ParamError>>,
) -> Result<T, ParamError> {
    let too_short = |built: &T| first(built).filter(|due| *due < Instant::ZERO + PERIOD_MIN);
    let built = built?;
    let Some(period) = too_short(&built) else { return Ok(built) };
    let to_blame = |i: &usize| {
        let mut others = values.to_vec();
        others.remove(*i);
        of(&others).and_then(Result::ok).is_some_and(|other| too_short(&other).is_none())
    };
    let (name, value) = (0..values.len()).find(to_blame).map_or(("", Value::Number(0.0)), |i| values[i]);
    Err(ParamError::new(name, value, Requirement::Period(period.as_nanos())))
}

fn build_unchecked(name: &str, values: &[(&str, Value<'_>)], network: &Network) -> Option<Result<AnyAqm, ParamError>> {
    with_profile(name, values, |name, values| {
        let over = Threshold::of(values);
        let own: Vec<_> = values.iter().copied().filter(|(name, _)| !threshold::is_own(name)).collect();
        let built = build_algorithm(name, &own, network)?;
        Some(built.and_then(|aqm| {
            Ok(match over? {
                None => aqm,
                Some(threshold) => AnyAqm::Thresholded(Box::new(Thresholded::new(aqm, threshold))),
            })
        }))
    })
}

/// The queue discipline that the algorithm or profile called `name` makes, whichever its kind, with room for `limit`. `None` if
/// there is no such name.
pub fn build_qdisc(
    name: &str,
    values: &[(&str, Value<'_>)],
    network: &Network,
    limit: Limit,
) -> Option<Result<AnyQdisc, ParamError>> {
    any_qdisc::build(name, values, network, limit)
}

/// Calls `build` with the algorithm behind `name` and the values of the profile on the way, which `values` override.
pub(crate) fn with_profile<T>(
    name: &str,
    values: &[(&str, Value<'_>)],
    build: impl FnOnce(&str, &[(&str, Value<'_>)]) -> T,
) -> T {
    match find_profile(name) {
        None => build(name, values),
        Some(profile) => {
            let all: Vec<_> = profile.settings.iter().chain(values).copied().collect();
            build(profile.algorithm, &all)
        }
    }
}

/// Every algorithm: those of one queue, then those of several, each in the order in which lists show them.
pub fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().chain(MULTI_QUEUE)
}

impl Algorithm {
    /// How many queues it looks after.
    pub fn kind(&self) -> QueueKind {
        if MULTI_QUEUE.iter().any(|row| row.name == self.name) { QueueKind::Multi } else { QueueKind::Single }
    }
}

/// The profile called `name`.
pub fn find_profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// The row of the algorithm called `name`, or that the profile of this name sets up.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    let name = find_profile(name).map_or(name, |profile| profile.algorithm);
    algorithms().find(|algorithm| algorithm.name == name)
}

/// A law that came from outside this crate (a Python subclass, a test).
pub type ForeignLaw = Box<dyn SampledLaw + Send>;

macro_rules! algorithms {
    ($($variant:ident($type:ty) = $module:ident),* $(,)?) => {
        /// Any algorithm of the registry, or a law from outside: chosen when a run is set up, dispatched without
        /// indirection.
        #[allow(missing_docs, reason = "each variant is the algorithm of its name")]
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "one per queue; an indirection would cost every packet")]
        pub enum AnyAqm {
            $($variant($type),)*
            Foreign(Sampled<Foreign>),
            Thresholded(Box<Thresholded<AnyAqm>>),
        }

        /// Every algorithm of one queue, in the order in which lists show them; [`algorithms`] has all.
        pub const ALGORITHMS: &[Algorithm] = &[$($module::ALGORITHM),*];

        fn build_algorithm(
            name: &str,
            values: &[(&str, Value<'_>)],
            network: &Network,
        ) -> Option<Result<AnyAqm, ParamError>> {
            $(if name == $module::ALGORITHM.name {
                return Some(
                    Settings::check(values, $module::ALGORITHM.params)
                        .and_then(|settings| <$type>::from_settings(&settings, network))
                        .map(AnyAqm::$variant),
                );
            })*
            None
        }

        impl AnyAqm {
            /// [`Aqm::take_over`] from any algorithm.
            fn take_over_any(&mut self, old: Option<&AnyAqm>, now: Instant, totals: &Totals) {
                match (self, old) {
                    $((AnyAqm::$variant(new), Some(AnyAqm::$variant(old))) => new.take_over(Some(old), now, totals),)*
                    (AnyAqm::Thresholded(new), Some(AnyAqm::Thresholded(old))) => {
                        new.take_over(Some(old.as_ref()), now, totals);
                    }
                    $((AnyAqm::$variant(new), _) => new.take_over(None, now, totals),)*
                    (AnyAqm::Foreign(new), _) => new.take_over(None, now, totals),
                    (AnyAqm::Thresholded(new), _) => new.take_over(None, now, totals),
                }
            }
        }

        /// Runs `$body` with the algorithm inside, whatever it is.
        macro_rules! each {
            ($any:expr, $aqm:ident => $body:expr) => {
                match $any {
                    $(AnyAqm::$variant($aqm) => $body,)*
                    AnyAqm::Foreign($aqm) => $body,
                    AnyAqm::Thresholded($aqm) => $body,
                }
            };
        }
    };
}

algorithms! {
    DropTail(DropTail) = droptail,
    Fixed(Fixed) = fixed,
    Red(Red) = red,
    Ared(Ared) = ared,
    AredFeng(AredFeng) = ared_feng,
    Pi(Sampled<Pi>) = pi,
    Rem(Rem) = rem,
    Avq(Avq) = avq,
    Blue(Blue) = blue,
    ArmPfc(Sampled<ArmPfc>) = arm_pfc,
    ArmPfcAdaptive(Sampled<ArmPfcAdaptive>) = arm_pfc_adaptive,
    Paqm(Sampled<Paqm>) = paqm,
    AqmMo(Sampled<AqmMo>) = aqm_mo,
    Aaqm(Sampled<Aaqm>) = aaqm,
    StPi(Sampled<SelfTuned<TunablePi>>) = stpi,
    StRed(Sampled<SelfTuned<TunableRed>>) = stred,
    StArmPfc(Sampled<SelfTuned<TunableArmPfc>>) = st_arm_pfc,
    StAqmMo(Sampled<SelfTuned<TunableAqmMo>>) = st_aqm_mo,
    Codel(Codel) = codel,
    Pie(Pie) = pie,
    Pi2(Pi2) = pi2,
    Cobalt(Cobalt) = cobalt,
}

/// A [`ForeignLaw`] as a law: the indirection is paid once a sample, not once a packet.
pub struct Foreign(pub ForeignLaw);

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Foreign")
    }
}

impl SampledLaw for Foreign {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.0.periods()
    }

    fn step(&mut self, which: usize, seen: &Observation) -> Probability {
        self.0.step(which, seen)
    }

    fn initial(&self) -> Probability {
        self.0.initial()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe(visit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.0.settings(visit);
    }
}

impl Aqm for AnyAqm {
    #[inline(always)]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        each!(self, aqm => aqm.on_arrival(packet, cx))
    }

    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        each!(self, aqm => aqm.on_overflow(packet, cx));
    }

    fn on_stolen(&mut self, packets: u32) {
        each!(self, aqm => aqm.on_stolen(packets));
    }

    #[inline]
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        each!(self, aqm => aqm.on_dequeue(packet, sojourn, cx))
    }

    fn on_departure(&mut self, now: Instant) {
        each!(self, aqm => aqm.on_departure(now));
    }

    fn on_idle(&mut self, now: Instant) {
        each!(self, aqm => aqm.on_idle(now));
    }

    fn next_timer(&self) -> Option<Instant> {
        each!(self, aqm => aqm.next_timer())
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        each!(self, aqm => aqm.on_timer(cx));
    }

    fn probability(&self) -> Probability {
        each!(self, aqm => aqm.probability())
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        each!(self, aqm => aqm.observe(visit));
    }

    fn hooks(&self) -> Hooks {
        each!(self, aqm => aqm.hooks())
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        each!(self, aqm => aqm.settings(visit));
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        each!(self, aqm => aqm.notes(tell));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.take_over_any(old, now, totals);
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        each!(self, aqm => aqm.law_mut())
    }
}
