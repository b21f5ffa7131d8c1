//! The past of the solution: rows at the ends of the steps, looked up where a delay points.

/// Rows of channels at rising times. The channels of one row were true from its time on.
#[derive(Debug)]
pub(crate) struct History {
    channels: usize,
    t: Vec<f64>,
    rows: Vec<f64>,
    /// Rows at which those that nobody needs are dropped.
    full: usize,
}

/// Where a reader was last. Delays hardly ever point backwards from there, so a lookup is a step or two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor(usize);

/// Number of rows kept before any is dropped.
const KEEP: usize = 1 << 10;

impl History {
    pub(crate) fn new(channels: usize) -> Self {
        History { channels, t: Vec::new(), rows: Vec::new(), full: KEEP }
    }

    /// Adds the row at `t`, not before the last; `fill` gets its channels.
    #[inline]
    pub(crate) fn push(&mut self, t: f64, row: &[f64]) {
        self.t.push(t);
        self.rows.extend_from_slice(row);
    }

    /// The last row at or before `t` and the share of the way from there to the next row. The first row stands for all
    /// that was before it.
    #[inline]
    pub(crate) fn find(&self, t: f64, cursor: &mut Cursor) -> (usize, f64) {
        let mut at = cursor.0;
        while at + 1 < self.t.len() && self.t[at + 1] <= t {
            at += 1;
        }
        while at > 0 && self.t[at] > t {
            at -= 1;
        }
        cursor.0 = at;
        let share = match self.t.get(at + 1) {
            Some(&next) if t > self.t[at] => (t - self.t[at]) / (next - self.t[at]),
            _ => 0.0,
        };
        (at, share)
    }

    /// A channel that is linear between rows.
    #[inline]
    pub(crate) fn linear(&self, (at, share): (usize, f64), channel: usize) -> f64 {
        let here = self.rows[at * self.channels + channel];
        if share == 0.0 {
            return here;
        }
        here + share * (self.rows[(at + 1) * self.channels + channel] - here)
    }

    /// A channel that is held from row to row.
    #[inline]
    pub(crate) fn held(&self, (at, _): (usize, f64), channel: usize) -> f64 {
        self.rows[at * self.channels + channel]
    }

    /// Drops the rows that nobody who looks no further back than `from` needs, now and then.
    pub(crate) fn forget(&mut self, from: f64, cursors: &mut [Cursor]) {
        if self.t.len() < self.full {
            return;
        }
        // The row at or before `from` stands for the time until the next.
        let drop = self.t.partition_point(|&t| t <= from).saturating_sub(1);
        self.t.drain(..drop);
        self.rows.drain(..drop * self.channels);
        for cursor in cursors {
            cursor.0 = cursor.0.saturating_sub(drop);
        }
        self.full = KEEP.max(2 * self.t.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_rows_a_channel_is_linear_or_held_and_before_the_first_it_is_constant() {
        let mut history = History::new(2);
        history.push(1.0, &[10.0, 5.0]);
        history.push(2.0, &[20.0, 6.0]);
        history.push(4.0, &[40.0, 7.0]);
        let mut cursor = Cursor::default();
        for (t, linear, held) in [
            (0.0, 10.0, 5.0),
            (1.5, 15.0, 5.0),
            (2.0, 20.0, 6.0),
            (3.5, 35.0, 6.0),
            (9.0, 40.0, 7.0),
            (1.25, 12.5, 5.0),
        ] {
            let at = history.find(t, &mut cursor);
            assert_eq!((history.linear(at, 0), history.held(at, 1)), (linear, held), "at {t}");
        }
    }

    #[test]
    fn what_nobody_asks_for_is_dropped_and_the_rest_answers_as_before() {
        let mut history = History::new(1);
        // The second reads nothing: it holds nobody up.
        let mut cursors = [Cursor::default(); 2];
        for k in 0..100_000 {
            let t = f64::from(k);
            history.push(t, &[10.0 * t]);
            let from = t - 300.5;
            if from > 0.0 {
                let at = history.find(from, &mut cursors[0]);
                assert_eq!(history.linear(at, 0), 10.0 * from, "at {t}");
            }
            history.forget(from, &mut cursors);
            assert!(history.t.len() <= KEEP.max(2 * 302), "{} rows", history.t.len());
        }
        let at = history.find(99_700.0, &mut cursors[1]);
        assert_eq!(history.linear(at, 0), 997_000.0);
    }
}
