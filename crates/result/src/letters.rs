//! Compact letter display: rows of a table that share a letter are not significantly different.
//!
//! Insert-and-absorb algorithm of H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise
//! comparisons", Journal of Computational and Graphical Statistics 13, 2004. Each letter is a maximal set of rows
//! without a significant difference. Two rows share a letter if and only if they do not differ. The relation need not
//! be transitive.

/// Letters of each of `n` rows, in the table's order; `differ` is symmetric. The first row has the letter a.
pub fn letter_groups(n: usize, differ: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let mut columns = if n > 0 { vec![vec![true; n]] } else { Vec::new() };
    for i in 0..n {
        for j in i + 1..n {
            if differ(i, j) {
                columns = absorb(insert(columns, i, j));
            }
        }
    }
    // Letters are ordered by their first rows.
    columns.sort_by(|one, other| other.cmp(one));
    let letters_of = |row: usize| (0..columns.len()).filter(|&k| columns[k][row]).map(letter).collect();
    (0..n).map(letters_of).collect()
}

/// Splits each column that contains both rows into one without the first and one without the second.
fn insert(columns: Vec<Vec<bool>>, i: usize, j: usize) -> Vec<Vec<bool>> {
    let without = |column: &[bool], row: usize| {
        let mut column = column.to_vec();
        column[row] = false;
        column
    };
    let split = |column: Vec<bool>| {
        if column[i] && column[j] { vec![without(&column, i), without(&column, j)] } else { vec![column] }
    };
    columns.into_iter().flat_map(split).collect()
}

/// Removes each column that another one contains.
fn absorb(columns: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
    let within = |one: &[bool], other: &[bool]| one.iter().zip(other).all(|(&one, &other)| other || !one);
    let mut kept: Vec<Vec<bool>> = Vec::new();
    for column in columns {
        if !kept.iter().any(|other| within(&column, other)) {
            kept.retain(|other| !within(other, &column));
            kept.push(column);
        }
    }
    kept
}

/// Name of a column: a to z, A to Z, then a2, b2 and so on.
fn letter(k: usize) -> String {
    const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let (round, letter) = (k / LETTERS.len(), char::from(LETTERS[k % LETTERS.len()]));
    if round == 0 { letter.to_string() } else { format!("{letter}{}", round + 1) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn groups_of(n: usize, pairs: &[(usize, usize)]) -> Vec<String> {
        letter_groups(n, |i, j| pairs.contains(&(i, j)) || pairs.contains(&(j, i)))
    }

    /// Letters of a row: each with its digits.
    fn letters(group: &str) -> BTreeSet<String> {
        let mut found: Vec<String> = Vec::new();
        for each in group.chars() {
            match found.last_mut().filter(|_| each.is_ascii_digit()) {
                Some(last) => last.push(each),
                None => found.push(each.to_string()),
            }
        }
        found.into_iter().collect()
    }

    fn shared(one: &str, other: &str) -> bool {
        !letters(one).is_disjoint(&letters(other))
    }

    #[test]
    fn rows_that_share_a_letter_do_not_differ() {
        assert_eq!(groups_of(0, &[]), [""; 0]);
        assert_eq!(groups_of(3, &[]), ["a", "a", "a"]);
        assert_eq!(groups_of(3, &[(0, 1), (0, 2), (1, 2)]), ["a", "b", "c"]);
        // Only the first and the last differ.
        assert_eq!(groups_of(3, &[(0, 2)]), ["a", "ab", "b"]);
        // The second row does not differ from any.
        assert_eq!(groups_of(4, &[(0, 2), (0, 3), (2, 3)]), ["a", "abc", "b", "c"]);
    }

    #[test]
    fn eight_rows_have_the_letters_of_their_largest_sets() {
        let pairs = [(1, 7), (1, 8), (2, 4), (2, 5), (3, 4), (3, 5), (4, 7), (4, 8), (5, 6), (5, 7), (5, 8)];
        let groups = groups_of(8, &pairs.map(|(i, j)| (i - 1, j - 1)));
        // Maximal sets without a differing pair: a 1236, b 145, c 146, d 23678.
        assert_eq!(groups, ["abc", "ad", "ad", "bc", "b", "acd", "d", "d"]);
    }

    #[test]
    fn more_than_52_letters_have_numbers() {
        let groups = letter_groups(54, |_, _| true);
        assert_eq!([25, 26, 51, 52, 53].map(|k| groups[k].as_str()), ["z", "A", "Z", "a2", "b2"]);
    }

    fn relation() -> impl Strategy<Value = Vec<Vec<bool>>> {
        (1usize..9).prop_flat_map(|n| {
            prop::collection::vec(prop::collection::vec(any::<bool>(), n), n).prop_map(move |raw| {
                (0..n).map(|i| (0..n).map(|j| i != j && raw[i.min(j)][i.max(j)]).collect()).collect()
            })
        })
    }

    proptest! {
        /// Two rows share a letter if and only if they do not differ, and no letter contains another.
        #[test]
        fn letters_represent_the_relation(differ in relation()) {
            let n = differ.len();
            let groups = letter_groups(n, |i, j| differ[i][j]);
            for i in 0..n {
                for j in 0..n {
                    prop_assert_eq!(shared(&groups[i], &groups[j]), i == j || !differ[i][j], "{:?}", groups);
                }
            }
            let rows_of = |letter: &str| (0..n).filter(|&i| letters(&groups[i]).contains(letter)).collect::<BTreeSet<_>>();
            let all: BTreeSet<String> = groups.iter().flat_map(|group| letters(group)).collect();
            for one in &all {
                prop_assert!(all.iter().all(|other| one == other || !rows_of(one).is_subset(&rows_of(other))));
            }
        }

        /// Reordered rows share letters with the same rows.
        #[test]
        fn the_order_of_rows_changes_no_pair(differ in relation(), turn in 0usize..9) {
            let n = differ.len();
            let at = |i: usize| (i + turn) % n;
            let (groups, turned) = (letter_groups(n, |i, j| differ[i][j]), letter_groups(n, |i, j| differ[at(i)][at(j)]));
            for i in 0..n {
                for j in 0..n {
                    prop_assert_eq!(shared(&turned[i], &turned[j]), shared(&groups[at(i)], &groups[at(j)]));
                }
            }
        }
    }
}
