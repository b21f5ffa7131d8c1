//! Cells of a scenario file. A cell id lists points of the sweep's axes and variants: `464ms,ecn`. Axes are crossed;
//! the keys of one axis change together.

use crate::error::suggestion;
use crate::scenario::full_key;
use crate::tree::{Node, Value};
use crate::{Error, Scenario};

impl Scenario {
    /// Ids of the cells of the sweep: all combinations of the points of its axes, the last axis running fastest.
    /// Variants can be added to each. Empty without a sweep.
    pub fn cells(&self) -> Vec<String> {
        let axes = &self.spec().sweep.0;
        if axes.is_empty() {
            return Vec::new();
        }
        axes.iter().fold(vec![String::new()], |ids, (_, axis)| {
            let longer = |id: &String| {
                let start = if id.is_empty() { String::new() } else { format!("{id},") };
                axis.labels.iter().map(move |label| format!("{start}{label}")).collect::<Vec<_>>()
            };
            ids.iter().flat_map(longer).collect()
        })
    }

    /// Returns the cell of an id: labels of points and names of variants with commas between, in any order. Axes that
    /// the id omits keep the value of the file.
    pub fn cell(&self, id: &str) -> Result<Scenario, Error> {
        let spec = self.spec();
        let refuse = |message: String| Error {
            key: "cell".into(),
            value: Some(format!("\"{id}\"")),
            ..Error::for_file(self.file(), message)
        };
        let requested: Vec<&str> = id.split(',').map(str::trim).collect();
        let known = || {
            let points = spec.sweep.0.iter().flat_map(|(_, axis)| axis.labels.iter());
            points.chain(spec.variants.0.iter().map(|(name, _)| name)).map(String::as_str)
        };
        if let Some(unknown) = requested.iter().find(|word| !known().any(|one| one == **word)) {
            return Err(refuse(format!("no point or variant \"{unknown}\"{}", suggestion(unknown, known()))));
        }
        let mut tree = self.tree().clone();
        tree.remove("variants");
        tree.remove("sweep");
        let mut name = spec.name.0.clone();
        let mut titles = Vec::new();
        for (axis_name, axis) in &spec.sweep.0 {
            let here: Vec<usize> = axis
                .labels
                .iter()
                .enumerate()
                .filter(|(_, l)| requested.contains(&l.as_str()))
                .map(|(i, _)| i)
                .collect();
            let &[point] = &here[..] else {
                if here.is_empty() {
                    continue;
                }
                let labels: Vec<&str> = here.iter().map(|&i| axis.labels[i].as_str()).collect();
                return Err(refuse(format!("{} are all on the axis \"{axis_name}\": name one", labels.join(", "))));
            };
            for (key, values) in &axis.set {
                tree.set_node(&full_key(key), &to_node(&values[point]), self.file())?;
            }
            titles.push(axis.labels[point].clone());
        }
        for (variant, changes) in spec.variants.0.iter().filter(|(variant, _)| requested.contains(&variant.as_str())) {
            for (key, value) in &changes.0 {
                tree.set_node(&full_key(key), &to_node(value), self.file())?;
            }
            titles.push(variant.clone());
        }
        for title in &titles {
            name += &format!("-{}", title.replace('.', "_"));
        }
        tree.put("name", name);
        if let Some(title) = &spec.title {
            tree.put("title", format!("{title} ({})", titles.join(", ")));
        }
        self.with_tree(tree)
    }
}

/// Converts a value to a node without a line number.
fn to_node(value: &toml::Value) -> Node {
    let value = match value {
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Integer(number) => Value::Integer(*number),
        toml::Value::Float(number) => Value::Float(*number),
        toml::Value::Boolean(yes) => Value::Bool(*yes),
        toml::Value::Datetime(date) => Value::Date(date.to_string()),
        toml::Value::Array(items) => Value::List(items.iter().map(to_node).collect()),
        toml::Value::Table(table) => {
            Value::Table(table.iter().map(|(key, value)| (key.clone(), to_node(value))).collect())
        }
    };
    Node { value, line: 0 }
}
