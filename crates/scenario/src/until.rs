//! Truncation of a scenario to its beginning, to try it out.

use aqumen_units::Span;

use crate::field::{Cursor, Field, Interval};
use crate::schema::Side;
use crate::tree::{Node, Value};
use crate::units::show_span;
use crate::{Error, Scenario};

impl Scenario {
    /// Returns the scenario truncated at `end`. Later events, windows, intervals and groups are omitted, with the
    /// events of these groups; intervals beyond `end` end with the run. The random draws are unchanged, so that the run
    /// is the beginning of the whole run, unless an omitted group precedes a remaining one.
    ///
    /// `end` is written as in a scenario file: `40s`. Fails unless it is before the end of the scenario, and if no flow
    /// is left.
    pub fn until(&self, end: &str) -> Result<Scenario, Error> {
        let spec = self.spec();
        let at = Cursor { node: &Node::parse_override(end), path: "until".into() };
        let end = Span::read(&at).map_err(|error| error.in_file(self.file()))?;
        if end == Span::ZERO || end >= spec.duration {
            let message = format!(
                "cannot be truncated at {}: must be above 0 and before the end of the run, {}",
                show_span(end),
                show_span(spec.duration)
            );
            return Err(Error { key: "until".into(), ..Error::for_file(self.file(), message) });
        }
        if let Some(first) = spec.flows.iter().map(|group| group.start.low).min().filter(|&first| first >= end) {
            let message =
                format!("cannot be truncated at {}: no flow begins before {}", show_span(end), show_span(first));
            return Err(Error { key: "until".into(), ..Error::for_file(self.file(), message) });
        }
        let mut tree = self.tree().clone();
        tree.put("duration", show_span(end));

        if spec.record.interval.is_some_and(|interval| interval > end)
            && let Some(record) = tree.get_mut("record")
        {
            record.put("interval", show_span(end));
        }

        let stays: Vec<bool> = spec.flows.iter().map(|group| group.start.low < end).collect();
        let gone = |name: &str| spec.flows.iter().zip(&stays).any(|(group, stays)| !stays && group.name.0 == name);
        for (i, group) in spec.flows.iter().enumerate() {
            let mut owners = Side::BOTH.into_iter().filter_map(|side| group.shares(side));
            if stays[i]
                && let Some(owner) = owners.find(|owner| gone(&owner.0))
            {
                let (own, owner) = (&group.name.0, &owner.0);
                let message = format!(
                    "cannot be truncated at {}: {own} runs between the hosts of {owner}, which begins later",
                    show_span(end)
                );
                return Err(Error { key: "until".into(), ..Error::for_file(self.file(), message) });
            }
        }
        retain(tree.items("events"), |i| {
            let event = &spec.events[i];
            let group = event.stop.as_ref().or(event.resume.as_ref());
            event.at < end && !group.is_some_and(|name| gone(&name.0))
        });
        for (i, node) in tree.items("flows").into_iter().flatten().enumerate() {
            let group = &spec.flows[i];
            if group.stop.is_some_and(|stop| stop > end) {
                node.remove("stop");
            }
            for (off, node) in group.off.iter().zip(node.items("off").into_iter().flatten()) {
                truncate(off, end, node);
            }
            retain(node.items("off"), |k| group.off[k].start < end);
        }
        retain(tree.items("flows"), |i| stays[i]);
        for (name, window) in &spec.windows.0 {
            let Some(windows) = tree.get_mut("windows") else { break };
            if window.start >= end {
                windows.remove(name);
            } else if let Some(node) = windows.get_mut(name) {
                truncate(window, end, node);
            }
        }
        self.with_tree(tree)
    }
}

/// Truncates an interval beyond `end` at the end of the run.
fn truncate(interval: &Interval, end: Span, node: &mut Node) {
    if interval.end.is_some_and(|its| its > end) {
        node.value = Value::Text(show_span(interval.start));
    }
}

/// Retains the items of a list, if any, whose index `stays`.
fn retain(items: Option<&mut Vec<Node>>, stays: impl Fn(usize) -> bool) {
    if let Some(items) = items {
        let mut index = 0..;
        items.retain(|_| index.next().is_some_and(&stays));
    }
}
