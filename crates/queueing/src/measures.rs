//! Performance measures of the queue, from its stationary distribution.

use crate::delay::Delay;
use crate::early::Action;
use crate::solve::{Distribution, packets};
use crate::sum::{CompensatedSum, sum};

/// Performance measures of a model. Ratios are relative to the packets offered; undefined values, such as the loss
/// ratio of a silent source, are NaN.
#[derive(Clone, Debug)]
pub struct Measures {
    /// Distribution of the number of packets in the system, including the one in service, b = 0 to L; averaged over
    /// time.
    pub occupancy: Vec<f64>,
    /// Mean number of packets in the system, E\[N\].
    pub occupancy_mean_pkts: f64,
    /// Variance of that number.
    pub occupancy_variance_pkts2: f64,
    /// Fraction of time in which the server is busy.
    pub utilization: f64,
    /// Packets served per second.
    pub throughput_pps: f64,
    /// Measures of each source.
    pub sources: Vec<Stream>,
    /// Measures of the superposition.
    pub total: Stream,
}

/// Measures of the packets of one source, or of all.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Packets offered per second.
    pub offered_pps: f64,
    /// Packets accepted per second.
    pub accepted_pps: f64,
    /// Packets per second that find the buffer full.
    pub overflow_pps: f64,
    /// Packets per second dropped early by the threshold function.
    pub early_dropped_pps: f64,
    /// Packets per second accepted with a mark of the threshold function.
    pub marked_pps: f64,
    /// Fraction lost, early or by overflow.
    pub loss_ratio: f64,
    /// Fraction lost by overflow.
    pub overflow_drop_ratio: f64,
    /// Fraction dropped early.
    pub early_drop_ratio: f64,
    /// Fraction marked.
    pub mark_ratio: f64,
    /// Delay of the accepted packets: waiting and service.
    pub delay: Delay,
}

/// Stationary distribution of a queue, with its rates and thresholds.
pub(crate) struct Solution<'a> {
    pub(crate) distribution: &'a Distribution,
    /// rates[s][j]: packets per second of source s in joint state j.
    pub(crate) rates: &'a [Vec<f64>],
    /// early[s][b]: probability of a drop or mark of source s with b packets present.
    pub(crate) early: &'a [Vec<f64>],
    pub(crate) action: Action,
    pub(crate) capacity: usize,
    pub(crate) stages: usize,
    pub(crate) stage_rate: f64,
}

impl Solution<'_> {
    pub(crate) fn measures(&self) -> Measures {
        let (last, states) = (self.capacity * self.stages, self.rates[0].len());
        let mut occupancy = Vec::with_capacity(self.capacity + 1);
        // levels[s][b]: packets per second of source s that arrive with b packets present.
        let mut levels = vec![Vec::with_capacity(self.capacity + 1); self.rates.len()];
        let mut level = vec![CompensatedSum::default(); states];
        for k in 0..=last {
            self.distribution.at(k).iter().zip(&mut level).for_each(|(p, sum)| sum.add(*p));
            if k % self.stages == 0 {
                let joint: Vec<f64> = level.iter_mut().map(|sum| std::mem::take(sum).value()).collect();
                occupancy.push(sum(joint.iter().copied()));
                for (own, rates) in levels.iter_mut().zip(self.rates) {
                    own.push(sum(joint.iter().zip(rates).map(|(p, rate)| p * rate)));
                }
            }
        }
        let mean = sum(occupancy.iter().enumerate().map(|(b, p)| b as f64 * p));
        let variance = sum(occupancy.iter().enumerate().map(|(b, p)| (b as f64 - mean) * (b as f64 - mean) * p));
        // A packet departs when the last stage of its service ends.
        let throughput_pps = self.stage_rate
            * sum((0..self.capacity).flat_map(|b| self.distribution.at(b * self.stages + 1).iter().copied()));

        let counts: Vec<Rates> = (0..self.rates.len()).map(|s| self.rates_of(s, &levels[s])).collect();
        let sources: Vec<Stream> = counts.iter().map(|rates| self.stream(rates)).collect();
        let mut all = Rates { found: vec![0.0; counts[0].found.len()], ..Rates::default() };
        for rates in &counts {
            all.offered += rates.offered;
            all.overflow += rates.overflow;
            all.chosen += rates.chosen;
            all.found.iter_mut().zip(&rates.found).for_each(|(all, own)| *all += own);
        }
        Measures {
            occupancy_mean_pkts: mean,
            occupancy_variance_pkts2: variance,
            utilization: sum(occupancy[1..].iter().copied()),
            throughput_pps,
            total: self.stream(&all),
            sources,
            occupancy,
        }
    }

    fn rates_of(&self, s: usize, levels: &[f64]) -> Rates {
        let admitted = |b: usize| if self.action == Action::Drop { 1.0 - self.early[s][b] } else { 1.0 };
        Rates {
            offered: sum(levels.iter().copied()),
            overflow: levels[self.capacity],
            chosen: sum((0..self.capacity).map(|b| levels[b] * self.early[s][b])),
            found: (0..=(self.capacity - 1) * self.stages)
                .map(|k| {
                    let arriving: f64 =
                        self.distribution.at(k).iter().zip(&self.rates[s]).map(|(p, rate)| p * rate).sum();
                    arriving * admitted(packets(k, self.stages))
                })
                .collect(),
        }
    }

    fn stream(&self, rates: &Rates) -> Stream {
        let Rates { offered, overflow, chosen, ref found } = *rates;
        let (dropped, marked) = if self.action == Action::Drop { (chosen, 0.0) } else { (0.0, chosen) };
        let share = |pps: f64| if offered > 0.0 { pps / offered } else { f64::NAN };
        Stream {
            offered_pps: offered,
            accepted_pps: sum(found.iter().copied()),
            overflow_pps: overflow,
            early_dropped_pps: dropped,
            marked_pps: marked,
            loss_ratio: share(overflow + dropped),
            overflow_drop_ratio: share(overflow),
            early_drop_ratio: share(dropped),
            mark_ratio: share(marked),
            delay: Delay::new(found, self.stages, self.stage_rate),
        }
    }
}

/// Packet rates of one source, or of all.
#[derive(Default)]
struct Rates {
    offered: f64,
    /// Lost to a full buffer.
    overflow: f64,
    /// Selected by the threshold function while the buffer is not full.
    chosen: f64,
    /// Accepted while k stages are in the system.
    found: Vec<f64>,
}
