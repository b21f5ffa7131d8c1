//! Packet traces: pcap, pcapng, or text with a time per line, read as a stream and counted in windows of all sizes.
//!
//! Memory does not grow with the trace: each window size keeps sums only, and each larger size combines pairs of
//! windows of the previous one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use aqumen_capture::{Reader, is_capture, is_compressed};

use crate::Error;

/// Packet arrival in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of capture, nanoseconds since any epoch.
    pub at_ns: i64,
    /// Size on the wire, if the trace records it.
    pub bytes: Option<u32>,
}

/// Completeness of a trace: false if its last record is cut off, as in an interrupted capture.
pub type Complete = bool;

/// Reads the trace at `path` and calls `visit` with its packets, of one pcapng `interface` or of all, in file order.
pub fn read(path: &Path, interface: Option<u32>, mut visit: impl FnMut(Arrival)) -> Result<Complete, Error> {
    let failed = |error: io::Error| Error::Trace(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Error::Trace(format!("cannot read {}: it is a directory", path.display())));
    }
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let magic: Vec<u8> = reader.fill_buf().map_err(failed)?.iter().take(4).copied().collect();
    let named = |message: String| Error::Trace(format!("{}: {message}", path.display()));
    if is_capture(&magic) || is_compressed(&magic) {
        return capture(reader, interface, &mut visit).map_err(|error| named(error.to_string()));
    }
    text(reader, &mut visit).map(|()| true).map_err(named)
}

fn capture(
    reader: impl Read,
    interface: Option<u32>,
    visit: &mut impl FnMut(Arrival),
) -> Result<Complete, aqumen_capture::Error> {
    let mut reader = Reader::new(reader)?;
    while let Some(record) = reader.next_record()? {
        if interface.is_none_or(|wanted| wanted == record.interface) {
            visit(Arrival { at_ns: record.at_ns, bytes: Some(record.original) });
        }
    }
    Ok(!reader.is_cut_off())
}

/// Longest line of a text trace.
const LINE_MAX: u64 = 4096;

fn text(mut reader: impl BufRead, visit: &mut impl FnMut(Arrival)) -> Result<(), String> {
    let (mut line, mut number, mut seen) = (Vec::new(), 0u64, false);
    loop {
        line.clear();
        number += 1;
        let read = (&mut reader).take(LINE_MAX).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok(());
        }
        let fail = |message: &str| Err(format!("line {number}: {message}"));
        if read as u64 == LINE_MAX && line.last() != Some(&b'\n') {
            return fail("longer than 4096 characters; a text trace has a time in seconds on each line");
        }
        let Ok(shown) = std::str::from_utf8(&line) else {
            return fail("neither a capture nor text; a trace is a pcap, a pcapng or text with a time on each line");
        };
        let shown = shown.trim_start_matches('\u{feff}').trim();
        if shown.is_empty() || shown.starts_with('#') {
            continue;
        }
        let mut fields = shown.split([',', ';', '\t', ' ']).filter(|field| !field.is_empty());
        let Some(at_ns) = fields.next().and_then(decimal_ns) else {
            // A first line of column heads.
            if !seen {
                seen = true;
                continue;
            }
            return fail("must begin with a time in seconds, such as 0.0012");
        };
        seen = true;
        let bytes = match fields.next() {
            None => None,
            Some(field) => match field.parse::<u32>() {
                Ok(bytes) => Some(bytes),
                Err(_) => return fail("the second column must be a size in bytes, such as 1500"),
            },
        };
        visit(Arrival { at_ns, bytes });
    }
}

/// A decimal number of seconds in nanoseconds, exactly: times since 1970 have more digits than a float holds.
fn decimal_ns(text: &str) -> Option<i64> {
    let text = text.trim_matches('"');
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        value = value.checked_mul(10)?.checked_add(char::from(byte).to_digit(10)?.into())?;
    }
    let shift = i32::from(exponent) - fraction.len() as i32 + 9;
    let ns = if shift >= 0 {
        value.checked_mul(10i128.checked_pow(shift as u32)?)?
    } else {
        let unit = 10i128.checked_pow(shift.unsigned_abs())?;
        value.checked_add(unit / 2)? / unit
    };
    i64::try_from(if negative { -ns } else { ns }).ok()
}

/// Number of lags of the autocorrelation for each window size.
pub const LAGS: usize = 16;

/// Packets read before the smallest window size is chosen.
const PILOT: usize = 4096;

/// Fewest windows of a size for which statistics are reported.
pub(crate) const WINDOWS_MIN: u64 = 20;

/// Counter of a trace's packets in windows of all sizes.
#[derive(Debug, Default)]
pub struct Counter {
    pilot: Vec<i64>,
    /// Width of the smallest windows, nanoseconds; 0 until it is chosen.
    base_ns: u64,
    levels: Vec<WindowSums>,
    /// Packets per smallest window in the pilot.
    expected: f64,
    first_ns: i64,
    last_ns: i64,
    /// Index of the current smallest window, and its number of packets.
    window: u64,
    inside: u64,
    packets: u64,
    reordered: u64,
    sized: u64,
    bytes: u128,
    bytes2: u128,
}

/// Sums over the windows of one size. Counts are stored as deviations from an integer near their mean, so that the sums
/// are exact.
#[derive(Debug)]
struct WindowSums {
    centre: i64,
    windows: u64,
    sums: [i128; 3],
    /// Sum of the fourth powers, which overflow integers.
    fourth: f64,
    recent: [i64; LAGS],
    products: [i128; LAGS],
    /// First count of an incomplete pair.
    half: Option<u64>,
}

/// Statistics of counts in windows of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Width of the windows, seconds.
    pub window_s: f64,
    /// Number of windows.
    pub windows: u64,
    /// Mean count.
    pub mean: f64,
    /// Variance of the count.
    pub variance: f64,
    /// Third central moment of the count.
    pub third: f64,
    /// Fourth cumulant of the count: fourth central moment less three squared variances.
    pub fourth: f64,
    /// Autocorrelation at lags of 1 to [`LAGS`] windows.
    pub autocorrelation: Vec<f64>,
}

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of packets.
    pub packets: u64,
    /// Time from the first to the last packet, seconds.
    pub duration_s: f64,
    /// Packets per second.
    pub rate_pps: f64,
    /// Mean size, bytes, if the trace has sizes.
    pub bytes_mean: Option<f64>,
    /// Squared coefficient of variation of the size.
    pub bytes_scv: Option<f64>,
    /// Packets with an earlier time than their predecessor; they count as simultaneous with it.
    pub reordered: u64,
    /// Counts in windows of all sizes with enough windows, each twice as wide as the previous one.
    pub scales: Vec<Scale>,
}

impl Counter {
    /// Adds the next packet.
    pub fn add(&mut self, arrival: Arrival) {
        if self.packets == 0 {
            (self.first_ns, self.last_ns) = (arrival.at_ns, arrival.at_ns);
        }
        self.packets += 1;
        if let Some(bytes) = arrival.bytes {
            let bytes = u128::from(bytes);
            (self.sized, self.bytes, self.bytes2) = (self.sized + 1, self.bytes + bytes, self.bytes2 + bytes * bytes);
        }
        if arrival.at_ns < self.last_ns {
            self.reordered += 1;
        }
        self.last_ns = self.last_ns.max(arrival.at_ns);
        if self.base_ns > 0 {
            return self.count(self.last_ns);
        }
        self.pilot.push(self.last_ns);
        if self.pilot.len() == PILOT {
            self.choose_base();
        }
    }

    /// Returns the statistics of all packets.
    pub fn finish(mut self) -> Result<Summary, Error> {
        if self.base_ns == 0 {
            self.choose_base();
        }
        const PACKETS_MIN: u64 = 100;
        let duration_s = self.last_ns.abs_diff(self.first_ns) as f64 / 1e9;
        if self.packets < PACKETS_MIN || duration_s == 0.0 {
            let message = format!(
                "the trace has {} packets in {duration_s} s; a fit needs at least {PACKETS_MIN} packets over a positive time",
                self.packets
            );
            return Err(Error::Trace(message));
        }
        let sized = self.sized as f64;
        let bytes_mean = (self.sized > 0).then(|| self.bytes as f64 / sized);
        let bytes_scv = bytes_mean.map(|mean| (self.bytes2 as f64 / sized / (mean * mean) - 1.0).max(0.0));
        let scales = self.levels.iter().enumerate().filter(|(_, level)| level.windows >= WINDOWS_MIN);
        let scales = scales.map(|(i, level)| level.scale(self.base_ns as f64 * 2f64.powi(i as i32) / 1e9)).collect();
        Ok(Summary {
            packets: self.packets,
            duration_s,
            rate_pps: (self.packets - 1) as f64 / duration_s,
            bytes_mean,
            bytes_scv,
            reordered: self.reordered,
            scales,
        })
    }

    /// Chooses the smallest window, which holds about one packet: 1, 2 or 5 times a power of ten nanoseconds, at most
    /// the mean gap.
    fn choose_base(&mut self) {
        let pilot = std::mem::take(&mut self.pilot);
        let span_ns = self.last_ns.abs_diff(self.first_ns);
        let gap_ns = (span_ns / (pilot.len() as u64).saturating_sub(1).max(1)).max(1);
        let mut unit = 1u64;
        while unit <= gap_ns / 10 {
            unit *= 10;
        }
        self.base_ns = [5, 2, 1].into_iter().map(|n| n * unit).find(|width| *width <= gap_ns).unwrap_or(1);
        self.expected = pilot.len() as f64 * self.base_ns as f64 / span_ns.max(1) as f64;
        for at_ns in pilot {
            self.count(at_ns);
        }
    }

    fn count(&mut self, at_ns: i64) {
        let window = at_ns.abs_diff(self.first_ns) / self.base_ns;
        if window > self.window {
            let empty = window - self.window - 1;
            self.close(0, self.inside, 1);
            self.close(0, 0, empty);
            (self.window, self.inside) = (window, 0);
        }
        self.inside += 1;
    }

    /// Closes `windows` windows of a size, each with the same `count`; more than one only for a count of 0.
    fn close(&mut self, i: usize, count: u64, windows: u64) {
        if windows == 0 {
            return;
        }
        if i == self.levels.len() {
            let centre = (self.expected * 2f64.powi(i as i32)).min(1e15) as i64;
            self.levels.push(WindowSums::new(centre));
        }
        let level = &mut self.levels[i];
        level.add(count, windows);
        let mut left = windows;
        if let Some(first) = level.half.take() {
            left -= 1;
            self.close(i + 1, first + count, 1);
        }
        if left % 2 == 1 {
            self.levels[i].half = Some(count);
        }
        self.close(i + 1, 2 * count, left / 2);
    }
}

impl WindowSums {
    fn new(centre: i64) -> Self {
        WindowSums { centre, windows: 0, sums: [0; 3], fourth: 0.0, recent: [0; LAGS], products: [0; LAGS], half: None }
    }

    fn add(&mut self, count: u64, windows: u64) {
        let off = count as i64 - self.centre;
        let d = i128::from(off);
        let n = i128::from(windows);
        for (sum, power) in self.sums.iter_mut().zip([d, d * d, d * d * d]) {
            *sum += n * power;
        }
        let square = off as f64 * off as f64;
        self.fourth += windows as f64 * square * square;
        // Each window in turn until all stored counts equal this one; from there on the products repeat.
        for _ in 0..windows.min(LAGS as u64) {
            let known = self.windows.min(LAGS as u64) as usize;
            for (lag, product) in self.products.iter_mut().enumerate().take(known) {
                let earlier = self.recent[((self.windows - 1 - lag as u64) % LAGS as u64) as usize];
                *product += d * i128::from(earlier);
            }
            self.recent[(self.windows % LAGS as u64) as usize] = off;
            self.windows += 1;
        }
        let rest = windows.saturating_sub(LAGS as u64);
        self.products.iter_mut().for_each(|product| *product += i128::from(rest) * d * d);
        self.windows += rest;
    }

    fn scale(&self, window_s: f64) -> Scale {
        let n = self.windows as f64;
        let [first, second, third] = self.sums.map(|sum| sum as f64 / n);
        let variance = (second - first * first) * n / (n - 1.0);
        let spread = second - first * first;
        let fourth =
            self.fourth / n - 4.0 * first * third + 6.0 * first * first * second - 3.0 * first * first * first * first;
        let autocorrelation = self.products.iter().enumerate().map(|(lag, product)| {
            let pairs = n - (lag + 1) as f64;
            (*product as f64 / pairs - first * first) / variance
        });
        Scale {
            window_s,
            windows: self.windows,
            mean: self.centre as f64 + first,
            variance,
            third: third - 3.0 * first * second + 2.0 * first * first * first,
            fourth: fourth - 3.0 * spread * spread,
            autocorrelation: autocorrelation.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_nanosecond() {
        assert_eq!(decimal_ns("0.5"), Some(500_000_000));
        assert_eq!(decimal_ns("1700000000.123456789"), Some(1_700_000_000_123_456_789));
        assert_eq!(decimal_ns("1.5e-3"), Some(1_500_000));
        assert_eq!(decimal_ns("-2"), Some(-2_000_000_000));
        assert_eq!(decimal_ns("0.0000000015"), Some(2));
        // Different notations of the same time.
        assert_eq!(decimal_ns("0.00000000000000000000000000000000005e35"), Some(5_000_000_000));
        assert_eq!(decimal_ns("50000000000000000000000000000000000e-34"), Some(5_000_000_000));
        let long = "9".repeat(50);
        for wrong in ["", ".", "time", "1.2.3", "1e99", "1e-99999", "99999999999999999999", &long, "nan", "--1"] {
            assert_eq!(decimal_ns(wrong), None, "{wrong}");
        }
    }

    /// Reference implementation: counts of `arrivals` (ns) in the windows of one level.
    fn reference_counts(arrivals: &[i64], width: i64) -> Vec<i64> {
        let full = (arrivals.last().unwrap() - arrivals[0]) / width;
        let mut counts = vec![0; full as usize];
        for at in arrivals {
            let window = ((at - arrivals[0]) / width) as usize;
            if window < counts.len() {
                counts[window] += 1;
            }
        }
        counts
    }

    #[test]
    fn counts_in_windows_of_every_size_match_the_reference_also_across_long_gaps() {
        // Gaps of 1 to 2000 ns in a fixed pattern, with a pause of 300 000 ns every 500 packets.
        let mut arrivals = vec![1_000_000_007];
        for i in 0..5000i64 {
            let gap = 1 + (i * i * 7919) % 2000 + if i % 500 == 0 { 300_000 } else { 0 };
            arrivals.push(arrivals[i as usize] + gap);
        }
        let mut counter = Counter::default();
        arrivals.iter().for_each(|&at_ns| counter.add(Arrival { at_ns, bytes: None }));
        let summary = counter.finish().unwrap();
        assert!(summary.scales.len() > 8, "{}", summary.scales.len());
        for scale in &summary.scales {
            let counts = reference_counts(&arrivals, (scale.window_s * 1e9).round() as i64);
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<i64>() as f64 / n;
            let moment = |order: i32| counts.iter().map(|x| (*x as f64 - mean).powi(order)).sum::<f64>() / n;
            let lagged = |lag: usize| {
                let products = counts.iter().zip(&counts[lag..]).map(|(x, y)| (*x as f64) * (*y as f64));
                products.sum::<f64>() / (n - lag as f64)
            };
            assert_eq!(scale.windows, counts.len() as u64);
            assert!((scale.mean - mean).abs() < 1e-9 * mean);
            assert!((scale.variance - moment(2) * n / (n - 1.0)).abs() < 1e-9 * moment(2));
            assert!((scale.third - moment(3)).abs() < 1e-7 * moment(3).abs() + 1e-9);
            let fourth = moment(4) - 3.0 * moment(2) * moment(2);
            assert!((scale.fourth - fourth).abs() < 1e-7 * moment(4));
            for lag in 1..=LAGS {
                // Products of deviations from an integer c near the mean; c cancels up to boundary terms.
                let expected = (lagged(lag) - mean * mean) / scale.variance;
                let ends = 4.0 * lag as f64 * (mean + 3.0 * moment(2).sqrt()).powi(2) / n / scale.variance;
                assert!((scale.autocorrelation[lag - 1] - expected).abs() < ends + 1e-9, "lag {lag}");
            }
        }
    }
}
