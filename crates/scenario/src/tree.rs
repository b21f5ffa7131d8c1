//! The TOML text as a tree with the line of every value, for error messages. Overrides (`--set KEY=VALUE`) are applied
//! to this tree before it is read.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::Error;
use crate::error::{PathError, suggestion};

/// A value and its line.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    /// Line of the key or value, from 1; 0 for an override.
    pub(crate) line: usize,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Date(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

/// Deepest nesting of tables and lists.
const DEPTH_MAX: usize = 32;

impl Node {
    /// Reads a document.
    pub(crate) fn parse(text: &str, file: &str) -> Result<Node, Error> {
        let lines = Lines::new(text);
        let table = DeTable::parse(text).map_err(|error| {
            let mut located = Error::for_file(file, format!("not valid TOML: {}", error.message()));
            located.line = error.span().map_or(0, |span| lines.line_at(span.start));
            located
        })?;
        let too_deep = || Error::for_file(file, format!("nested deeper than {DEPTH_MAX} levels"));
        let root = DeValue::Table(table.into_inner());
        Node::from_toml(&root, 0..0, &|span| lines.line_at(span.start), 0).ok_or_else(too_deep)
    }

    /// Reads the right-hand side of an override: a TOML value, otherwise plain text.
    pub(crate) fn parse_override(text: &str) -> Node {
        let parsed = DeValue::parse(text.trim()).ok();
        parsed
            .and_then(|value| Node::from_toml(value.get_ref(), 0..0, &|_| 0, 0))
            .unwrap_or(Node { value: Value::Text(text.into()), line: 0 })
    }

    fn from_toml(
        value: &DeValue<'_>,
        span: Range<usize>,
        line: &dyn Fn(Range<usize>) -> usize,
        depth: usize,
    ) -> Option<Node> {
        if depth > DEPTH_MAX {
            return None;
        }
        let here = line(span);
        let value = match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::Integer(number),
                // Too large for an integer: the nearest float, for messages.
                Err(_) => Value::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
            },
            DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(yes) => Value::Bool(*yes),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| Node::from_toml(item.get_ref(), item.span(), line, depth + 1))
                    .collect::<Option<_>>()?,
            ),
            DeValue::Table(entries) => Value::Table(
                entries
                    .iter()
                    .map(|(key, item)| {
                        let node = Node::from_toml(item.get_ref(), key.span(), line, depth + 1)?;
                        Some((key.get_ref().to_string(), node))
                    })
                    .collect::<Option<_>>()?,
            ),
        };
        Some(Node { value, line: here })
    }

    /// Returns the entry `key` of a table.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns the entry `key` of a table, mutable.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Table(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns the items of the list at `key` of a table.
    pub(crate) fn items(&mut self, key: &str) -> Option<&mut Vec<Node>> {
        match &mut self.get_mut(key)?.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Sets the entry `key` of a table to a text; the line number is retained.
    pub(crate) fn put(&mut self, key: &str, text: String) {
        if let Value::Table(entries) = &mut self.value {
            match entries.iter_mut().find(|(name, _)| name == key) {
                Some((_, node)) => node.value = Value::Text(text),
                None => entries.push((key.into(), Node { value: Value::Text(text), line: 0 })),
            }
        }
    }

    /// Removes the entry `key` of a table.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Value::Table(entries) = &mut self.value {
            entries.retain(|(name, _)| name != key);
        }
    }

    /// Returns the node at the dotted `path`, or its nearest ancestor.
    pub(crate) fn nearest(&self, path: &str) -> (&Node, bool) {
        let mut node = self;
        for step in path.split('.').filter(|step| !step.is_empty()) {
            let next = match &node.value {
                Value::List(items) => step.parse().ok().and_then(|i: usize| items.get(i)),
                _ => node.get(step),
            };
            match next {
                Some(next) => node = next,
                None => return (node, false),
            }
        }
        (node, true)
    }

    /// Sets the value at the dotted `key`; list elements are given by index, by `name`, or all by `*`.
    pub(crate) fn set(&mut self, key: &str, text: &str, file: &str) -> Result<(), Error> {
        self.set_node(key, &Node::parse_override(text), file)
    }

    /// As [`Node::set`], with a parsed value.
    pub(crate) fn set_node(&mut self, key: &str, node: &Node, file: &str) -> Result<(), Error> {
        let fail =
            |message: String| Error { key: key.into(), ..Error::for_file(file, format!("cannot set: {message}")) };
        let steps: Vec<&str> = key.split('.').map(str::trim).collect();
        if steps.iter().any(|step| step.is_empty()) {
            return Err(fail("the key must be names joined by dots, such as topology.bottleneck.rate".into()));
        }
        if steps.len() > DEPTH_MAX {
            return Err(fail(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.put_below(&steps, 0, node).map_err(fail)
    }

    /// Sets the value at `steps`, of which `depth` lead here. The error is a message without place.
    fn put_below(&mut self, steps: &[&str], depth: usize, node: &Node) -> Result<(), String> {
        let Some(step) = steps.get(depth) else {
            *self = node.clone();
            return Ok(());
        };
        let here = || steps[..depth].join(".");
        // The short forms transport = "ns2" and traffic = "voip" expand to tables.
        let short = depth.checked_sub(1).and_then(|before| match steps[before] {
            "transport" => Some("preset"),
            "traffic" => Some("kind"),
            _ => None,
        });
        if let (Value::Text(_), Some(key)) = (&self.value, short) {
            let name = std::mem::replace(self, Node { value: Value::Table(Vec::new()), line: self.line });
            self.value = Value::Table(vec![(key.into(), name)]);
        }
        match &mut self.value {
            Value::List(items) if *step == "*" => {
                items.iter_mut().try_for_each(|item| item.put_below(steps, depth + 1, node))
            }
            Value::List(items) => {
                let index = index_of(items, step).ok_or_else(|| {
                    let names = items.iter().filter_map(Node::name);
                    format!("{} has no entry {step}{}", here(), suggestion(step, names))
                })?;
                items[index].put_below(steps, depth + 1, node)
            }
            Value::Table(entries) => {
                let index = entries.iter().position(|(name, _)| name == step).unwrap_or_else(|| {
                    entries.push((step.to_string(), Node { value: Value::Table(Vec::new()), line: 0 }));
                    entries.len() - 1
                });
                entries[index].1.put_below(steps, depth + 1, node)
            }
            _ => Err(format!("{} is not a table", here())),
        }
    }
}

impl Node {
    /// The entry `name` of a table.
    fn name(&self) -> Option<&str> {
        match &self.get("name")?.value {
            Value::Text(name) => Some(name),
            _ => None,
        }
    }
}

/// Index of the list element that `step` gives by name or index.
fn index_of(items: &[Node], step: &str) -> Option<usize> {
    let named = items.iter().position(|item| item.name() == Some(step));
    named.or_else(|| step.parse().ok().filter(|i| *i < items.len()))
}

impl Value {
    /// The value as in a file, for messages.
    pub(crate) fn show(&self) -> String {
        match self {
            Value::Text(text) => format!("\"{text}\""),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Bool(yes) => yes.to_string(),
            Value::Date(date) => date.clone(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().take(8).map(|item| item.value.show()).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(_) => "{...}".into(),
        }
    }
}

/// Offsets of the starts of lines.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines(std::iter::once(0).chain(breaks).collect())
    }

    fn line_at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }
}

/// Returns the error at a dotted path, with its line and value.
pub(crate) fn locate(tree: &Node, file: &str, (path, message): PathError) -> Error {
    let (node, exact) = tree.nearest(&path);
    let value = match &node.value {
        Value::Table(_) => None,
        value => exact.then(|| value.show()),
    };
    Error { file: file.into(), line: node.line, key: path, value, message }
}
