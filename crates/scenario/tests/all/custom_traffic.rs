//! Custom kinds of traffic: scenarios with the extension accept their names and parameters.

use std::num::NonZeroU32;

use aqumen_aqm::{Bound, DefaultValue, Kind, Param, Unit, Value};
use aqumen_scenario::streams::{Kind as StreamKind, Stream};
use aqumen_scenario::traffic::{CustomKind, CustomKinds, CustomSource};
use aqumen_scenario::{Extensions, Files, Scenario, Traffic};
use aqumen_units::{Instant, Span};

use crate::common::{DUMBBELL, with};

fn scenario_with(traffic: &str) -> String {
    with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"ns2\"\ntraffic = {traffic}"))
}

/// Source with growing packets and growing gaps.
#[derive(Clone)]
struct Growing {
    gap: Span,
    sent: u32,
}

impl CustomSource for Growing {
    fn next(&mut self, _: Instant, _: &mut Stream) -> Option<(Span, NonZeroU32)> {
        self.sent += 1;
        (self.sent <= 3)
            .then(|| (self.gap.saturating_mul(u64::from(self.sent)), NonZeroU32::new(100 * self.sent).unwrap()))
    }
}

const GAP: Param = Param {
    name: "gap",
    kind: Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(1e-3), max: Bound::Open },
    default: DefaultValue::Value(Value::Number(0.01)),
    doc: "the first gap",
};

fn growing() -> CustomKind {
    CustomKind::new("growing", &[GAP], |values| {
        let gap_s = values.iter().find(|(name, _)| name == "gap").map_or(0.01, |(_, x)| *x);
        match gap_s {
            7.0 => Err("seven is not made".into()),
            _ => Ok(Box::new(Growing { gap: Span::from_secs_f64(gap_s), sent: 0 })),
        }
    })
}

#[test]
fn a_custom_source_is_known_by_name_and_called_for_each_packet() {
    let extensions = Extensions { traffic: CustomKinds::NONE.with(growing()).unwrap(), ..Extensions::default() };
    let written = |value: &str| {
        Scenario::parse_with_extensions(&scenario_with(value), "t.toml", Files::on_disk("t.toml"), extensions.clone())
    };
    let sent = |scenario: &Scenario| {
        let Traffic::Custom(own) = &scenario.spec().flows[0].traffic else { panic!("a kind from extensions") };
        let mut source = own.source().unwrap();
        let mut rng = Stream::new(1, StreamKind::Traffic, 0);
        std::iter::from_fn(|| source.next(Instant::ZERO, &mut rng))
            .map(|(wait, bytes)| (wait, bytes.get()))
            .collect::<Vec<_>>()
    };
    // Gaps of 20, 40 and 60 ms; then the source ends.
    let scenario = written("{ kind = \"growing\", gap = \"20ms\" }").unwrap();
    let expected = [(20, 100), (40, 200), (60, 300)].map(|(ms, bytes)| (Span::from_millis(ms), bytes));
    assert_eq!(sent(&scenario), expected);
    // The scenario is written as it was read.
    let again =
        Scenario::parse_with_extensions(&scenario.to_toml(), "t.toml", Files::on_disk("t.toml"), extensions.clone())
            .unwrap();
    assert_eq!(sent(&again), expected);
    assert_eq!(sent(&written("\"growing\"").unwrap())[0].0, Span::from_millis(10));
    for (value, expected) in [
        ("\"grown\"", "flows.0.traffic = \"grown\": no such kind of traffic; did you mean growing?"),
        ("{ kind = \"growing\", gap = \"20kB\" }", "flows.0.traffic.gap = \"20kB\": "),
        ("{ kind = \"growing\", gap = \"1us\" }", "flows.0.traffic.gap = \"1us\": must be"),
        ("{ kind = \"growing\", gap = \"7s\" }", "flows.0.traffic.kind = \"growing\": seven is not made"),
        ("{ kind = \"growing\", size = 7 }", "flows.0.traffic.size = 7: not a parameter of growing"),
    ] {
        let error = written(value).map(drop).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Without the extension the name is unknown; the name of a built-in kind is refused.
    assert!(scenario.with_extensions(Extensions::default()).is_err());
    let cbr = CustomKind::new("cbr", &[], |_| Err(String::new()));
    assert!(CustomKinds::NONE.with(cbr).unwrap_err().contains("cbr is a built-in kind of traffic"));
}

#[test]
fn plans_are_equal_if_their_custom_sources_have_the_same_kind_and_values() {
    let plan = |kind: &CustomKind, value: &str| {
        let extensions = Extensions { traffic: CustomKinds::NONE.with(kind.clone()).unwrap(), ..Extensions::default() };
        let scenario =
            Scenario::parse_with_extensions(&scenario_with(value), "t.toml", Files::on_disk("t.toml"), extensions);
        scenario.unwrap().plan(1, None).unwrap()
    };
    let kind = growing();
    let written = plan(&kind, "{ kind = \"growing\", gap = \"20ms\" }");
    assert_eq!(written, plan(&kind, "{ kind = \"growing\", gap = \"20ms\" }"));
    // Other values; another source of the same name and values; another name of the same source.
    assert_ne!(written, plan(&kind, "{ kind = \"growing\", gap = \"30ms\" }"));
    assert_ne!(written, plan(&growing(), "{ kind = \"growing\", gap = \"20ms\" }"));
    let mut renamed = kind.clone();
    renamed.name = "shrinking";
    assert_ne!(written, plan(&renamed, "{ kind = \"shrinking\", gap = \"20ms\" }"));
    assert!(kind == kind.clone() && kind != renamed && kind != growing());
}
