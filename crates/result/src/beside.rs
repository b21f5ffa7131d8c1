//! What the equations predict beside what a run measured, and the likely cause where the two differ, in words.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::Swing;

/// Windows below this hardly ever repair a loss without a time-out.
const SMALL_WINDOW_PKTS: f64 = 4.0;

/// What is predicted of a link in a window, as a prediction's JSON has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Predicted {
    /// Flows that the link holds back.
    pub flows: f64,
    /// Capacity, packets/s.
    pub capacity_pps: f64,
    /// Departed / capacity.
    pub utilization: f64,
    /// Packets waiting.
    pub queue_pkts: f64,
    /// Share of the packets that are marked or lost; `None` where it is not known.
    pub probability: Option<f64>,
    /// The analysis; `None` where no flow is held back.
    pub analysis: Option<Analysed>,
}

/// What is read of an analysis.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Analysed {
    /// Name of the algorithm.
    pub aqm: String,
    /// Where the queue rests.
    pub operating_point: Rest,
    /// Margins of the loop; `None` for an AQM that is none, or where nobody asked.
    pub margins: Option<Margins>,
    /// The oscillation that is to be seen.
    pub expected: Oscillation,
    /// How far packets move the queue around its rest.
    pub noise: Noise,
}

/// An operating point.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Rest {
    /// Window, W0, packets.
    pub window_pkts: f64,
    /// Probability that holds the queue there, p0; `None` where none is known.
    pub probability: Option<f64>,
    /// Whether that is one.
    pub feasible: bool,
}

/// Margins of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Margins {
    /// Those of the exact linearisation.
    pub exact: Exact,
}

/// Margins with the exact linearisation.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Exact {
    /// Whether the closed loop is stable.
    pub stable: bool,
    /// The factor of the gain at which it is no more; `None`: no gain is too large, or none is stable.
    pub gain_margin: Option<f64>,
    /// Smallest phase margin, degrees.
    pub phase_margin_deg: Option<f64>,
}

/// An oscillation.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Oscillation {
    /// Its period, seconds.
    pub oscillation_period_s: Option<f64>,
    /// Deviation of the queue in it, packets.
    pub oscillation_std_pkts: Option<f64>,
    /// Of a stable loop: the period of the cycle that it stays on from a large start, seconds.
    pub coexisting_period_s: Option<f64>,
    /// Deviation of the queue in that cycle, packets.
    pub coexisting_std_pkts: Option<f64>,
}

/// The noise of packets.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Noise {
    /// Whether the figures hold.
    pub valid: bool,
    /// Standard deviation of the queue, packets.
    pub queue_std_pkts: Option<f64>,
    /// Root of the mean square of its distance from the target, packets.
    pub qacd_pkts: Option<f64>,
    /// Its 95th percentile, packets.
    pub queue_p95_pkts: Option<f64>,
    /// Share of the capacity that is lost while it is empty.
    pub utilization_lost: Option<f64>,
}

/// What is read of a link's metrics in a window. An engine may lack any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Packets waiting, on average.
    pub queue_mean_pkts: Option<f64>,
    /// Their standard deviation.
    pub queue_std_pkts: Option<f64>,
    /// Departed / capacity.
    pub utilization: Option<f64>,
    /// Time in the queue, seconds.
    pub sojourn_mean_s: Option<f64>,
    /// Root of the mean square of the queue's distance from the target, packets.
    pub qacd_pkts: Option<f64>,
    /// 95th percentile of the queue, packets.
    pub queue_p95_pkts: Option<f64>,
    /// Share of the packets that are marked.
    pub mark_ratio: Option<f64>,
    /// Share that the AQM drops.
    pub early_drop_ratio: Option<f64>,
    /// Share that finds no room.
    pub overflow_drop_ratio: Option<f64>,
}

/// What a run was seen to do beside a link's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen<'a> {
    /// Whether the queue swings, where that was looked at.
    pub swing: Option<&'a Swing>,
    /// Time-outs of all flows, where the engine counts them.
    pub timeouts: Option<u64>,
    /// Whether the prediction says of margins.
    pub loops: bool,
}

/// Prediction and measurement of one link in one window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// What the equations say, by quantity.
    pub predicted: IndexMap<&'static str, Option<f64>>,
    /// What the run measured.
    pub measured: IndexMap<&'static str, Option<f64>>,
    /// The operating point, and what is known of the loop there.
    pub point: IndexMap<&'static str, f64>,
    /// The likely cause of what differs, most important first.
    pub notes: Vec<String>,
}

/// Sets one prediction beside one measurement.
pub fn beside(predicted: &Predicted, measured: &Measured, seen: &Seen<'_>) -> Beside {
    let signalled = measured.signalled();
    // What packets add to the equations' rest, where that is known.
    let noise = predicted.analysis.as_ref().map(|analysis| analysis.noise).filter(|noise| noise.valid);
    let lost = noise.and_then(|noise| noise.utilization_lost).unwrap_or(0.0);
    Beside {
        predicted: IndexMap::from([
            ("queue_mean_pkts", Some(predicted.queue_pkts)),
            ("signal_ratio", predicted.probability),
            ("utilization", Some(predicted.utilization - lost)),
            ("sojourn_mean_s", Some(predicted.queue_pkts / predicted.capacity_pps)),
            ("queue_std_pkts", noise.and_then(|noise| noise.queue_std_pkts)),
            ("qacd_pkts", noise.and_then(|noise| noise.qacd_pkts)),
            ("queue_p95_pkts", noise.and_then(|noise| noise.queue_p95_pkts)),
        ]),
        measured: IndexMap::from([
            ("queue_mean_pkts", measured.queue_mean_pkts),
            ("utilization", measured.utilization),
            ("sojourn_mean_s", measured.sojourn_mean_s),
            ("queue_std_pkts", measured.queue_std_pkts),
            ("qacd_pkts", measured.qacd_pkts),
            ("queue_p95_pkts", measured.queue_p95_pkts),
            ("signal_ratio", signalled),
        ]),
        point: predicted.analysis.as_ref().map(Analysed::point).unwrap_or_default(),
        notes: match &predicted.analysis {
            Some(analysis) => Case { predicted, analysis, measured, seen }.notes(signalled),
            None if predicted.flows == 0.0 => {
                vec!["no flow is held back by this link: the queue is expected to be empty".into()]
            }
            None => vec!["the flows' own windows hold them back: the queue is expected to be empty".into()],
        },
    }
}

impl Measured {
    /// Share of the packets that are marked or lost.
    fn signalled(&self) -> Option<f64> {
        Some(self.mark_ratio? + self.early_drop_ratio? + self.overflow_drop_ratio?)
    }
}

impl Analysed {
    fn point(&self) -> IndexMap<&'static str, f64> {
        let exact = self.margins.map(|margins| margins.exact);
        let noise = Some(self.noise).filter(|noise| noise.valid);
        let known = [
            ("window_pkts", Some(self.operating_point.window_pkts)),
            ("probability", self.operating_point.probability),
            ("gain_margin", exact.and_then(|exact| exact.gain_margin)),
            ("phase_margin_deg", exact.and_then(|exact| exact.phase_margin_deg)),
            ("oscillation_period_s", self.expected.oscillation_period_s),
            ("oscillation_std_pkts", self.expected.oscillation_std_pkts),
            ("coexisting_period_s", self.expected.coexisting_period_s),
            ("coexisting_std_pkts", self.expected.coexisting_std_pkts),
            ("queue_std_pkts", noise.and_then(|noise| noise.queue_std_pkts)),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A link in a window where something is expected.
struct Case<'a> {
    predicted: &'a Predicted,
    analysis: &'a Analysed,
    measured: &'a Measured,
    seen: &'a Seen<'a>,
}

impl Case<'_> {
    /// What is to be said, most important first.
    fn notes(&self, signalled: Option<f64>) -> Vec<String> {
        let all = [self.beyond(), self.swings(), self.small_windows(), self.signals(signalled), self.offset()];
        all.into_iter().flatten().collect()
    }

    /// No probability holds the queue where it is to be.
    fn beyond(&self) -> Option<String> {
        let rest = self.analysis.operating_point;
        (!rest.feasible).then(|| {
            format!(
                "p0 = {:.2} would have to be above 1: every packet is signalled, and the queue settles where that holds \
                 it",
                rest.probability.unwrap_or(f64::NAN)
            )
        })
    }

    /// Whether an oscillation is expected, and whether one is seen.
    fn swings(&self) -> Option<String> {
        let exact = self.analysis.margins?.exact;
        let deviation = self.measured.queue_std_pkts.unwrap_or(0.0);
        let swing = self.seen.swing.filter(|swing| swing.oscillates);
        let often = |period_s: Option<f64>| match period_s {
            Some(period_s) => format!("{} s", general(period_s, 2)),
            None => "without a clear period".into(),
        };
        let seen = match swing {
            Some(swing) => format!("seen {}, ±{deviation:.0}", often(swing.period_s)),
            None => "none seen".into(),
        };
        let Oscillation { oscillation_period_s, oscillation_std_pkts, .. } = self.analysis.expected;
        if !exact.stable {
            let Some((gain, period_s)) = exact.gain_margin.zip(oscillation_period_s) else {
                return Some(format!("unstable: oscillation expected, {seen}"));
            };
            let height = oscillation_std_pkts.map_or(String::new(), |height| format!(", ±{height:.0} packets"));
            let period = general(period_s, 2);
            return Some(format!("gain margin {gain:.2}: limit cycle expected, period {period} s{height}, {seen}"));
        }
        let least = match exact.gain_margin {
            None => "no limit to its gain".into(),
            Some(gain) => format!("a gain margin of {gain:.2}"),
        };
        let Oscillation { coexisting_period_s, coexisting_std_pkts, .. } = self.analysis.expected;
        if let Some((period_s, height)) = coexisting_period_s.zip(coexisting_std_pkts) {
            let period = general(period_s, 2);
            return Some(format!(
                "the loop has {least}, but from a large start stays on a cycle: period {period} s, ±{height:.0} packets, {seen}"
            ));
        }
        let swing = swing?;
        let period = swing.period_s.map_or(String::new(), |s| format!(" with period {} s", general(s, 2)));
        Some(format!(
            "the loop has {least}, yet the queue swings by ±{deviation:.0} packets{period} ({}): changes of the network in \
             this window, or packets where the equations have averages",
            swing.why
        ))
    }

    fn small_windows(&self) -> Option<String> {
        let window = self.analysis.operating_point.window_pkts;
        (window < SMALL_WINDOW_PKTS).then(|| {
            let counted = self.seen.timeouts.map_or(String::new(), |timeouts| format!(" ({timeouts} seen)"));
            format!("windows of {window:.1} packets, under {SMALL_WINDOW_PKTS}: time-outs rule{counted}")
        })
    }

    /// More or fewer packets are signalled.
    fn signals(&self, signalled: Option<f64>) -> Option<String> {
        let expected = self.predicted.probability?;
        let signalled = signalled.filter(|seen| expected > 0.0 && !(0.75..=1.33).contains(&(seen / expected)))?;
        let cause = if signalled < expected {
            "signals that come together count once a round trip, and a time-out costs more than half a window"
        } else {
            "more traffic, or quicker recovery, than the equations have"
        };
        let (seen, expected) = (general(signalled, 3), general(expected, 3));
        Some(format!("a share of {seen} is signalled where {expected} was expected: {cause}"))
    }

    /// The queue is longer or shorter.
    fn offset(&self) -> Option<String> {
        let expected = self.predicted.queue_pkts;
        let queue =
            self.measured.queue_mean_pkts.filter(|queue| (queue - expected).abs() > (0.15 * expected).max(5.0))?;
        let overflow = self.measured.overflow_drop_ratio.unwrap_or(0.0);
        let utilization = self.measured.utilization.unwrap_or(0.0);
        let cause = if overflow > 1e-3 && self.analysis.aqm != "droptail" {
            format!("the buffer overflows ({:.1}% lost), where the AQM's answer is cut off", overflow * 100.0)
        } else if utilization < 0.98 {
            let used = utilization * 100.0;
            format!("the queue runs empty (utilisation {used:.1}%), where it cannot swing as far down as up")
        } else if self.predicted.probability.is_none() {
            "no share of signals holds these windows, so that p and the queue move".into()
        } else if self.seen.loops && self.analysis.margins.is_none() {
            "this AQM has no operating point of its own".into()
        } else {
            "start-up and changes are part of this window, or the operating point is not reached in it".into()
        };
        Some(format!("the queue averages {queue:.0} packets where {expected:.0} were expected: {cause}"))
    }
}

/// `value` with so many significant digits and no zeros at its end, as `%g` of C writes it.
fn general(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let bare = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", bare(mantissa), exponent.abs());
    }
    bare(&format!("{value:.*}", (digits as i32 - 1 - exponent) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that rests at 100 packets, p0 = 0.1, in windows of 8 packets: 1000 packets/s.
    fn predicted() -> Predicted {
        Predicted {
            flows: 10.0,
            capacity_pps: 1000.0,
            utilization: 1.0,
            queue_pkts: 100.0,
            probability: Some(0.1),
            analysis: Some(Analysed {
                aqm: "pi".into(),
                operating_point: Rest { window_pkts: 8.0, probability: Some(0.1), feasible: true },
                margins: Some(Margins {
                    exact: Exact { stable: true, gain_margin: Some(2.5), phase_margin_deg: Some(60.0) },
                }),
                expected: Oscillation {
                    oscillation_period_s: None,
                    oscillation_std_pkts: None,
                    coexisting_period_s: None,
                    coexisting_std_pkts: None,
                },
                noise: Noise {
                    valid: true,
                    queue_std_pkts: Some(12.0),
                    qacd_pkts: Some(12.0),
                    queue_p95_pkts: Some(120.0),
                    utilization_lost: Some(0.01),
                },
            }),
        }
    }

    fn measured() -> Measured {
        Measured {
            queue_mean_pkts: Some(101.0),
            queue_std_pkts: Some(13.0),
            utilization: Some(0.99),
            sojourn_mean_s: Some(0.1),
            mark_ratio: Some(0.1),
            early_drop_ratio: Some(0.0),
            overflow_drop_ratio: Some(0.0),
            ..Measured::default()
        }
    }

    fn swinging(period_s: Option<f64>) -> Swing {
        Swing {
            oscillates: true,
            why: "p = 0 or 1 for 20% of the time".into(),
            period_s,
            std_pkts: 30.0,
            peak_share: 0.6,
            irregularity: 0.5,
            bound_share: 0.2,
            autocorrelation: 0.0,
        }
    }

    fn seen(swing: Option<&Swing>) -> Seen<'_> {
        Seen { swing, timeouts: Some(7), loops: true }
    }

    /// The only note of what `change` makes of a case in which all is as expected.
    fn note(swing: Option<&Swing>, change: impl Fn(&mut Predicted, &mut Analysed, &mut Measured)) -> String {
        let (mut expected, mut measured) = (predicted(), measured());
        let mut analysis = expected.analysis.take().expect("it has one");
        change(&mut expected, &mut analysis, &mut measured);
        expected.analysis = Some(analysis);
        let [note] = &beside(&expected, &measured, &seen(swing)).notes[..] else { panic!("one note") };
        note.clone()
    }

    #[test]
    fn what_is_as_expected_needs_no_note_and_noise_is_taken_into_account() {
        let told = beside(&predicted(), &measured(), &seen(None));
        assert_eq!(told.notes, [""; 0]);
        // 1 less the hundredth that is lost while the queue is empty; 100 packets at 1000 packets/s.
        assert_eq!(told.predicted["utilization"], Some(0.99));
        assert_eq!(told.predicted["sojourn_mean_s"], Some(0.1));
        assert_eq!(told.predicted["queue_p95_pkts"], Some(120.0));
        assert_eq!((told.measured["signal_ratio"], told.measured["qacd_pkts"]), (Some(0.1), None));
        let names: Vec<&str> = told.point.keys().copied().collect();
        assert_eq!(names, ["window_pkts", "probability", "gain_margin", "phase_margin_deg", "queue_std_pkts"]);
    }

    #[test]
    fn without_a_flow_that_is_held_back_the_queue_is_to_be_empty() {
        let mut expected = Predicted { analysis: None, ..predicted() };
        let notes = |expected: &Predicted| beside(expected, &Measured::default(), &Seen::default()).notes;
        let empty = "the queue is expected to be empty";
        assert_eq!(notes(&expected), [format!("the flows' own windows hold them back: {empty}")]);
        expected.flows = 0.0;
        assert_eq!(notes(&expected), [format!("no flow is held back by this link: {empty}")]);
    }

    #[test]
    fn an_oscillation_is_told_as_it_was_expected_and_seen() {
        let unstable = |analysis: &mut Analysed, gain| {
            analysis.margins =
                Some(Margins { exact: Exact { stable: false, gain_margin: gain, phase_margin_deg: None } });
            analysis.expected.oscillation_period_s = Some(3.25);
            analysis.expected.oscillation_std_pkts = Some(40.4);
        };
        let expected = "gain margin 0.50: limit cycle expected, period 3.2 s, ±40 packets, ";
        let swing = swinging(Some(3.5));
        assert_eq!(note(Some(&swing), |_, a, _| unstable(a, Some(0.5))), format!("{expected}seen 3.5 s, ±13"));
        let swing = swinging(None);
        let unclear = format!("{expected}seen without a clear period, ±13");
        assert_eq!(note(Some(&swing), |_, a, _| unstable(a, Some(0.5))), unclear);
        assert_eq!(note(None, |_, a, _| unstable(a, None)), "unstable: oscillation expected, none seen");
        let though = "the loop has a gain margin of 2.50, yet the queue swings by ±13 packets \
                      (p = 0 or 1 for 20% of the time)";
        assert!(note(Some(&swing), |_, _, _| {}).starts_with(though));
    }

    #[test]
    fn a_cycle_beside_a_stable_rest_is_told_whether_it_is_seen_or_not() {
        let beside_rest = |analysis: &mut Analysed| {
            analysis.expected.coexisting_period_s = Some(2.77);
            analysis.expected.coexisting_std_pkts = Some(68.3);
        };
        let expected =
            "the loop has a gain margin of 2.50, but from a large start stays on a cycle: period 2.8 s, ±68 packets, ";
        let swing = swinging(Some(2.9));
        assert_eq!(note(Some(&swing), |_, a, _| beside_rest(a)), format!("{expected}seen 2.9 s, ±13"));
        assert_eq!(note(None, |_, a, _| beside_rest(a)), format!("{expected}none seen"));
        let mut at = predicted();
        beside_rest(at.analysis.as_mut().expect("it has one"));
        let point = beside(&at, &measured(), &seen(None)).point;
        assert_eq!((point["coexisting_period_s"], point["coexisting_std_pkts"]), (2.77, 68.3));
    }

    #[test]
    fn a_point_beyond_reach_and_small_windows_are_told() {
        let beyond = note(None, |_, analysis, _| {
            analysis.operating_point = Rest { window_pkts: 4.0, probability: Some(1.5), feasible: false };
        });
        assert!(beyond.starts_with("p0 = 1.50 would have to be above 1"), "{beyond}");
        let small = note(None, |_, analysis, _| analysis.operating_point.window_pkts = 3.96);
        assert_eq!(small, "windows of 4.0 packets, under 4: time-outs rule (7 seen)");
    }

    #[test]
    fn the_likely_cause_of_a_difference_follows_from_what_else_was_measured() {
        // 0.1 was expected: 0.075 and 0.133 are still as expected, beyond that they are not.
        let signalled = |share| note(None, move |_, _, measured| measured.mark_ratio = Some(share));
        let fewer = "a share of 0.0749 is signalled where 0.1 was expected: signals that come together";
        assert!(signalled(0.0749).starts_with(fewer));
        assert!(signalled(0.134).starts_with("a share of 0.134 is signalled where 0.1 was expected: more traffic"));
        let off = |change: fn(&mut Analysed, &mut Measured)| {
            note(None, move |_, analysis, measured| {
                measured.queue_mean_pkts = Some(120.0);
                change(analysis, measured);
            })
        };
        let cause = |note: String| {
            note.strip_prefix("the queue averages 120 packets where 100 were expected: ")
                .expect("it is told")
                .to_string()
        };
        let full = cause(off(|_, measured| measured.overflow_drop_ratio = Some(0.0126)));
        assert!(full.starts_with("the buffer overflows (1.3% lost)"), "{full}");
        let idle = cause(off(|_, measured| measured.utilization = Some(0.9)));
        assert!(idle.starts_with("the queue runs empty (utilisation 90.0%)"), "{idle}");
        assert!(cause(off(|analysis, _| analysis.margins = None)).starts_with("this AQM has no operating point"));
        assert!(cause(off(|_, _| {})).starts_with("start-up and changes"));
        let moves = note(None, |at, analysis, measured| {
            (at.probability, analysis.operating_point.probability, analysis.margins) = (None, None, None);
            measured.queue_mean_pkts = Some(120.0);
        });
        assert!(cause(moves).starts_with("no share of signals holds these windows"));
    }

    #[test]
    fn numbers_are_written_short() {
        let cases = [(3.25, 2, "3.2"), (0.1, 3, "0.1"), (12.0, 2, "12"), (123.0, 2, "1.2e+02"), (0.0, 3, "0")];
        for (value, digits, text) in
            cases.into_iter().chain([(0.000_012_34, 3, "1.23e-05"), (0.000_123_4, 3, "0.000123")])
        {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn a_queue_is_off_beyond_five_packets_and_beyond_fifteen_percent() {
        // (expected, measured, told)
        for (expected, queue, told) in [
            (20.0, 25.0, false),
            (20.0, 15.0, false),
            (20.0, 25.5, true),
            (20.0, 14.5, true),
            (100.0, 114.0, false),
            (100.0, 86.0, false),
            (100.0, 116.0, true),
            (100.0, 84.0, true),
        ] {
            let expected = Predicted { queue_pkts: expected, ..predicted() };
            let measured = Measured { queue_mean_pkts: Some(queue), ..measured() };
            let notes = beside(&expected, &measured, &seen(None)).notes;
            let said = format!("the queue averages {queue:.0} packets where {:.0} were expected", expected.queue_pkts);
            assert_eq!(notes.iter().any(|note| note.starts_with(&said)), told, "{queue}: {notes:?}");
        }
    }
}
