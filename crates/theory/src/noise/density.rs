//! The density of windows over the steps of their cycles, moved at some frequency: what a cycle is worth that is
//! entered, and what a push on all of them brings. ParkingLot frequencies go through at once, since what a step is does
//! not depend on them.
//!
//! In a step of length h windows are signalled evenly over time, the share 1 - `after` of those who enter it. Of one
//! who enters it,
//!
//! ```text
//! u = (1 - e^{-sh}) / s          is there if it stays; with that chance alone u2 + after (u - u2),
//!                                u2 = (h - u) / (sh),
//! (1 - after) u / h              is signalled,
//! after e^{-sh}                  goes on.
//! ```
//!
//! A push of `by` per window that is there and round trip, e^{st}, adds by (v2 + after (v - v2)), v = (h - u) / s, v2 =
//! (h/2 - u2) / s; by after u goes on; the rest is signalled. What enters is what leaves, is signalled and is there,
//! times s: no window is lost.

use num_complex::Complex64;

use crate::equilibrium::markov_chain::{Cycle, Range};
use crate::linear::complex::exp;

/// Share of the windows below which it does not matter what pushes do to them.
const SELDOM: f64 = 1e-6;
/// Frequencies at once.
pub(crate) const LANES: usize = 4;

/// A complex number at each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    re: [f64; LANES],
    im: [f64; LANES],
}

impl Lanes {
    const ZERO: Lanes = Lanes { re: [0.0; LANES], im: [0.0; LANES] };

    fn from_fn(each: impl Fn(usize) -> Complex64) -> Self {
        let mut lanes = Lanes::ZERO;
        for k in 0..LANES {
            let Complex64 { re, im } = each(k);
            (lanes.re[k], lanes.im[k]) = (re, im);
        }
        lanes
    }

    fn real(x: f64) -> Self {
        Lanes { re: [x; LANES], im: [0.0; LANES] }
    }

    pub(crate) fn get(self, k: usize) -> Complex64 {
        Complex64::new(self.re[k], self.im[k])
    }

    #[inline(always)]
    fn times(self, other: Lanes) -> Self {
        let mut product = Lanes::ZERO;
        for k in 0..LANES {
            product.re[k] = self.re[k] * other.re[k] - self.im[k] * other.im[k];
            product.im[k] = self.re[k] * other.im[k] + self.im[k] * other.re[k];
        }
        product
    }

    /// Adds `by` times `other`.
    #[inline(always)]
    fn add(&mut self, by: f64, other: Lanes) {
        for k in 0..LANES {
            self.re[k] += by * other.re[k];
            self.im[k] += by * other.im[k];
        }
    }

    /// Takes a product off.
    #[inline(always)]
    fn less(&mut self, one: Lanes, other: Lanes) {
        for k in 0..LANES {
            self.re[k] -= one.re[k] * other.re[k] - one.im[k] * other.im[k];
            self.im[k] -= one.re[k] * other.im[k] + one.im[k] * other.re[k];
        }
    }

    fn minus(mut self, other: Lanes) -> Self {
        self.add(-1.0, other);
        self
    }

    fn inverse(self) -> Self {
        let mut inverse = Lanes::ZERO;
        for k in 0..LANES {
            let size = 1.0 / (self.re[k] * self.re[k] + self.im[k] * self.im[k]);
            (inverse.re[k], inverse.im[k]) = (self.re[k] * size, -self.im[k] * size);
        }
        inverse
    }
}

/// A step without its frequency. All is per window that enters the cycle.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Survival times packets in flight beyond the mean, and that with the chance to stay.
    flight: f64,
    stays: f64,
    /// Signalled windows by destination: a state of the range, and one point further.
    to: usize,
    signalled: [f64; 2],
    /// Pushes per window that is there: signals of a higher share, and windows weighted with their flight beyond the
    /// mean.
    push: [f64; 2],
}

/// Steps of one length.
#[derive(Clone, Debug)]
struct Segment {
    rounds: f64,
    cells: Vec<Cell>,
    /// Sums of push times `flight`, and times `stays`, for the two pushes.
    pushed: [[f64; 2]; 2],
}

/// A cycle without its frequency.
#[derive(Clone, Debug)]
struct CycleTrack {
    segments: Vec<Segment>,
    /// Length of the steps in which signals count.
    rounds: f64,
    /// Windows left at the end, and their destination.
    left: [f64; 2],
    last: usize,
    /// Immediate effect of a push on each state: signals times u2, and signals that need no factor.
    at_once: Vec<[[f64; 2]; 2]>,
    /// Mean time in it, and packets in flight times that.
    means: [f64; 2],
}

impl CycleTrack {
    fn new(cycle: &Cycle, range: Range, rate: f64) -> Self {
        let mut means = [0.0; 2];
        let mut survival = 1.0;
        for step in &cycle.steps {
            let after = libm::exp(-rate * step.acks * step.rounds);
            let there = survival * 0.5 * (1.0 + after) * step.rounds;
            means[0] += there;
            means[1] += there * step.flight;
            survival *= after;
        }
        let last = cycle.steps.last().map_or((0, 0.0), |step| range.between(step.to));
        CycleTrack {
            segments: Vec::new(),
            rounds: cycle.steps.last().map_or(1.0, |step| step.rounds),
            left: [survival * (1.0 - last.1), survival * last.1],
            last: last.0,
            at_once: vec![[[0.0; 2]; 2]; range.len()],
            means,
        }
    }

    /// Fills in what needs the mean in flight.
    fn fill(&mut self, cycle: &Cycle, range: Range, (p, rate): (f64, f64), mean: f64) {
        let mut survival = 1.0;
        for step in &cycle.steps {
            let after = libm::exp(-rate * step.acks * step.rounds);
            let beyond = step.flight - mean;
            let (to, part) = range.between(step.to);
            let gone = survival * (1.0 - after);
            let cell = Cell {
                flight: survival * beyond,
                stays: survival * beyond * after,
                to,
                signalled: [gone * (1.0 - part), gone * part],
                push: [-step.acks / (1.0 - p), beyond],
            };
            if self.segments.last().is_none_or(|segment| segment.rounds != step.rounds) {
                self.segments.push(Segment { rounds: step.rounds, cells: Vec::new(), pushed: [[0.0; 2]; 2] });
            }
            if let Some(segment) = self.segments.last_mut() {
                for (pushed, push) in segment.pushed.iter_mut().zip(cell.push) {
                    pushed[0] += push * cell.flight;
                    pushed[1] += push * cell.stays;
                }
                segment.cells.push(cell);
            }
            if step.acks > 0.0 {
                let shares = [1.0 - part, part];
                for (further, share) in shares.into_iter().enumerate() {
                    let here = &mut self.at_once[to + further * range.stride];
                    for (kind, push) in cell.push.into_iter().enumerate() {
                        here[kind][0] += cell.signalled[further] * push;
                    }
                    // Windows that signals take are signalled; those that are added were not there.
                    here[0][1] -= survival * share * 0.5 * step.rounds * (1.0 + after) * cell.push[0];
                }
            }
            survival *= after;
        }
    }
}

/// Factors of a step at each frequency.
#[derive(Clone, Copy, Debug)]
struct Factors {
    back: Lanes,
    u: Lanes,
    u2: Lanes,
    v: Lanes,
    v2: Lanes,
}

impl Factors {
    fn new(s: &[Complex64; LANES], h: f64) -> Self {
        let each = |k: usize| {
            let x = s[k] * h;
            let back = exp(-x);
            if x.l1_norm() < 0.02 {
                // Their series: (1 - e^-x) / x, then each less its first term, over x.
                let series = |from: f64| {
                    let (mut term, mut sum) = (Complex64::ONE, Complex64::ZERO);
                    let mut factorial = (1..=from as u32).map(f64::from).product::<f64>();
                    for k in 0..6 {
                        sum += term / factorial;
                        term *= -x;
                        factorial *= from + 1.0 + f64::from(k);
                    }
                    sum
                };
                return [back, h * series(1.0), h * series(2.0), h * h * series(2.0), h * h * series(3.0)];
            }
            let u = (1.0 - back) / s[k];
            let u2 = (h - u) / x;
            [back, u, u2, h * u2, (0.5 * h - u2) / s[k]]
        };
        let all: [[Complex64; 5]; LANES] = std::array::from_fn(each);
        let [back, u, u2, v, v2] = std::array::from_fn(|what| Lanes::from_fn(|k| all[k][what]));
        Factors { back, u, u2, v, v2 }
    }
}

/// Windows of one sender in their cycles.
#[derive(Debug)]
pub(crate) struct Density {
    range: Range,
    tracks: Vec<CycleTrack>,
    /// Windows that enter each cycle, of one window a round trip, and all together.
    flux: Vec<f64>,
    flux_sum: f64,
    /// Cycles that are entered instead where alpha is larger and smaller.
    shifted: Option<[Vec<CycleTrack>; 2]>,
    /// Mean in flight, packets.
    pub(crate) flight: f64,
}

/// Responses to perturbations, at several frequencies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerturbationResponse {
    /// Packets in flight, of a higher share of signals.
    pub(crate) signals: Lanes,
    /// The correlation of packets in flight with those at the beginning.
    pub(crate) noise: Lanes,
    /// Packets in flight, of cycles with a larger alpha less those with a smaller one.
    pub(crate) alpha: Lanes,
}

/// Response of one cycle: packets in flight beyond the mean, and signalled windows state by state.
struct CycleResponse {
    sums: [Lanes; 3],
    rows: [Vec<Lanes>; 3],
    /// The states that are met, of each of the sums: from, to.
    met: [(usize, usize); 3],
}

/// Workspace that is used again from some frequencies to the next: all of it would be cleared, or even fetched, each
/// time.
pub(crate) struct Workspace {
    cycle_response: CycleResponse,
    matrix: Vec<Lanes>,
    /// End of each row: one more than its last cell that is not zero.
    ends: Vec<usize>,
}

impl Density {
    /// Density of windows that are signalled with probability `p` at each acknowledgement; `chances` of the cycles at a
    /// signal.
    pub(crate) fn new(
        p: f64,
        range: Range,
        (cycles, chances): (&[Cycle], &[f64]),
        shifted: Option<[Vec<Cycle>; 2]>,
    ) -> Self {
        let rate = -libm::log1p(-p);
        let new =
            |cycles: &[Cycle]| -> Vec<CycleTrack> { cycles.iter().map(|c| CycleTrack::new(c, range, rate)).collect() };
        let mut tracks = new(cycles);
        let sum = |what: usize| -> f64 { chances.iter().zip(&tracks).map(|(c, track)| c * track.means[what]).sum() };
        let (rounds, flight) = (sum(0), sum(1) / sum(0));
        let fill = |tracks: &mut [CycleTrack], cycles: &[Cycle]| {
            tracks.iter_mut().zip(cycles).for_each(|(track, cycle)| track.fill(cycle, range, (p, rate), flight));
        };
        fill(&mut tracks, cycles);
        let shifted = shifted.map(|both| {
            both.map(|cycles| {
                let mut tracks = new(&cycles);
                fill(&mut tracks, &cycles);
                tracks
            })
        });
        Density {
            range,
            tracks,
            flux: chances.iter().map(|chance| chance / rounds).collect(),
            flux_sum: 1.0 / rounds,
            shifted,
            flight,
        }
    }

    pub(crate) fn workspace(&self) -> Workspace {
        let n = self.range.len();
        let rows = [(); 3].map(|()| vec![Lanes::ZERO; n]);
        let cycle_response = CycleResponse { sums: [Lanes::ZERO; 3], rows, met: [(0, 0); 3] };
        Workspace { cycle_response, matrix: vec![Lanes::ZERO; n * n], ends: vec![0; n] }
    }

    /// Responses to perturbations at the frequencies `s`, in inverse round trips.
    pub(crate) fn respond(&self, s: &[Complex64; LANES], workspace: &mut Workspace) -> PerturbationResponse {
        let n = self.range.len();
        let Workspace { cycle_response, matrix, ends } = workspace;
        let mut value = vec![Lanes::ZERO; n];
        // Signals, noise, alpha: packets in flight at once, and who is signalled, whose cycles come on top.
        let mut at_once = [Lanes::ZERO; 3];
        let mut later = [(); 3].map(|()| vec![Lanes::ZERO; n]);
        for (i, (track, flux)) in self.tracks.iter().zip(&self.flux).enumerate() {
            let met = *flux > SELDOM * self.flux_sum;
            if met {
                self.walk::<3>(track, s, cycle_response);
            } else {
                self.walk::<1>(track, s, cycle_response);
            }
            value[i] = cycle_response.sums[0];
            let row = &mut matrix[i * n..(i + 1) * n];
            row[..ends[i]].fill(Lanes::ZERO);
            let (from, to) = cycle_response.met[0];
            ends[i] = to.max(i + 1);
            for (cell, cycle_response) in row[from..to].iter_mut().zip(&cycle_response.rows[0][from..to]) {
                cell.add(-1.0, *cycle_response);
            }
            row[i].add(1.0, Lanes::real(1.0));
            for kind in if met { 0..2 } else { 0..0 } {
                (from..to).for_each(|j| later[kind][j].add(*flux, cycle_response.rows[kind + 1][j]));
                at_once[kind].add(*flux, cycle_response.sums[kind + 1]);
            }
        }
        for (tracks, sign) in self.shifted.iter().flatten().zip([1.0, -1.0]) {
            for (track, flux) in tracks.iter().zip(&self.flux).filter(|(_, flux)| **flux > SELDOM * self.flux_sum) {
                self.walk::<1>(track, s, cycle_response);
                let (from, to) = cycle_response.met[0];
                (from..to).for_each(|j| later[2][j].add(sign * flux, cycle_response.rows[0][j]));
                at_once[2].add(sign * flux, cycle_response.sums[0]);
            }
        }
        solve(matrix, &mut value, ends);
        for (sum, later) in at_once.iter_mut().zip(&later) {
            later.iter().zip(&value).for_each(|(share, value)| sum.add(1.0, share.times(*value)));
        }
        let [signals, noise, alpha] = at_once;
        PerturbationResponse { signals, noise, alpha }
    }

    /// Goes through a cycle that one window enters and, of three `KINDS`, with both pushes.
    fn walk<const KINDS: usize>(&self, track: &CycleTrack, s: &[Complex64; LANES], cycle_response: &mut CycleResponse) {
        let CycleResponse { sums, rows, met } = cycle_response;
        for (row, met) in rows.iter_mut().zip(&*met).take(KINDS) {
            row[met.0..met.1].fill(Lanes::ZERO);
        }
        let stride = self.range.stride;
        let mut here = [Lanes::ZERO; KINDS];
        here[0] = Lanes::real(1.0);
        *sums = [Lanes::ZERO; 3];
        let (mut from, mut to) = (track.last, track.last + stride);
        let mut signalling = Factors::new(s, track.rounds);
        for segment in &track.segments {
            let own = if segment.rounds == track.rounds { signalling } else { Factors::new(s, segment.rounds) };
            let mut flights = [[Lanes::ZERO; 2]; KINDS];
            for cell in &segment.cells {
                for kind in 0..KINDS {
                    let who = here[kind];
                    flights[kind][0].add(cell.flight, who);
                    flights[kind][1].add(cell.stays, who);
                    if cell.signalled[0] + cell.signalled[1] > 0.0 {
                        rows[kind][cell.to].add(cell.signalled[0], who);
                        rows[kind][cell.to + stride].add(cell.signalled[1], who);
                    }
                    let mut next = who.times(own.back);
                    if kind > 0 {
                        next.add(cell.push[kind - 1], own.u);
                    }
                    here[kind] = next;
                }
                if cell.signalled[0] + cell.signalled[1] > 0.0 {
                    (from, to) = (from.min(cell.to), to.max(cell.to + stride));
                }
            }
            for kind in 0..KINDS {
                sums[kind].add(1.0, flights[kind][0].times(own.u2));
                sums[kind].add(1.0, flights[kind][1].times(own.u.minus(own.u2)));
                if kind > 0 {
                    let [all, stays] = segment.pushed[kind - 1];
                    sums[kind].add(all, own.v2);
                    sums[kind].add(stays, own.v.minus(own.v2));
                }
            }
        }
        met[..KINDS].fill((from, to + 1));
        // Who is signalled is so evenly over a step.
        signalling.u.re.iter_mut().chain(&mut signalling.u.im).for_each(|x| *x /= track.rounds);
        for kind in 0..KINDS {
            for (cell, at_once) in rows[kind][from..=to].iter_mut().zip(&track.at_once[from..=to]) {
                let mut signalled = cell.times(signalling.u);
                if kind > 0 {
                    let [spread, plain] = at_once[kind - 1];
                    signalled.add(spread, signalling.u2);
                    signalled.add(plain, Lanes::real(1.0));
                }
                *cell = signalled;
            }
            rows[kind][track.last].add(track.left[0], here[kind]);
            rows[kind][track.last + stride].add(track.left[1], here[kind]);
        }
    }
}

/// Solves `matrix` x = `right` in place. Each row's own cell is at least as large as all the others of its row
/// together, so that no pivot is looked for. A reduction leads few states down: below the diagonal most cells are zero.
/// `ends`: of each row one more than its last cell that is not zero.
fn solve(matrix: &mut [Lanes], right: &mut [Lanes], ends: &mut [usize]) {
    let n = right.len();
    let zero = |cell: &Lanes| cell.re.iter().chain(&cell.im).all(|x| *x == 0.0);
    for k in 0..n {
        let (above, below) = matrix.split_at_mut((k + 1) * n);
        let own = &above[k * n..];
        let (inverse, answer, end) = (own[k].inverse(), right[k], ends[k]);
        for (i, row) in below.chunks_exact_mut(n).enumerate() {
            if zero(&row[k]) {
                continue;
            }
            let factor = row[k].times(inverse);
            row[k + 1..end].iter_mut().zip(&own[k + 1..end]).for_each(|(cell, above)| cell.less(factor, *above));
            right[k + 1 + i].less(factor, answer);
            ends[k + 1 + i] = ends[k + 1 + i].max(end);
        }
    }
    for k in (0..n).rev() {
        let mut left = right[k];
        for j in k + 1..ends[k] {
            left.less(matrix[k * n + j], right[j]);
        }
        right[k] = left.times(matrix[k * n + k].inverse());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved_at_each_frequency_by_itself() {
        // (2 x1 + j x2 = 1 + 2j, x1 - 3 x2 = 4) in lane 0: x2 = (x1 - 4) / 3, 2 x1 + j (x1 - 4) / 3 = 1 + 2j,
        // x1 = (1 + 10j/3) / (2 + j/3) = (3 + 10j) / (6 + j) = (28 + 57j) / 37.
        let at = |lane: Complex64, others: f64| Lanes::from_fn(|k| if k == 0 { lane } else { others.into() });
        let j = Complex64::new(0.0, 1.0);
        let mut matrix = [at(2.0.into(), 1.0), at(j, 0.0), at(1.0.into(), 0.0), at((-3.0).into(), 2.0)];
        let mut right = [at(1.0 + 2.0 * j, 5.0), at(4.0.into(), 6.0)];
        solve(&mut matrix, &mut right, &mut [2, 2]);
        let x1 = Complex64::new(28.0, 57.0) / 37.0;
        assert!((right[0].get(0) - x1).l1_norm() < 1e-12);
        assert!((right[1].get(0) - (x1 - 4.0) / 3.0).l1_norm() < 1e-12);
        assert!((right[0].get(1) - 5.0).l1_norm() < 1e-12 && (right[1].get(3) - 3.0).l1_norm() < 1e-12);
    }

    #[test]
    fn factors_of_slow_frequencies_meet_those_of_quick_ones() {
        // NonlinearCheck x = .02 the series and the quotients agree.
        let factors = |w: f64| Factors::new(&[Complex64::new(0.0, w); LANES], 1.0);
        let (slow, quick) = (factors(0.019_999_999), factors(0.020_000_001));
        for (one, other) in [(slow.u, quick.u), (slow.u2, quick.u2), (slow.v, quick.v), (slow.v2, quick.v2)] {
            assert!((one.get(0) - other.get(0)).l1_norm() < 1e-7, "{one:?} {other:?}");
        }
        // At rest: h, h/2, h^2/2, h^2/6.
        let still = factors(1e-9);
        for (seen, known) in [(still.u, 1.0), (still.u2, 0.5), (still.v, 0.5), (still.v2, 1.0 / 6.0)] {
            assert!((seen.get(0) - known).l1_norm() < 1e-8, "{seen:?} {known}");
        }
    }
}
