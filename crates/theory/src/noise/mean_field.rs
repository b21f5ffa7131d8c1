//! The loop of many windows at a queue: the mean field of [`Population`]s behind one control law, and the noise that
//! each window makes.
//!
//! Acknowledgements clock packets: what a full link holds back is what is in flight less what the paths hold. So the
//! queue follows the packets in flight at once; a share of signals is felt a round trip later. With relative changes
//! x_i of class i's packets in flight the delay of the queue moves by sum c_i x_i, c_i its weight. Where growth goes by
//! the clock (CUBIC), a longer round trip lets windows grow further, so that the delay itself moves them.
//!
//! *Noise.* That of each window by itself, at a share that stands still: chance marks, unlike windows, what growth and
//! reductions do in between. Where marks are spread (`recur`, RED, PIE), how many come is less a matter of chance: of
//! the noise that part is left out which a share p with the noise of its count, p over the rate, would bring about.

use std::sync::OnceLock;

use num_complex::Complex64;

use crate::equilibrium::sender::Sender;
use crate::linear::complex::{cis, lag_s};
use crate::linear::{FrequencyResponse, LOW, OperatingPoint};
use crate::noise::population::{Population, SpectralResponse};
use crate::noise::signal_spacing::SignalSpacing;
use crate::noise::sources::SourcePowers;

/// Flows alike behind a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowClass {
    pub(crate) sender: Sender,
    pub(crate) flows: f64,
    /// Share of the packets that is signalled, and its slope in what the control law says.
    pub(crate) probability: f64,
    pub(crate) slope: f64,
    /// Round trip, seconds, and its slope in the queue's delay.
    pub(crate) rtt_s: f64,
    pub(crate) waits: f64,
    /// How the queue's delay answers a relative change of the packets in flight, seconds.
    pub(crate) weight_s: f64,
    /// Variance of how many are signalled, as a share of what a toss for each packet has.
    pub(crate) dispersion: f64,
    /// Share of the packets that is signalled in fact, in that of tosses which holds the same windows.
    pub(crate) needed: f64,
}

impl FlowClass {
    /// Noise reduction relative to Bernoulli signals, per unit of probability: the variance of reductions under tosses
    /// less that under these signals, `uneven` times the dispersion of a long time, in windows of so many packets.
    ///
    /// Signals without effect: b = p W per reduction under Bernoulli signals, l under these. M signals make H
    /// reductions, M = (1 + l) H + e, where e is random and as frequent as l. With D the dispersion of M, that of H is
    /// (D (1 - l) + l) / (1 + l)^2; under Bernoulli signals it is 1 / (1 + b)^2, and their probability moves H by
    /// 1 / (1 + b)^2 as much.
    ///
    /// Where it is not known how many come for nothing, what a share with the noise of its count would do is missing.
    fn evened(&self, window: f64, uneven: f64) -> f64 {
        let dispersion = self.dispersion * uneven;
        let count = self.probability * (1.0 - self.probability) / window;
        if self.needed == 1.0 {
            return (1.0 - dispersion) * count;
        }
        let by_tosses = 1.0 + self.probability * window;
        let lost = (self.needed * by_tosses - 1.0).max(0.0);
        let of_these = (dispersion * (1.0 - lost) + lost) / (self.needed * self.needed);
        by_tosses * (1.0 - of_these) * count
    }
}

/// Mean field of the flow classes at one queue.
#[derive(Clone, Debug)]
pub(crate) struct MeanField {
    classes: Vec<(FlowClass, ResponseTable)>,
    /// Queue unit (packets or seconds) per second of delay.
    unit: f64,
    delay_s: f64,
    /// How far apart its signals come, where that is known.
    spacing: Option<SignalSpacing>,
    /// Fraction of the capacity that short transfers take, and how long one lasts, seconds.
    transfers: (f64, f64),
}

/// Response of a population, tabulated at logarithmically spaced frequencies.
#[derive(Clone, Debug)]
pub(crate) struct ResponseTable {
    pub(crate) window: f64,
    /// How a relative change of the round trip moves windows, in the answer to signals: with its shape.
    by_rtt: f64,
    points: Vec<SpectralResponse>,
}

/// Frequencies of [`ResponseTable`]: the first and the last, in inverse round trips, and how many.
const FROM: f64 = 1e-3;
const TO: f64 = 30.0;
const POINTS: usize = 44;
/// Windows of the table of [`ResponseTable::from_reno`]: the first and the last, packets, and how many. What even
/// signals leave is a small difference, which asks for near neighbours; only those are worked out that are met.
const WINDOWS: [f64; 2] = [1.5, 400.0];
const TABLED: usize = 100;

/// The point of [`ResponseTable`] below `w`, and how far it lies on the way to the next.
fn place(w: f64) -> (usize, f64) {
    let place = libm::log(w.clamp(FROM, TO) / FROM) / libm::log(TO / FROM) * (POINTS - 1) as f64;
    let point = (place as usize).min(POINTS - 2);
    (point, place - point as f64)
}

/// Roll-off factor beyond the last point.
fn fallen(w: f64) -> f64 {
    let share = TO / w.max(TO);
    share * share
}

impl ResponseTable {
    pub(crate) fn new(population: &Population) -> Self {
        let frequency = |k: usize| Complex64::new(0.0, FROM * libm::pow(TO / FROM, k as f64 / (POINTS - 1) as f64));
        let frequencies: Vec<Complex64> = (0..POINTS).map(frequency).collect();
        let (window, points) = (population.window_pkts(), population.sample_each(&frequencies));
        ResponseTable { window, by_rtt: population.by_rtt() * window / points[0].response.re, points }
    }

    /// Table of ns-2's Reno, whose response depends on its window alone: interpolated linearly in the window's
    /// logarithm between two entries.
    fn from_reno(window_pkts: f64) -> Self {
        static TABLE: [OnceLock<ResponseTable>; TABLED] = [const { OnceLock::new() }; TABLED];
        let sender = Sender::reno();
        let of = |window: f64| {
            ResponseTable::new(&Population::new(&sender, crate::equilibrium::window::probability(window), 1.0))
        };
        let [first, last] = WINDOWS;
        let span = libm::log(last / first) / (TABLED - 1) as f64;
        if !(first..=last).contains(&window_pkts) {
            return of(window_pkts);
        }
        let place = libm::log(window_pkts / first) / span;
        let point = (place as usize).min(TABLED - 2);
        let part = place - point as f64;
        let [one, other] = [point, point + 1].map(|k| TABLE[k].get_or_init(|| of(first * libm::exp(span * k as f64))));
        let between = |one: f64, other: f64| libm::exp((1.0 - part) * libm::log(one) + part * libm::log(other));
        let window = between(one.window, other.window);
        // FrequencyResponse go as the third power of the window.
        let scaled =
            |table: &ResponseTable, at: &SpectralResponse| at.response / (table.window * table.window * table.window);
        let points = one.points.iter().zip(&other.points).map(|(a, b)| SpectralResponse {
            response: (scaled(one, a) * (1.0 - part) + scaled(other, b) * part) * (window * window * window),
            power: between(a.power, b.power),
        });
        ResponseTable { window, by_rtt: 0.0, points: points.collect() }
    }

    /// Spectral response at `w`, in inverse round trips: on a line in the frequency's logarithm; flat below,
    /// falling above.
    pub(crate) fn at(&self, w: f64) -> SpectralResponse {
        let (point, part) = place(w);
        let [one, other] = [self.points[point].power, self.points[point + 1].power];
        // Both fall as powers of the frequency.
        let power = match one > 0.0 && other > 0.0 {
            true => libm::exp((1.0 - part) * libm::log(one) + part * libm::log(other)),
            false => 0.0,
        };
        SpectralResponse { response: self.response(w), power: power * fallen(w) }
    }

    /// The response alone: loops ask for it far more often.
    fn response(&self, w: f64) -> Complex64 {
        if w < FROM {
            // Towards rest the phase goes as the frequency.
            let first = self.points[0].response;
            return Complex64::new(first.re, first.im * w / FROM);
        }
        let (point, part) = place(w);
        (self.points[point].response * (1.0 - part) + self.points[point + 1].response * part) * fallen(w)
    }

    /// How windows that answer signals like this answer a relative change of the round trip, in relative changes.
    pub(crate) fn by_rtt(&self, response: Complex64) -> Complex64 {
        response * (self.by_rtt / self.window)
    }
}

impl MeanField {
    /// `unit`: queue unit per second of delay. `delay_s`: a round trip.
    pub(crate) fn new(classes: Vec<FlowClass>, unit: f64, delay_s: f64) -> Self {
        let table =
            |class: &FlowClass| ResponseTable::new(&Population::new(&class.sender, class.probability, class.rtt_s));
        let classes =
            classes.into_iter().filter(|class| class.flows > 0.0).map(|class| (class, table(&class))).collect();
        MeanField { classes, unit, delay_s, spacing: None, transfers: (0.0, 0.0) }
    }

    /// Sets the fraction of the capacity that short transfers take, of which one lasts so many seconds.
    pub(crate) fn with_transfers(mut self, share: f64, last_s: f64) -> Self {
        self.transfers = if last_s > 0.0 { (share, last_s) } else { (0.0, 0.0) };
        self
    }

    /// Sets `needed`, the fraction of Bernoulli signals that spaced signals need for these windows: each counts
    /// for as much more, and their number less.
    pub(crate) fn with_effectiveness(mut self, needed: f64) -> Self {
        self.classes.iter_mut().for_each(|(class, _)| class.needed = needed);
        self
    }

    /// Sets the spacing of signals.
    pub(crate) fn spaced(self, spacing: Option<SignalSpacing>) -> Self {
        MeanField { spacing, ..self }
    }

    /// Flow classes in one queue of `capacity_pps`, in packets. Of each what its sender does, how
    /// many flows, the share of signals and its slope, the round trip, the window; of all how even signals are.
    pub(crate) fn from_one_queue(
        capacity_pps: f64,
        dispersion: f64,
        classes: &[(Sender, f64, [f64; 2], f64, f64)],
    ) -> Self {
        // Sum of f / R = C, R with the delay d: dd = sum (f x / R) / sum (f / R^2).
        let per_delay: f64 = classes.iter().map(|(_, flows, _, rtt_s, window)| flows * window / (rtt_s * rtt_s)).sum();
        let class =
            |&(sender, flows, [probability, slope], rtt_s, window): &(Sender, f64, [f64; 2], f64, f64)| FlowClass {
                sender,
                flows,
                probability,
                slope,
                rtt_s,
                waits: 1.0,
                weight_s: flows * window / rtt_s / per_delay,
                dispersion,
                needed: 1.0,
            };
        let largest = classes.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(1.0, |class| class.3);
        MeanField::new(classes.iter().map(class).collect(), capacity_pps, largest)
    }

    /// Windows of ns-2's Reno around `at`, whose signals are as even as it says; `roughly` from a table over windows.
    pub(crate) fn from_reno(at: &OperatingPoint, roughly: bool) -> Self {
        let OperatingPoint { flows, capacity_pps, rtt_s, probability, dispersion, .. } = *at;
        let sender = Sender::reno();
        let table = match roughly {
            true => ResponseTable::from_reno(at.window_pkts),
            false => ResponseTable::new(&Population::new(&sender, probability, rtt_s)),
        };
        let class = FlowClass {
            sender,
            flows,
            probability,
            slope: 1.0,
            rtt_s,
            waits: 1.0,
            weight_s: rtt_s,
            dispersion,
            needed: 1.0,
        };
        MeanField {
            classes: vec![(class, table)],
            unit: capacity_pps,
            delay_s: rtt_s,
            spacing: None,
            transfers: (0.0, 0.0),
        }
    }

    /// How the queue answers the share that is signalled, and how its own delay moves it, at `w` rad/s.
    fn answers(&self, w: f64) -> [Complex64; 2] {
        let (mut answer, mut own) = (Complex64::ZERO, Complex64::ONE);
        for (class, table) in &self.classes {
            let response = table.response(w * class.rtt_s);
            let (relative, weight) = (response / table.window, class.weight_s);
            answer += weight * class.slope / class.needed * relative * cis(-w * class.rtt_s);
            own -= weight * class.waits * table.by_rtt(response) / class.rtt_s;
        }
        [answer, own]
    }

    /// How the queue answers what the law says, and the power of its noise where the law says nothing, at `w` rad/s.
    pub(crate) fn at(&self, w: f64) -> (Complex64, f64) {
        let uneven = self.spacing.map_or(1.0, |spacing| spacing.unevenness(w));
        let mut power = 0.0;
        for (class, table) in &self.classes {
            let SpectralResponse { response, power: noise } = table.at(w * class.rtt_s);
            let (relative, weight) = (response / table.window, class.weight_s);
            let each = noise / (table.window * table.window) - relative.norm_sqr() * class.evened(table.window, uneven);
            power += weight * weight * each.max(0.0) * class.rtt_s / class.flows;
        }
        let answers = self.answers(w);
        let held = self.held(w).norm_sqr();
        (self.queue(w, answers), self.unit * self.unit * power * held / answers[1].norm_sqr())
    }

    /// Powers of the sources of its noise at `w` rad/s, of a law that says nothing: their sum is `power`.
    pub(crate) fn source_powers(&self, w: f64) -> SourcePowers {
        let uneven = self.spacing.map_or(1.0, |spacing| spacing.unevenness(w));
        let [mut halvings, mut windows, mut spacing] = [0.0; 3];
        for (class, table) in &self.classes {
            let SpectralResponse { response, power: noise } = table.at(w * class.rtt_s);
            let (relative, all) = ((response / table.window).norm_sqr(), noise / (table.window * table.window));
            let weight = class.weight_s * class.weight_s * class.rtt_s / class.flows;
            let tosses = (relative * class.probability * (1.0 - class.probability) / table.window).min(all);
            let each = (all - relative * class.evened(table.window, uneven)).max(0.0);
            halvings += weight * tosses;
            windows += weight * (all - tosses);
            spacing += weight * (each - all);
        }
        let unit = self.unit * self.unit * self.held(w).norm_sqr() / self.answers(w)[1].norm_sqr();
        [halvings * unit, windows * unit, 0.0, spacing * unit, 0.0]
    }

    /// How the queue answers what the law says.
    fn queue(&self, w: f64, [answer, own]: [Complex64; 2]) -> Complex64 {
        let led = self.spacing.map_or(Complex64::ONE, |spacing| spacing.answer(w));
        self.unit * answer * led * self.held(w) / own
    }

    /// Part of its slow answer that the queue gives at `w` beside short transfers. They take u of C: in the long run
    /// they hold u R packets, so that a queue moves by C / (C - u) times what long flows move it; within a transfer's
    /// time they hold what they held, and that factor is missing: (1 - u / C) / (1 - (u / C) / (1 + j w T)).
    fn held(&self, w: f64) -> Complex64 {
        let (share, last_s) = self.transfers;
        (1.0 - share) / (1.0 - share / Complex64::new(1.0, w * last_s))
    }

    /// How the queue answers a packet more that transfers hold at `w`.
    pub(crate) fn by_transfers(&self, w: f64) -> Complex64 {
        self.held(w) / (1.0 - self.transfers.0)
    }

    /// Power of its noise at `w` rad/s, of a law that says nothing.
    pub(crate) fn power(&self, w: f64) -> f64 {
        self.at(w).1
    }
}

impl FrequencyResponse for MeanField {
    fn response(&self, w: f64) -> Complex64 {
        // Populations are worked out at positive frequencies alone.
        let response = self.queue(w.abs(), self.answers(w.abs()));
        if w < 0.0 { response.conj() } else { response }
    }

    fn dc_gain(&self) -> f64 {
        self.response(0.0).re
    }

    fn delay_s(&self) -> f64 {
        self.delay_s
    }

    fn window_lag_s(&self) -> f64 {
        let lags = self.classes.iter().map(|(class, table)| lag_s(-table.response(LOW), LOW) * class.rtt_s);
        lags.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equilibrium::sender::Law;
    use crate::fluid::Model;
    use crate::linear::noise::{Fineness, deviation_of};

    const CAPACITY: f64 = 2000.0;

    fn sender(law: Law) -> Sender {
        Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() }
    }

    /// `flows` windows of `law` whose round trip is .1 s, and the share that holds them.
    fn alone(law: Law, flows: f64) -> (MeanField, f64) {
        let window = CAPACITY * 0.1 / flows;
        let p = sender(law).probability(window, 0.1).unwrap();
        (MeanField::from_one_queue(CAPACITY, 1.0, &[(sender(law), flows, [p, 1.0], 0.1, window)]), p)
    }

    #[test]
    fn at_rest_the_queue_goes_where_windows_fill_the_link() {
        // q = N W(p, R) - C T, R = T + q / C: at p 2 % more, found by halvings.
        for law in [Law::Reno, Law::Cubic] {
            let (field, p) = alone(law, 20.0);
            let (mut low, mut high) = (0.05, 0.2);
            for _ in 0..40 {
                let rtt_s = 0.5 * (low + high);
                if 20.0 * sender(law).equilibrium(1.02 * p, rtt_s).window_pkts > CAPACITY * rtt_s {
                    low = rtt_s
                } else {
                    high = rtt_s
                }
            }
            let slope = CAPACITY * (low - 0.1) / (0.02 * p);
            assert!((field.dc_gain() / slope - 1.0).abs() < 0.12, "{law:?}: {} {slope}", field.dc_gain());
        }
    }

    #[test]
    fn a_queue_that_lengthens_the_round_trip_of_windows_by_the_clock_answers_for_more() {
        // CUBIC over 300 ms: dq = C dR, W (p, R) N = C R: dR / R (1 - dlnW/dlnR) = dlnW/dlnp dlnp.
        for rtt_s in [0.3, 0.6] {
            let cubic = sender(Law::Cubic);
            let (flows, window) = (CAPACITY * rtt_s / 30.0, 30.0);
            let p = cubic.probability(window, rtt_s).unwrap();
            let field = MeanField::from_one_queue(CAPACITY, 1.0, &[(cubic, flows, [p, 1.0], rtt_s, window)]);
            let longer = cubic.equilibrium(p, 1.01 * rtt_s).window_pkts / cubic.equilibrium(p, rtt_s).window_pkts;
            let by_rtt = libm::log(longer) / libm::log(1.01);
            assert!(by_rtt > 0.05, "{by_rtt}");
            let expected = CAPACITY * rtt_s * cubic.elasticity(p, rtt_s) / (1.0 - by_rtt) / p;
            assert!((field.dc_gain() / expected - 1.0).abs() < 0.08, "{rtt_s}: {} {expected}", field.dc_gain());
        }
    }

    #[test]
    fn twice_the_flows_of_the_same_window_make_twice_the_power() {
        let power = |flows: f64| {
            let class = (sender(Law::Reno), flows, [0.02, 1.0], 0.1, 9.0);
            MeanField::from_one_queue(90.0 * flows, 1.0, &[class]).power(3.0)
        };
        assert!((power(40.0) / power(20.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn halves_of_a_crowd_are_the_crowd() {
        let half = (sender(Law::Reno), 10.0, [0.02, 1.0], 0.1, 9.0);
        let whole = (sender(Law::Reno), 20.0, [0.02, 1.0], 0.1, 9.0);
        let [two, one] =
            [vec![half; 2], vec![whole]].map(|classes| MeanField::from_one_queue(1800.0, 1.0, &classes).at(2.0));
        assert!((two.0 - one.0).l1_norm() < 1e-9 * one.0.l1_norm() && (two.1 / one.1 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn in_slow_motion_a_queue_answers_the_same_and_its_noise_lasts_as_many_times_longer() {
        let field = |times: f64| {
            let classes = [
                (sender(Law::Reno), 20.0, [0.02, 1.0], 0.1 * times, 9.0),
                (sender(Law::Dctcp), 10.0, [0.1, 0.7], 0.3 * times, 12.0),
            ];
            MeanField::from_one_queue(2200.0 / times, 1.0, &classes)
        };
        let known = field(1.0);
        for times in [1e3, 1e-3] {
            let slow = field(times);
            assert!((slow.delay_s() / known.delay_s() / times - 1.0).abs() < 1e-12);
            for w in [0.1, 2.0, 30.0] {
                let ((answer, power), (seen, noise)) = (known.at(w), slow.at(w / times));
                assert!((seen - answer).l1_norm() < 1e-9 * answer.l1_norm(), "{w}: {seen} {answer}");
                assert!((noise / power / times - 1.0).abs() < 1e-9, "{w}: {noise} {power}");
                assert_eq!(slow.response(w / times), seen);
            }
        }
        // Alone a class's round trip is the loop's.
        assert_eq!(alone(Law::Reno, 20.0).0.delay_s(), 0.1);
    }

    #[test]
    fn a_table_over_windows_is_as_good_as_what_it_was_made_of() {
        for (flows, dispersion) in [(180.0, 1.0 / 3.0), (47.0, 0.3), (11.0, 0.0), (2.3, 1.0 / 3.0)] {
            let at =
                OperatingPoint::new(Model::Reno, flows, 5000.0, 0.0, 0.1, 200.0).unwrap().with_dispersion(dispersion);
            let [exact, rough] = [false, true].map(|roughly| MeanField::from_reno(&at, roughly));
            let near = |one: f64, other: f64| {
                assert!((other / one - 1.0).abs() < 0.01, "W {}: {other} {one}", at.window_pkts);
            };
            for w in [0.1, 1.0, 3.0] {
                near(exact.power(w), rough.power(w));
            }
            // Beyond a round trip large windows hardly move, in lines that no table follows: all together they count.
            let [exact, rough] = [exact, rough].map(|field| deviation_of(|w| field.power(w), at.rtt_s, Fineness::FINE));
            near(exact, rough);
        }
    }

    #[test]
    fn marks_at_even_gaps_leave_less_noise() {
        let class = |dispersion: f64| FlowClass {
            sender: sender(Law::Reno),
            flows: 20.0,
            probability: 0.02,
            slope: 1.0,
            rtt_s: 0.1,
            waits: 1.0,
            weight_s: 0.1,
            dispersion,
            needed: 1.0,
        };
        for w in [0.1, 1.0, 10.0] {
            let [chance, even] = [1.0, 0.0].map(|even| MeanField::new(vec![class(even)], 1.0, 0.1).power(w));
            assert!(even > 0.0 && even < 0.8 * chance, "{w}: {even} {chance}");
        }
    }

    #[test]
    fn what_is_told_at_points_is_the_population_between_them_and_falls_beyond() {
        for law in [Law::Reno, Law::Cubic, Law::Dctcp] {
            let p = sender(law).probability(12.0, 0.1).unwrap();
            let population = Population::new(&sender(law), p, 0.1);
            let table = ResponseTable::new(&population);
            assert!((table.window / population.window_pkts() - 1.0).abs() < 1e-12);
            for w in [0.003, 0.05, 0.7, 2.0] {
                let (seen, known) = (table.at(w), population.sample_each(&[Complex64::new(0.0, w)])[0]);
                assert!((seen.response - known.response).l1_norm() < 0.04 * known.response.l1_norm(), "{law:?} {w}");
                assert!((seen.power / known.power - 1.0).abs() < 0.04, "{law:?} {w}: {seen:?} {known:?}");
            }
            // At the points themselves exactly; below the power is flat, and the phase goes to 0; above by the square.
            let (first, last) = (table.at(FROM), table.at(TO));
            let known = population.sample_each(&[FROM, TO].map(|w| Complex64::new(0.0, w)));
            assert!(
                (first.power / known[0].power - 1.0).abs() < 1e-9 && (last.power / known[1].power - 1.0).abs() < 1e-6
            );
            let (below, slow) = (table.at(0.1 * FROM), population.sample_each(&[Complex64::new(0.0, 0.1 * FROM)])[0]);
            assert_eq!(below.power, first.power);
            assert!((below.response - slow.response).l1_norm() < 0.04 * slow.response.l1_norm(), "{law:?}");
            let beyond = table.at(3.0 * TO);
            assert!((beyond.power * 9.0 / last.power - 1.0).abs() < 1e-6);
            assert!((beyond.response * 9.0 - last.response).l1_norm() < 1e-6 * last.response.l1_norm());
            // A longer round trip moves CUBIC's windows by its clock, and no others.
            let by_rtt = table.by_rtt(first.response).re;
            let longer = sender(law).equilibrium(p, 0.101).window_pkts / sender(law).equilibrium(p, 0.1).window_pkts;
            assert!((by_rtt - libm::log(longer) / libm::log(1.01)).abs() < 0.02, "{law:?}: {by_rtt} {longer}");
        }
    }

    #[test]
    fn windows_beyond_the_table_are_worked_out_and_nobody_makes_no_crowd() {
        for window in [1.2, 600.0] {
            let at = OperatingPoint::new(Model::Reno, 1000.0 / window, 5000.0, 0.0, 0.1, 500.0).unwrap();
            assert!((at.window_pkts / window - 1.0).abs() < 1e-9, "{}", at.window_pkts);
            let [exact, rough] = [false, true].map(|roughly| MeanField::from_reno(&at, roughly));
            assert!((rough.power(1.0) / exact.power(1.0) - 1.0).abs() < 1e-9);
            assert!((rough.dc_gain() / exact.dc_gain() - 1.0).abs() < 1e-9);
        }
        let some = (sender(Law::Reno), 20.0, [0.02, 1.0], 0.1, 9.0);
        let nobody = (sender(Law::Cubic), 0.0, [0.02, 1.0], 0.3, 9.0);
        let [alone, beside] =
            [vec![some], vec![nobody, some]].map(|classes| MeanField::from_one_queue(1800.0, 1.0, &classes));
        assert_eq!((alone.at(2.0), alone.delay_s), (beside.at(2.0), beside.delay_s));
    }

    #[test]
    fn signals_that_count_for_more_make_the_answer_larger_and_even_ones_leave_out_the_noise_of_their_count() {
        // Half as many, each worth two: twice the answer.
        let at = OperatingPoint::new(Model::Reno, 60.0, 5000.0, 0.0, 0.1, 200.0).unwrap();
        let (plain, half) = (MeanField::from_reno(&at, true), MeanField::from_reno(&at, true).with_effectiveness(0.5));
        for w in [0.1, 3.0, 20.0] {
            let (one, other) = (plain.at(w), half.at(w));
            assert!((other.0 - 2.0 * one.0).l1_norm() < 1e-9 * one.0.l1_norm(), "{w}");
            assert_eq!(plain.response(w), one.0);
        }
        // Of signals without chance what their count would make is missing: |dq/dp|^2 p (1 - p) over the rate.
        let even = MeanField::from_reno(&at.with_dispersion(0.0), true);
        let (answer, power) = plain.at(0.3);
        let count = answer.norm_sqr() * at.probability * (1.0 - at.probability) / at.capacity_pps;
        let missing = power - even.at(0.3).1;
        // The windows that it is divided by are those of the chain.
        assert!((missing / count - 1.0).abs() < 0.05, "{missing} {count}");
    }

    #[test]
    fn of_even_signals_it_is_chance_which_come_for_nothing() {
        // Shares that hold the same windows: of tosses b = p W a reduction are lost, of these l, needed is
        // (1 + l) / (1 + b). In the count of reductions, per reduction: of tosses 1 / (1 + b)^2; of even ones
        // l / (1 + l)^2, that with none lost is none.
        let at = OperatingPoint::new(Model::Reno, 60.0, 5000.0, 0.0, 0.1, 200.0).unwrap();
        let (p, window) = (at.probability, at.window_pkts);
        let by_tosses = 1.0 + p * window;
        let table = |dispersion: f64, lost: f64| {
            let field = MeanField::from_reno(&at.with_dispersion(dispersion), true)
                .with_effectiveness((1.0 + lost) / by_tosses);
            field.classes[0].0.evened(window, 1.0)
        };
        // A share moves reductions, p / (1 + b) of the packets, by 1 / (1 + b)^2 as much: what their count does to it.
        let reductions = p / by_tosses * by_tosses * by_tosses * by_tosses * by_tosses * (1.0 - p) / window;
        let tosses = reductions / (by_tosses * by_tosses);
        for lost in [0.0, 0.04, 0.08] {
            let even = lost / ((1.0 + lost) * (1.0 + lost));
            assert!((table(0.0, lost) - (tosses - reductions * even)).abs() < 1e-9 * tosses, "{lost}");
        }
        // Tosses with all that they lose miss nothing of themselves.
        assert!(table(1.0, by_tosses - 1.0).abs() < 1e-9 * tosses);
        // The more is lost by chance, the less is missing.
        assert!(table(1.0 / 27.0, 0.0) > table(1.0 / 27.0, 0.05) && table(0.0, 0.05) > table(1.0 / 27.0, 0.05));
    }
}
