//! Warnings: what a person should know of a queue that does not do what was meant.

use super::{Sample, Totals};

/// What is looked back on, seconds.
const WINDOW_S: f64 = 10.0;
/// A link is in use above this share of its rate.
const IN_USE: f64 = 0.1;
/// From this probability on responsive traffic gives way.
const STRONG: f64 = 0.5;
/// More packets than this share of those that arrive find no room: an overload.
const OVERFLOW: f64 = 0.01;
/// More steps than this share are missed: the machine is overloaded.
const MISSED: f64 = 0.1;
/// So many packets leave the queue, and none of them was regulated: they are not those that were meant.
const UNREGULATED_PKTS: u64 = 100;

/// Watches the samples of one attachment.
#[derive(Debug)]
pub(crate) struct Watch {
    rate_bps: f64,
    target_pkts: f64,
    since_s: f64,
    start: (Sample, Totals),
    sums: Sums,
    found: Vec<String>,
    /// What holds as long as it is attached.
    standing: Option<String>,
    /// Which of the warnings hold, and those that did not before the last look.
    holds: [bool; 5],
    news: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    samples: u32,
    waited: u32,
    /// A strong probability over a queue twice the target.
    vain: u32,
    bits: f64,
}

impl Watch {
    /// Over a link of `rate_bps` whose queue is to be `target_pkts`; `standing` holds from the beginning to the end.
    pub(crate) fn new(rate_bps: f64, target_pkts: f64, standing: Option<String>) -> Self {
        Watch {
            rate_bps,
            target_pkts,
            since_s: 0.0,
            start: Default::default(),
            sums: Sums::default(),
            found: standing.iter().cloned().collect(),
            news: standing.iter().cloned().collect(),
            standing,
            holds: [false; 5],
        }
    }

    /// What holds since the last time this was asked, and did not before: for a log.
    pub(crate) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// One sample more, `interval_s` after the one before. The warnings that hold.
    pub(crate) fn see(&mut self, sample: &Sample, totals: &Totals, interval_s: f64) -> &[String] {
        let sums = &mut self.sums;
        sums.samples += 1;
        sums.waited += u32::from(sample.backlog_bytes > 0);
        sums.vain += u32::from(sample.probability >= STRONG && sample.backlog_pkts > 2.0 * self.target_pkts);
        sums.bits += sample.rate_bps * interval_s;
        let passed_s = sample.t_s - self.since_s;
        if passed_s >= WINDOW_S {
            self.judge(sample, totals, passed_s);
            (self.since_s, self.start, self.sums) = (sample.t_s, (*sample, *totals), Sums::default());
        }
        &self.found
    }

    fn judge(&mut self, end: &Sample, totals: &Totals, passed_s: f64) {
        let (sums, (start, before)) = (self.sums, &self.start);
        let rate_bps = sums.bits / passed_s;
        let marked = end.marked_pkts - start.marked_pkts;
        let dropped = end.early_dropped_pkts - start.early_dropped_pkts;
        let arrived = totals.arrived_pkts - before.arrived_pkts;
        let departed = totals.departed_pkts - before.departed_pkts;
        let overflowed = totals.overflow_dropped_pkts - before.overflow_dropped_pkts;
        let missed = totals.missed_steps - before.missed_steps;
        let steps = totals.steps - before.steps + missed;
        let holds = [
            sums.waited == 0 && rate_bps > IN_USE * self.rate_bps,
            f64::from(sums.vain) > 0.9 * f64::from(sums.samples) && marked > 10 * dropped,
            arrived > 0 && overflowed as f64 > OVERFLOW * arrived as f64,
            missed as f64 > MISSED * steps as f64,
            arrived == 0 && departed > UNREGULATED_PKTS,
        ];
        let texts = [
            format!(
                "no packet waited in {passed_s:.0} s at {:.1} Mbit/s of {:.1}: the bottleneck is elsewhere, and its queue too; give a lower --rate",
                rate_bps / 1e6,
                self.rate_bps / 1e6
            ),
            format!(
                "marks change nothing: {marked} in {passed_s:.0} s, and the queue stays above twice its target; senders do not respond, \
                 or ECN is bleached on the way; try the AQM with ecn=false"
            ),
            format!(
                "overload: {overflowed} of {arrived} packets found no room in {passed_s:.0} s: traffic does not give way, or the \
                 buffer is too short"
            ),
            format!(
                "overload: {missed} of {steps} steps of the AQM were missed in {passed_s:.0} s: this machine is too busy, or lacks \
                 CAP_SYS_NICE"
            ),
            format!(
                "nothing is regulated: {departed} packets left the queue in {passed_s:.0} s, and none of them fits --only"
            ),
        ];
        self.found = self.standing.iter().cloned().collect();
        for ((text, holds), held) in texts.into_iter().zip(holds).zip(self.holds) {
            if holds {
                self.news.extend((!held).then(|| text.clone()));
                self.found.push(text);
            }
        }
        self.holds = holds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Watch {
        /// A sample of which nothing else is counted.
        fn look(&mut self, sample: &Sample, interval_s: f64) -> &[String] {
            self.see(sample, &Totals::default(), interval_s)
        }
    }

    /// Ten and a half seconds of samples that `make` makes of their number.
    fn after(make: impl Fn(u64) -> Sample) -> Vec<String> {
        let mut watch = Watch::new(20e6, 20.0, None);
        let mut found = Vec::new();
        for i in 0..1050 {
            found = watch.look(&Sample { t_s: i as f64 * 0.01, ..make(i) }, 0.01).to_vec();
        }
        found
    }

    #[test]
    fn traffic_that_never_waits_has_its_bottleneck_elsewhere() {
        let found = after(|_| Sample { rate_bps: 15e6, ..Sample::default() });
        assert!(found.len() == 1 && found[0].contains("the bottleneck is elsewhere"), "{found:?}");
        assert_eq!(after(|_| Sample { rate_bps: 1e6, ..Sample::default() }), [""; 0], "a link that is hardly used");
        let waits = |i| Sample { rate_bps: 15e6, backlog_bytes: u32::from(i == 500), ..Sample::default() };
        assert_eq!(after(waits), [""; 0], "one packet waited once");
    }

    #[test]
    fn marks_without_effect_are_told() {
        let vain = |i| Sample {
            rate_bps: 20e6,
            backlog_bytes: 100_000,
            backlog_pkts: 70.0,
            probability: 1.0,
            marked_pkts: 10 * i,
            ..Sample::default()
        };
        let found = after(vain);
        assert!(found.len() == 1 && found[0].contains("marks change nothing"), "{found:?}");
        assert_eq!(after(|i| Sample { backlog_pkts: 30.0, ..vain(i) }), [""; 0], "the queue is near its target");
        assert_eq!(after(|i| Sample { marked_pkts: 0, ..vain(i) }), [""; 0], "nothing was marked");
        assert_eq!(after(|i| Sample { marked_pkts: 0, early_dropped_pkts: i, ..vain(i) }), [""; 0], "these are drops");
    }

    #[test]
    fn a_warning_that_goes_on_is_news_once() {
        let mut watch = Watch::new(20e6, 20.0, None);
        let mut news = Vec::new();
        for i in 0..6000 {
            // Packets wait in the fourth of six stretches of ten seconds.
            let backlog_bytes = if i / 1000 == 3 { 3000 } else { 0 };
            watch.look(&Sample { t_s: i as f64 * 0.01, rate_bps: 15e6, backlog_bytes, ..Sample::default() }, 0.01);
            news.extend(watch.news());
        }
        assert_eq!(news.len(), 2, "{news:?}");
    }

    /// What is found after one sample for all of ten seconds.
    fn after_one(sample: Sample) -> Vec<String> {
        Watch::new(20e6, 20.0, None).look(&Sample { t_s: 10.0, ..sample }, 10.0).to_vec()
    }

    #[test]
    fn a_link_is_in_use_above_a_tenth_of_its_rate() {
        let found = |mbit: f64| after_one(Sample { rate_bps: mbit * 1e6, ..Sample::default() });
        assert_eq!(found(1.9), [""; 0]);
        assert!(found(2.1)[0].starts_with("no packet waited in 10 s at 2.1 Mbit/s of 20.0: "), "{:?}", found(2.1));
        // Nothing is judged before its time.
        let mut watch = Watch::new(20e6, 20.0, None);
        let early = Sample { t_s: 9.9, rate_bps: 20e6, ..Sample::default() };
        assert_eq!(watch.look(&early, 9.9), [""; 0]);
        assert_eq!(watch.look(&Sample { t_s: 10.0, ..early }, 0.1).len(), 1);
    }

    #[test]
    fn marks_are_in_vain_from_one_half_on_over_more_than_twice_the_target() {
        let vain = Sample {
            backlog_bytes: 60_000,
            backlog_pkts: 41.0,
            probability: 0.5,
            marked_pkts: 11,
            early_dropped_pkts: 1,
            ..Sample::default()
        };
        assert!(after_one(vain)[0].starts_with("marks change nothing: 11 in 10 s"), "{:?}", after_one(vain));
        for other in [
            Sample { backlog_pkts: 40.0, ..vain },
            Sample { probability: 0.49, ..vain },
            // Ten marks for each drop are not more than that.
            Sample { marked_pkts: 10, ..vain },
        ] {
            assert_eq!(after_one(other), [""; 0], "{other:?}");
        }
        // Nine of ten samples are not more than nine of ten.
        let found = |in_vain: u32| {
            let mut watch = Watch::new(20e6, 20.0, None);
            let sample =
                |i: u32| Sample { t_s: f64::from(i), backlog_pkts: if i <= in_vain { 41.0 } else { 9.0 }, ..vain };
            (1..=10).map(|i| watch.look(&sample(i), 1.0).len()).last()
        };
        assert_eq!([found(9), found(10)], [Some(0), Some(1)]);
    }

    #[test]
    fn each_ten_seconds_are_judged_by_themselves() {
        let mut watch = Watch::new(20e6, 20.0, None);
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
        assert_eq!(watch.look(&at(10.0, 500, 70.0), 10.0), [""; 0]);
        let found = watch.look(&at(20.0, 900, 70.0), 10.0);
        assert!(found.len() == 1 && found[0].starts_with("marks change nothing: 400 in 10 s"), "{found:?}");
        assert_eq!(watch.look(&at(30.0, 1900, 9.0), 10.0), [""; 0]);
    }

    #[test]
    fn what_overloads_buffer_or_machine_is_told() {
        // Counts of the second ten seconds; the first ones are not theirs.
        let found = |totals: Totals| {
            let mut watch = Watch::new(20e6, 20.0, None);
            let at = |t_s| Sample { t_s, backlog_bytes: 1, ..Sample::default() };
            let before = Totals { arrived_pkts: 500, departed_pkts: 500, steps: 1000, ..Totals::default() };
            assert_eq!(watch.see(&at(10.0), &before, 10.0), [""; 0]);
            let sum = Totals {
                arrived_pkts: 500 + totals.arrived_pkts,
                departed_pkts: 500 + totals.departed_pkts,
                steps: 1000 + totals.steps,
                ..totals
            };
            let found = watch.see(&at(20.0), &sum, 10.0).to_vec();
            assert_eq!(watch.news(), found);
            found
        };
        let usual = Totals { arrived_pkts: 10_000, departed_pkts: 9900, steps: 900, ..Totals::default() };
        let room = |overflow_dropped_pkts| found(Totals { overflow_dropped_pkts, ..usual });
        assert_eq!(room(100), [""; 0], "one in a hundred");
        assert!(room(101)[0].starts_with("overload: 101 of 10000 packets found no room in 10 s"), "{:?}", room(101));
        let late = |missed_steps| found(Totals { missed_steps, ..usual });
        assert_eq!(late(100), [""; 0], "one in ten");
        assert!(
            late(101)[0].starts_with("overload: 101 of 1001 steps of the AQM were missed in 10 s"),
            "{:?}",
            late(101)
        );
        let unfit = |departed_pkts| found(Totals { arrived_pkts: 0, departed_pkts, ..usual });
        assert_eq!(unfit(100), [""; 0]);
        assert!(unfit(101)[0].starts_with("nothing is regulated: 101 packets left"), "{:?}", unfit(101));
    }

    #[test]
    fn what_stands_is_news_once_and_holds_to_the_end() {
        let mut watch = Watch::new(20e6, 20.0, Some("other classes".into()));
        for t_s in 0..30 {
            assert_eq!(watch.look(&Sample { t_s: f64::from(t_s), ..Sample::default() }, 1.0), ["other classes"]);
            assert_eq!(watch.news().len(), usize::from(t_s == 0));
        }
    }
}
