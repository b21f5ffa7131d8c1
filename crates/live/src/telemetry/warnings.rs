//! Warnings: what a person should know of a queue that does not do what was meant.

use super::Sample;

/// What is looked back on, seconds.
const WINDOW_S: f64 = 10.0;
/// A link is in use above this share of its rate.
const IN_USE: f64 = 0.1;
/// From this probability on responsive traffic gives way.
const STRONG: f64 = 0.5;

/// Watches the samples of one attachment.
#[derive(Debug)]
pub(crate) struct Watch {
    rate_bps: f64,
    target_pkts: f64,
    since_s: f64,
    start: Sample,
    sums: Sums,
    found: Vec<String>,
    /// Which of the warnings hold, and those that did not before the last look.
    holds: [bool; 2],
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
    /// Over a link of `rate_bps` whose queue is to be `target_pkts`.
    pub(crate) fn new(rate_bps: f64, target_pkts: f64) -> Self {
        Watch {
            rate_bps,
            target_pkts,
            since_s: 0.0,
            start: Sample::default(),
            sums: Sums::default(),
            found: Vec::new(),
            holds: [false; 2],
            news: Vec::new(),
        }
    }

    /// What holds since the last time this was asked, and did not before: for a log.
    pub(crate) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// One sample more, `interval_s` after the one before. The warnings that hold.
    pub(crate) fn see(&mut self, sample: &Sample, interval_s: f64) -> &[String] {
        let sums = &mut self.sums;
        sums.samples += 1;
        sums.waited += u32::from(sample.backlog_bytes > 0);
        sums.vain += u32::from(sample.probability >= STRONG && sample.backlog_pkts > 2.0 * self.target_pkts);
        sums.bits += sample.rate_bps * interval_s;
        let passed_s = sample.t_s - self.since_s;
        if passed_s >= WINDOW_S {
            self.judge(sample, passed_s);
            (self.since_s, self.start, self.sums) = (sample.t_s, *sample, Sums::default());
        }
        &self.found
    }

    fn judge(&mut self, end: &Sample, passed_s: f64) {
        let sums = self.sums;
        let rate_bps = sums.bits / passed_s;
        let marked = end.marked_pkts - self.start.marked_pkts;
        let dropped = end.early_dropped_pkts - self.start.early_dropped_pkts;
        let holds = [
            sums.waited == 0 && rate_bps > IN_USE * self.rate_bps,
            f64::from(sums.vain) > 0.9 * f64::from(sums.samples) && marked > 10 * dropped,
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
        ];
        self.found.clear();
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

    /// Ten and a half seconds of samples that `make` makes of their number.
    fn after(make: impl Fn(u64) -> Sample) -> Vec<String> {
        let mut watch = Watch::new(20e6, 20.0);
        let mut found = Vec::new();
        for i in 0..1050 {
            found = watch.see(&Sample { t_s: i as f64 * 0.01, ..make(i) }, 0.01).to_vec();
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
        let mut watch = Watch::new(20e6, 20.0);
        let mut news = Vec::new();
        for i in 0..6000 {
            // Packets wait in the fourth of six stretches of ten seconds.
            let backlog_bytes = if i / 1000 == 3 { 3000 } else { 0 };
            watch.see(&Sample { t_s: i as f64 * 0.01, rate_bps: 15e6, backlog_bytes, ..Sample::default() }, 0.01);
            news.extend(watch.news());
        }
        assert_eq!(news.len(), 2, "{news:?}");
    }

    /// What is found after one sample for all of ten seconds.
    fn after_one(sample: Sample) -> Vec<String> {
        Watch::new(20e6, 20.0).see(&Sample { t_s: 10.0, ..sample }, 10.0).to_vec()
    }

    #[test]
    fn a_link_is_in_use_above_a_tenth_of_its_rate() {
        let found = |mbit: f64| after_one(Sample { rate_bps: mbit * 1e6, ..Sample::default() });
        assert_eq!(found(1.9), [""; 0]);
        assert!(found(2.1)[0].starts_with("no packet waited in 10 s at 2.1 Mbit/s of 20.0: "), "{:?}", found(2.1));
        // Nothing is judged before its time.
        let mut watch = Watch::new(20e6, 20.0);
        let early = Sample { t_s: 9.9, rate_bps: 20e6, ..Sample::default() };
        assert_eq!(watch.see(&early, 9.9), [""; 0]);
        assert_eq!(watch.see(&Sample { t_s: 10.0, ..early }, 0.1).len(), 1);
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
            let mut watch = Watch::new(20e6, 20.0);
            let sample =
                |i: u32| Sample { t_s: f64::from(i), backlog_pkts: if i <= in_vain { 41.0 } else { 9.0 }, ..vain };
            (1..=10).map(|i| watch.see(&sample(i), 1.0).len()).last()
        };
        assert_eq!([found(9), found(10)], [Some(0), Some(1)]);
    }

    #[test]
    fn each_ten_seconds_are_judged_by_themselves() {
        let mut watch = Watch::new(20e6, 20.0);
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
        assert_eq!(watch.see(&at(10.0, 500, 70.0), 10.0), [""; 0]);
        let found = watch.see(&at(20.0, 900, 70.0), 10.0);
        assert!(found.len() == 1 && found[0].starts_with("marks change nothing: 400 in 10 s"), "{found:?}");
        assert_eq!(watch.see(&at(30.0, 1900, 9.0), 10.0), [""; 0]);
    }
}
