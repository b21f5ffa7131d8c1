//! Variants and sweeps: `[variants]` are named changes, `[sweep]` has axes of values.

use serde_json::json;

use crate::field::{Cursor, Field, NameMap, ValueError};
use crate::tree::{Node, Value};

/// A named set of changes: dotted keys as for `--set`, and their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes(pub Vec<(String, toml::Value)>);

/// An axis of a sweep: labels of its points, and values of its keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Labels of the points, as used in cell ids.
    pub labels: Vec<String>,
    /// Dotted keys, each with one value for each label.
    pub set: Vec<(String, Vec<toml::Value>)>,
}

/// Most points on an axis.
const POINTS_MAX: usize = 10_000;

/// Refuses ambiguous labels: cell ids contain labels and names of variants without distinction.
pub(crate) fn check(variants: &NameMap<Changes>, sweep: &NameMap<Axis>) -> Result<(), (String, String)> {
    let mut labels: Vec<&str> = variants.0.iter().map(|(name, _)| name.as_str()).collect();
    for (name, axis) in &sweep.0 {
        for label in &axis.labels {
            if labels.contains(&label.as_str()) {
                let message =
                    format!("the label \"{label}\" is ambiguous; give distinct labels, such as label = \"{name}{{}}\"");
                return Err((format!("sweep.{name}"), message));
            }
            labels.push(label);
        }
    }
    Ok(())
}

impl Field for Changes {
    const WHAT: &'static str = "a table of dotted keys and their values";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        Ok(Changes(at.entries()?.iter().map(|(key, node)| (key.clone(), to_toml(node))).collect()))
    }

    fn write(&self) -> Option<toml::Value> {
        Some(toml::Value::Table(self.0.iter().cloned().collect()))
    }

    fn schema() -> serde_json::Value {
        json!({"type": "object"})
    }
}

impl Field for Axis {
    const WHAT: &'static str = "a table of `set`, dotted keys with lists or ranges of values, and perhaps `label`";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        at.only(&["label", "set"])?;
        let Some(node) = at.node.get("set") else {
            return Err(at.error("an axis needs `set`, such as set = { \"flows.ftp.count\" = [50, 100] }"));
        };
        let at_set = at.below("set", node);
        let mut set: Vec<(String, Vec<toml::Value>)> = Vec::new();
        for (key, node) in at_set.entries()? {
            let below = at_set.below(key, node);
            let values = points(&below)?;
            if let Some((first, others)) = set.first()
                && others.len() != values.len()
            {
                let message = format!(
                    "has {} values, {first} has {}; keys of one axis need the same number",
                    values.len(),
                    others.len()
                );
                return Err(below.error(message));
            }
            set.push((key.clone(), values));
        }
        let Some((_, first)) = set.first() else {
            return Err(at_set.error("must name at least one key"));
        };
        let labels = match at.node.get("label") {
            None => first.iter().map(|value| word(value, "{}")).collect(),
            Some(node) => {
                let below = at.below("label", node);
                match &node.value {
                    Value::List(_) => Vec::<String>::read(&below)?,
                    _ => {
                        let form = String::read(&below)?;
                        first.iter().map(|value| word(value, &form)).collect()
                    }
                }
            }
        };
        if labels.len() != first.len() {
            return Err(at.error(format!("has {} labels for {} points", labels.len(), first.len())));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if let Some(label) =
            labels.iter().find(|label| label.is_empty() || label.len() > 32 || !label.chars().all(fits))
        {
            return Err(at.error(format!(
                "\"{label}\" is not a label: at most 32 letters, digits, -, _ and points; give label = \"...{{}}\" or a list"
            )));
        }
        Ok(Axis { labels, set })
    }

    fn write(&self) -> Option<toml::Value> {
        let set = self.set.iter().map(|(key, values)| (key.clone(), toml::Value::Array(values.clone()))).collect();
        let mut table = toml::Table::new();
        table.insert("label".into(), self.labels.write()?);
        table.insert("set".into(), toml::Value::Table(set));
        Some(toml::Value::Table(table))
    }

    fn schema() -> serde_json::Value {
        json!({
            "type": "object", "required": ["set"], "additionalProperties": false,
            "properties": {
                "label": {
                    "description": "What ids call each point: a text in which {} is the value of the first key, or a list.",
                    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                },
                "set": {
                    "description": "Dotted keys, each with a list of values or a range; several go together, value by value.",
                    "type": "object", "additionalProperties": true,
                },
            },
        })
    }
}

/// Reads the values of a key: a list, or a range with steps or points.
fn points(at: &Cursor<'_>) -> Result<Vec<toml::Value>, ValueError> {
    let values = match &at.node.value {
        Value::List(items) => items.iter().map(to_toml).collect(),
        Value::Table(_) => range(at)?,
        _ => return Err(at.error("must be a list of values, or a range such as { from = 50, to = 200, step = 25 }")),
    };
    if values.is_empty() || values.len() > POINTS_MAX {
        return Err(at.error(format!("has {} values; 1 to {POINTS_MAX} are possible", values.len())));
    }
    Ok(values)
}

/// Reads `{ from, to, step }` or `{ from, to, points }`; with `log = true` the points are logarithmically spaced.
fn range(at: &Cursor<'_>) -> Result<Vec<toml::Value>, ValueError> {
    at.only(&["from", "to", "step", "points", "log"])?;
    let end = |key: &str| -> Result<Option<(f64, String)>, ValueError> {
        let Some(node) = at.node.get(key) else { return Ok(None) };
        let shown = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(_) | Value::Float(_) => node.value.show(),
            _ => return Err(at.below(key, node).error("must be a number, with a unit where the key has one")),
        };
        let digits = shown.find(|c: char| c.is_ascii_alphabetic() && !(c == 'e' || c == 'E')).unwrap_or(shown.len());
        let number = shown[..digits].trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| at.below(key, node).error("must begin with a number"))?;
        Ok(Some((number, shown[digits..].trim().to_string())))
    };
    let (Some((from, unit)), Some((to, unit_to))) = (end("from")?, end("to")?) else {
        return Err(at.error("a range needs `from` and `to`"));
    };
    let step = end("step")?;
    if unit != unit_to || step.as_ref().is_some_and(|(_, unit_step)| *unit_step != unit) {
        return Err(at.error("`from`, `to` and `step` must be in one unit"));
    }
    let log = at.field::<bool>("log", Some(false))?;
    let count = at.field::<Option<u32>>("points", None)?;
    let numbers: Vec<f64> = match (step, count) {
        (Some((step, _)), None) if !log && step != 0.0 && (to - from) / step >= 0.0 => {
            // The range is closed, also if rounding moves the last step slightly beyond the end.
            let steps = ((to - from) / step + 1e-9) as usize;
            if steps >= POINTS_MAX {
                return Err(at.error(format!("has more than {POINTS_MAX} values")));
            }
            (0..=steps).map(|i| from + step * i as f64).collect()
        }
        (None, Some(count)) if count >= 2 && (count as usize) <= POINTS_MAX && (!log || (from > 0.0 && to > 0.0)) => {
            let share = |i: u32| f64::from(i) / f64::from(count - 1);
            let at_point = |i: u32| match log {
                true => from * libm::pow(to / from, share(i)),
                false => from + (to - from) * share(i),
            };
            (0..count).map(at_point).collect()
        }
        _ => {
            let message = "a range needs either `step`, leading from `from` to `to`, or `points`, 2 or more; `log` goes with points and ends above 0";
            return Err(at.error(message));
        }
    };
    let whole = unit.is_empty() && numbers.iter().all(|number| (number - number.round()).abs() < 1e-9);
    Ok(numbers
        .into_iter()
        .map(|number| match (whole, unit.is_empty()) {
            (true, _) => toml::Value::Integer(number.round() as i64),
            (false, true) => toml::Value::Float(rounded(number)),
            (false, false) => toml::Value::String(format!("{}{unit}", rounded(number))),
        })
        .collect())
}

/// Rounds to six digits, which keeps labels short.
fn rounded(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// Formats a value for a label.
fn word(value: &toml::Value, form: &str) -> String {
    let shown = match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    form.replace("{}", &shown)
}

fn to_toml(node: &Node) -> toml::Value {
    match &node.value {
        Value::Text(text) | Value::Date(text) => toml::Value::String(text.clone()),
        Value::Integer(number) => toml::Value::Integer(*number),
        Value::Float(number) => toml::Value::Float(*number),
        Value::Bool(yes) => toml::Value::Boolean(*yes),
        Value::List(items) => toml::Value::Array(items.iter().map(to_toml).collect()),
        Value::Table(entries) => {
            toml::Value::Table(entries.iter().map(|(key, node)| (key.clone(), to_toml(node))).collect())
        }
    }
}
