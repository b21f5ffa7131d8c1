//! Warnings: signs that an attachment does not work as intended.

use super::{Sample, Totals};

/// Length of a window, seconds.
const WINDOW_S: f64 = 10.0;
/// Fraction of its rate above which a link is in use.
const IN_USE: f64 = 0.1;
/// Probability from which on responsive traffic slows down.
const STRONG: f64 = 0.5;
/// Fraction of overflow drops above which the buffer is overloaded.
const OVERFLOW: f64 = 0.01;
/// Fraction of missed steps above which the machine is overloaded.
const MISSED: f64 = 0.1;
/// Departures without any regulated packet that mean wrong rules.
const UNREGULATED_PKTS: u64 = 100;

/// Monitor of the samples of an attachment.
#[derive(Debug)]
pub(crate) struct WarningMonitor {
    rate_bps: f64,
    target_pkts: f64,
    since_s: f64,
    start: (Sample, Totals),
    sums: Sums,
    /// Warnings that hold.
    active: Vec<String>,
    /// Warning that holds during the whole attachment.
    standing: Option<String>,
    /// Whether each warning held in the last window.
    holds: [bool; 5],
    /// Warnings that began since the last call of `take_new`.
    unlogged: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    samples: u32,
    backlogged: u32,
    /// Samples with a strong probability and a queue above twice the target.
    ineffective: u32,
    bits: f64,
}

impl WarningMonitor {
    /// Monitors a link of `rate_bps` with a target of `target_pkts`; `standing`: a warning from the start.
    pub(crate) fn new(rate_bps: f64, target_pkts: f64, standing: Option<String>) -> Self {
        WarningMonitor {
            rate_bps,
            target_pkts,
            since_s: 0.0,
            start: Default::default(),
            sums: Sums::default(),
            active: standing.iter().cloned().collect(),
            unlogged: standing.iter().cloned().collect(),
            standing,
            holds: [false; 5],
        }
    }

    /// Takes the warnings that began since the last call, for a log.
    pub(crate) fn take_new(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unlogged)
    }

    /// Adds a sample, `interval_s` after the previous one. Returns the warnings that hold.
    pub(crate) fn update(&mut self, sample: &Sample, totals: &Totals, interval_s: f64) -> &[String] {
        let sums = &mut self.sums;
        sums.samples += 1;
        sums.backlogged += u32::from(sample.backlog_bytes > 0);
        sums.ineffective += u32::from(sample.probability >= STRONG && sample.backlog_pkts > 2.0 * self.target_pkts);
        sums.bits += sample.rate_bps * interval_s;
        let elapsed_s = sample.t_s - self.since_s;
        if elapsed_s >= WINDOW_S {
            self.judge(sample, totals, elapsed_s);
            (self.since_s, self.start, self.sums) = (sample.t_s, (*sample, *totals), Sums::default());
        }
        &self.active
    }

    fn judge(&mut self, end: &Sample, totals: &Totals, elapsed_s: f64) {
        let (sums, (start, before)) = (self.sums, &self.start);
        let rate_bps = sums.bits / elapsed_s;
        let marked = end.marked_pkts - start.marked_pkts;
        let dropped = end.early_dropped_pkts - start.early_dropped_pkts;
        let arrived = totals.arrived_pkts - before.arrived_pkts;
        let departed = totals.departed_pkts - before.departed_pkts;
        let overflowed = totals.overflow_dropped_pkts - before.overflow_dropped_pkts;
        let missed = totals.missed_steps - before.missed_steps;
        let steps = totals.steps - before.steps + missed;
        let holds = [
            sums.backlogged == 0 && rate_bps > IN_USE * self.rate_bps,
            f64::from(sums.ineffective) > 0.9 * f64::from(sums.samples) && marked > 10 * dropped,
            arrived > 0 && overflowed as f64 > OVERFLOW * arrived as f64,
            missed as f64 > MISSED * steps as f64,
            arrived == 0 && departed > UNREGULATED_PKTS,
        ];
        let texts = [
            format!(
                "no packet waited in {elapsed_s:.0} s at {:.1} Mbit/s of {:.1}: the bottleneck is elsewhere; give a lower --rate",
                rate_bps / 1e6,
                self.rate_bps / 1e6
            ),
            format!(
                "marks change nothing: {marked} in {elapsed_s:.0} s, and the queue stays above twice its target; senders do not respond, \
                 or ECN is bleached on the way; try the AQM with ecn=false"
            ),
            format!(
                "overload: {overflowed} of {arrived} packets overflowed the buffer in {elapsed_s:.0} s: traffic does not respond, or the \
                 buffer is too short"
            ),
            format!(
                "overload: {missed} of {steps} steps of the AQM were missed in {elapsed_s:.0} s: this machine is too busy, or lacks \
                 CAP_SYS_NICE"
            ),
            format!(
                "nothing is regulated: {departed} packets left the queue in {elapsed_s:.0} s, and none of them matches --only"
            ),
        ];
        self.active = self.standing.iter().cloned().collect();
        for ((text, holds), held_before) in texts.into_iter().zip(holds).zip(self.holds) {
            if holds {
                self.unlogged.extend((!held_before).then(|| text.clone()));
                self.active.push(text);
            }
        }
        self.holds = holds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl WarningMonitor {
        /// Adds a sample without totals.
        fn add(&mut self, sample: &Sample, interval_s: f64) -> &[String] {
            self.update(sample, &Totals::default(), interval_s)
        }
    }

    /// Warnings after 10.5 s of samples that `make` makes of their numbers.
    fn after(make: impl Fn(u64) -> Sample) -> Vec<String> {
        let mut monitor = WarningMonitor::new(20e6, 20.0, None);
        let mut active = Vec::new();
        for i in 0..1050 {
            active = monitor.add(&Sample { t_s: i as f64 * 0.01, ..make(i) }, 0.01).to_vec();
        }
        active
    }

    #[test]
    fn an_empty_queue_means_a_bottleneck_elsewhere() {
        let active = after(|_| Sample { rate_bps: 15e6, ..Sample::default() });
        assert!(active.len() == 1 && active[0].contains("the bottleneck is elsewhere"), "{active:?}");
        assert_eq!(after(|_| Sample { rate_bps: 1e6, ..Sample::default() }), [""; 0], "a link that is hardly used");
        let waits = |i| Sample { rate_bps: 15e6, backlog_bytes: u32::from(i == 500), ..Sample::default() };
        assert_eq!(after(waits), [""; 0], "one packet waited once");
    }

    #[test]
    fn marks_without_effect_cause_a_warning() {
        let ineffective = |i| Sample {
            rate_bps: 20e6,
            backlog_bytes: 100_000,
            backlog_pkts: 70.0,
            probability: 1.0,
            marked_pkts: 10 * i,
            ..Sample::default()
        };
        let active = after(ineffective);
        assert!(active.len() == 1 && active[0].contains("marks change nothing"), "{active:?}");
        assert_eq!(after(|i| Sample { backlog_pkts: 30.0, ..ineffective(i) }), [""; 0], "the queue is near its target");
        assert_eq!(after(|i| Sample { marked_pkts: 0, ..ineffective(i) }), [""; 0], "nothing was marked");
        assert_eq!(
            after(|i| Sample { marked_pkts: 0, early_dropped_pkts: i, ..ineffective(i) }),
            [""; 0],
            "these are drops"
        );
    }

    #[test]
    fn a_lasting_warning_is_logged_once() {
        let mut monitor = WarningMonitor::new(20e6, 20.0, None);
        let mut new = Vec::new();
        for i in 0..6000 {
            // Packets wait in the fourth of six windows.
            let backlog_bytes = if i / 1000 == 3 { 3000 } else { 0 };
            monitor.add(&Sample { t_s: i as f64 * 0.01, rate_bps: 15e6, backlog_bytes, ..Sample::default() }, 0.01);
            new.extend(monitor.take_new());
        }
        assert_eq!(new.len(), 2, "{new:?}");
    }

    /// Warnings after one sample for a whole window.
    fn after_one(sample: Sample) -> Vec<String> {
        WarningMonitor::new(20e6, 20.0, None).add(&Sample { t_s: 10.0, ..sample }, 10.0).to_vec()
    }

    #[test]
    fn a_link_is_in_use_above_a_tenth_of_its_rate() {
        let active = |mbit: f64| after_one(Sample { rate_bps: mbit * 1e6, ..Sample::default() });
        assert_eq!(active(1.9), [""; 0]);
        assert!(active(2.1)[0].starts_with("no packet waited in 10 s at 2.1 Mbit/s of 20.0: "), "{:?}", active(2.1));
        // Nothing is judged before the window ends.
        let mut monitor = WarningMonitor::new(20e6, 20.0, None);
        let early = Sample { t_s: 9.9, rate_bps: 20e6, ..Sample::default() };
        assert_eq!(monitor.add(&early, 9.9), [""; 0]);
        assert_eq!(monitor.add(&Sample { t_s: 10.0, ..early }, 0.1).len(), 1);
    }

    #[test]
    fn marks_are_without_effect_above_one_half_and_twice_the_target() {
        let ineffective = Sample {
            backlog_bytes: 60_000,
            backlog_pkts: 41.0,
            probability: 0.5,
            marked_pkts: 11,
            early_dropped_pkts: 1,
            ..Sample::default()
        };
        assert!(
            after_one(ineffective)[0].starts_with("marks change nothing: 11 in 10 s"),
            "{:?}",
            after_one(ineffective)
        );
        for other in [
            Sample { backlog_pkts: 40.0, ..ineffective },
            Sample { probability: 0.49, ..ineffective },
            // Ten marks for each drop are not more than ten.
            Sample { marked_pkts: 10, ..ineffective },
        ] {
            assert_eq!(after_one(other), [""; 0], "{other:?}");
        }
        // Nine of ten samples are not more than nine of ten.
        let active = |count: u32| {
            let mut monitor = WarningMonitor::new(20e6, 20.0, None);
            let sample =
                |i: u32| Sample { t_s: f64::from(i), backlog_pkts: if i <= count { 41.0 } else { 9.0 }, ..ineffective };
            (1..=10).map(|i| monitor.add(&sample(i), 1.0).len()).last()
        };
        assert_eq!([active(9), active(10)], [Some(0), Some(1)]);
    }

    #[test]
    fn each_window_is_judged_separately() {
        let mut monitor = WarningMonitor::new(20e6, 20.0, None);
        let at = |t_s: f64, marked_pkts, backlog_pkts| Sample {
            t_s,
            backlog_bytes: 60_000,
            backlog_pkts,
            probability: 1.0,
            marked_pkts,
            early_dropped_pkts: 100,
            ..Sample::default()
        };
        // 500 marks and 100 drops; then 400 more marks and no drop; then the queue is short.
        assert_eq!(monitor.add(&at(10.0, 500, 70.0), 10.0), [""; 0]);
        let active = monitor.add(&at(20.0, 900, 70.0), 10.0);
        assert!(active.len() == 1 && active[0].starts_with("marks change nothing: 400 in 10 s"), "{active:?}");
        assert_eq!(monitor.add(&at(30.0, 1900, 9.0), 10.0), [""; 0]);
    }

    #[test]
    fn overloads_of_buffer_and_machine_cause_warnings() {
        // Counts of the second window; those of the first are separate.
        let active = |totals: Totals| {
            let mut monitor = WarningMonitor::new(20e6, 20.0, None);
            let at = |t_s| Sample { t_s, backlog_bytes: 1, ..Sample::default() };
            let before = Totals { arrived_pkts: 500, departed_pkts: 500, steps: 1000, ..Totals::default() };
            assert_eq!(monitor.update(&at(10.0), &before, 10.0), [""; 0]);
            let sum = Totals {
                arrived_pkts: 500 + totals.arrived_pkts,
                departed_pkts: 500 + totals.departed_pkts,
                steps: 1000 + totals.steps,
                ..totals
            };
            let active = monitor.update(&at(20.0), &sum, 10.0).to_vec();
            assert_eq!(monitor.take_new(), active);
            active
        };
        let usual = Totals { arrived_pkts: 10_000, departed_pkts: 9900, steps: 900, ..Totals::default() };
        let room = |overflow_dropped_pkts| active(Totals { overflow_dropped_pkts, ..usual });
        assert_eq!(room(100), [""; 0], "one in a hundred");
        assert!(
            room(101)[0].starts_with("overload: 101 of 10000 packets overflowed the buffer in 10 s"),
            "{:?}",
            room(101)
        );
        let late = |missed_steps| active(Totals { missed_steps, ..usual });
        assert_eq!(late(100), [""; 0], "one in ten");
        assert!(
            late(101)[0].starts_with("overload: 101 of 1001 steps of the AQM were missed in 10 s"),
            "{:?}",
            late(101)
        );
        let unfit = |departed_pkts| active(Totals { arrived_pkts: 0, departed_pkts, ..usual });
        assert_eq!(unfit(100), [""; 0]);
        assert!(unfit(101)[0].starts_with("nothing is regulated: 101 packets left"), "{:?}", unfit(101));
    }

    #[test]
    fn a_standing_warning_is_logged_once_and_stays() {
        let mut monitor = WarningMonitor::new(20e6, 20.0, Some("other classes".into()));
        for t_s in 0..30 {
            assert_eq!(monitor.add(&Sample { t_s: f64::from(t_s), ..Sample::default() }, 1.0), ["other classes"]);
            assert_eq!(monitor.take_new().len(), usize::from(t_s == 0));
        }
    }
}
