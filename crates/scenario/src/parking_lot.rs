//! The preset `parking-lot`: routers `r0`, `r1`, ... in a row, with links `link1`, `link2`, ... between them, all under
//! test. By default flows go from the first router to the last; cross traffic uses a part of the row.

use aqumen_units::{Rate, Span};
use serde_json::json;

use crate::channel::Capacity;
use crate::field::{Buffer, Cursor, Field, Name, ValueError, table};
use crate::links::{Access, BUFFER_DEFAULT, GraphLink, Reverse};
use crate::tree::Value;

table! {
    /// Routers `r0`, `r1`, ... in a row, and the links `link1`, `link2`, ... between them, all under test.
    pub struct ParkingLot("a parking lot") {
        /// The preset: `parking-lot`.
        pub preset: Name,
        /// Rates of the links, in order; their number is the number of links.
        pub rate: Vec<Rate>,
        /// Propagation delay of every link, or a list with one for each.
        pub delay: PerLink<Span>,
        /// Buffer of every link, or a list with one for each.
        pub buffer: PerLink<Buffer> = PerLink(vec![BUFFER_DEFAULT]),
        /// The opposite direction of every link.
        pub reverse: Reverse = Reverse::default(),
        /// Access links of flow groups without their own.
        pub access: Option<Access>,
    }
}

/// One value for all links, or a list with one for each.
#[derive(Clone, Debug, PartialEq)]
pub struct PerLink<T>(pub Vec<T>);

impl<T: Copy> PerLink<T> {
    /// The value of link `i`.
    fn get(&self, i: usize) -> T {
        self.0[i.min(self.0.len() - 1)]
    }
}

impl<T: Field> Field for PerLink<T> {
    const WHAT: &'static str = T::WHAT;
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::List(items) if items.is_empty() => Err(at.error("must have one value for each link")),
            Value::List(_) => Vec::read(at).map(PerLink),
            _ => Ok(PerLink(vec![T::read(at)?])),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        if let [only] = &self.0[..] { only.write() } else { self.0.write() }
    }
    fn schema() -> serde_json::Value {
        json!({"anyOf": [T::schema(), {"type": "array", "items": T::schema(), "minItems": 1}]})
    }
}

impl ParkingLot {
    /// Names of the routers.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = String> {
        (0..=self.rate.len()).map(|i| format!("r{i}"))
    }

    /// Returns the links, or a key and a message.
    pub(crate) fn links(&self) -> Result<Vec<GraphLink>, (&'static str, String)> {
        let links = self.rate.len();
        if links == 0 {
            return Err(("rate", "must have the rate of at least one link".into()));
        }
        for (key, values) in [("delay", self.delay.0.len()), ("buffer", self.buffer.0.len())] {
            if values != 1 && values != links {
                return Err((
                    key,
                    format!("lists {values} values for {links} links; give one for all or one for each"),
                ));
            }
        }
        let link = |(i, rate): (usize, &Rate)| GraphLink {
            name: Name(format!("link{}", i + 1)),
            from: Name(format!("r{i}")),
            to: Name(format!("r{}", i + 1)),
            rate: Some(Capacity::Constant(*rate)),
            channel: None,
            loss: None,
            delay: self.delay.get(i),
            buffer: self.buffer.get(i),
            aqm: "test".into(),
            record: true,
            target: None,
            one_way: false,
            reverse: self.reverse.clone(),
        };
        Ok(self.rate.iter().enumerate().map(link).collect())
    }
}
