//! Self-configuring RED (Feng, Kandlur, Saha, Shin 1999), the older adaptive RED.
//!
//! max_p changes when the average crosses a threshold. When it falls below min_th, RED was too aggressive and max_p is
//! divided; when it rises above max_th, RED was too timid and max_p is multiplied.
//!
//! ```text
//!           avg < min_th                       avg > max_th
//! Below <──────────────── Between ────────────────────────────> Above
//!   entering: max_p /= alpha          entering: max_p *= beta
//! ```
//!
//! Deviations: none from the paper. As there and in ns-2, max_p is unbounded; the probability stays in [0, 1].
//! `ns2_stale_gentle` as in `ared`.

use crate::{
    AdaptiveRed, Algorithm, Bound, DefaultValue, Kind, MaxPRule, Network, Param, ParamError, Red, RedCurve, Settings,
    Unit, Value, classics::ared::STALE_GENTLE, classics::red,
};

const DEFAULT_ALPHA: f64 = 3.0;
const DEFAULT_BETA: f64 = 2.0;
const WEIGHT_RULE: &str = "fixed";

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "ared-feng",
    title: "ARED (Feng)",
    summary: "RED that scales its maximum probability when the average queue leaves its thresholds",
    reference: "Feng, Kandlur, Saha, Shin: A self-configuring RED gateway, 1999; ns-2.35",
    params: &red::family::<{ red::PARAMS.len() + MORE.len() }>(WEIGHT_RULE, &MORE),
};

const MORE: [Param; 3] = [
    factor("alpha", DEFAULT_ALPHA, "divisor of max_p when the average falls below min_th"),
    factor("beta", DEFAULT_BETA, "factor of max_p when the average rises above max_th"),
    STALE_GENTLE,
];

const fn factor(name: &'static str, default: f64, doc: &'static str) -> Param {
    let kind = Kind::Number { unit: Unit::One, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e6) };
    Param { name, kind, default: DefaultValue::number(default), doc }
}

/// Range of max_p, far beyond practical values; keeps repeated factors from reaching 0 or infinity.
const MAX_P_RANGE: (f64, f64) = (1e-100, 1e100);

/// Feng's rule: max_p changes by a factor when the average leaves the thresholds on the other side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FengRule {
    alpha: f64,
    beta: f64,
    region: Region,
}

/// Position of the average relative to the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Below,
    Between,
    Above,
}

/// Self-configuring RED.
pub type AredFeng = AdaptiveRed<FengRule>;

impl FengRule {
    /// Divides max_p by `alpha` on the way down, multiplies it by `beta` on the way up; both are at least 1.
    pub const fn new(alpha: f64, beta: f64) -> Self {
        FengRule { alpha, beta, region: Region::Below }
    }
}

impl MaxPRule for FengRule {
    #[inline]
    fn adapt(&mut self, average: f64, curve: &RedCurve) -> Option<f64> {
        let region = if average < curve.min_th() {
            Region::Below
        } else if average > curve.max_th() {
            Region::Above
        } else if average > curve.min_th() && average < curve.max_th() {
            Region::Between
        } else {
            // On a threshold: unchanged.
            self.region
        };
        if region == self.region {
            return None;
        }
        self.region = region;
        let max_p = match region {
            Region::Below => curve.max_p() / self.alpha,
            Region::Above => curve.max_p() * self.beta,
            Region::Between => return None,
        };
        Some(max_p.clamp(MAX_P_RANGE.0, MAX_P_RANGE.1))
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("alpha", Value::Number(self.alpha));
        visit("beta", Value::Number(self.beta));
    }

    fn take_over(&mut self, old: &Self) {
        self.region = old.region;
    }
}

impl AredFeng {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let rule = FengRule::new(
            settings.number("alpha").unwrap_or(DEFAULT_ALPHA),
            settings.number("beta").unwrap_or(DEFAULT_BETA),
        );
        let stale_gentle = settings.flag(STALE_GENTLE.name).unwrap_or(false);
        Ok(AdaptiveRed::new(Red::design(settings, network, WEIGHT_RULE)?, rule, None, stale_gentle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_p_changes_once_per_crossing() {
        let curve = RedCurve::new(50.0, 150.0, 0.1, true).unwrap();
        let mut rule = FengRule::new(3.0, 2.0);
        // The initial region is below, so the first packets do not divide max_p.
        assert_eq!(rule.adapt(0.0, &curve), None);
        assert_eq!(rule.adapt(100.0, &curve), None);
        assert_eq!(rule.adapt(151.0, &curve), Some(0.2));
        assert_eq!(rule.adapt(160.0, &curve), None);
        assert_eq!(rule.adapt(100.0, &curve), None);
        assert_eq!(rule.adapt(151.0, &curve), Some(0.2));
        assert_eq!(rule.adapt(49.0, &curve), Some(0.1 / 3.0));
        assert_eq!(rule.adapt(10.0, &curve), None);
    }

    #[test]
    fn an_average_on_a_threshold_changes_nothing() {
        let curve = RedCurve::new(50.0, 150.0, 0.1, true).unwrap();
        let mut rule = FengRule::new(3.0, 2.0);
        assert_eq!(rule.adapt(160.0, &curve), Some(0.2));
        // Still above: no second doubling.
        assert_eq!(rule.adapt(150.0, &curve), None);
        assert_eq!(rule.adapt(160.0, &curve), None);
    }
}
