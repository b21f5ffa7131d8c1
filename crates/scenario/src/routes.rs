//! Static routes: fewest hops, then least delay, then the first link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqumen_units::Span;

/// A directed link, for routing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) delay: Span,
}

/// Returns the links from `from` to `to`, in order: `None` if unreachable, empty for the same node.
pub(crate) fn route(nodes: usize, edges: &[Edge], from: u32, to: u32) -> Option<Vec<u32>> {
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for (i, edge) in edges.iter().enumerate() {
        into[edge.to as usize].push(i as u32);
        out[edge.from as usize].push(i as u32);
    }
    // Cost to reach `to` from each node, as (hops, nanoseconds).
    let mut cost: Vec<Option<(u32, u64)>> = vec![None; nodes];
    let mut open = BinaryHeap::from([Reverse(((0, 0), to))]);
    while let Some(Reverse((reached, node))) = open.pop() {
        if cost[node as usize].is_some() {
            continue;
        }
        cost[node as usize] = Some(reached);
        for &link in &into[node as usize] {
            let edge = &edges[link as usize];
            open.push(Reverse(((reached.0 + 1, reached.1 + edge.delay.as_nanos()), edge.from)));
        }
    }
    let mut path = Vec::new();
    let mut node = from;
    while node != to {
        let link = out[node as usize]
            .iter()
            .filter_map(|&link| {
                let edge = &edges[link as usize];
                let (hops, nanos) = cost[edge.to as usize]?;
                Some(((hops + 1, nanos + edge.delay.as_nanos()), link))
            })
            .min()?
            .1;
        path.push(link);
        node = edges[link as usize].to;
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u32, to: u32, millis: u64) -> Edge {
        Edge { from, to, delay: Span::from_millis(millis) }
    }

    #[test]
    fn fewest_hops_win_over_least_delay() {
        let edges = [edge(0, 1, 1), edge(1, 2, 1), edge(0, 2, 100)];
        assert_eq!(route(3, &edges, 0, 2), Some(vec![2]));
    }

    #[test]
    fn among_equal_hops_the_least_delay_wins_and_then_the_first_link() {
        let edges = [edge(0, 1, 5), edge(1, 3, 5), edge(0, 2, 4), edge(2, 3, 5)];
        assert_eq!(route(4, &edges, 0, 3), Some(vec![2, 3]));
        let twins = [edge(0, 1, 5), edge(0, 1, 5)];
        assert_eq!(route(2, &twins, 0, 1), Some(vec![0]));
    }

    #[test]
    fn links_have_a_direction() {
        assert_eq!(route(2, &[edge(0, 1, 5)], 1, 0), None);
        assert_eq!(route(2, &[edge(0, 1, 5)], 1, 1), Some(vec![]));
    }
}
