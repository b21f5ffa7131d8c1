//! Recursive least squares with forgetting, a dead zone and a bounded covariance.
//!
//! ```text
//! e = y - phi' theta                       no update of theta and P while |e| < dead zone
//! theta += P phi e / (lambda + phi' P phi)
//! P = (P - P phi phi' P / (lambda + phi' P phi)) / lambda;  symmetrised
//! tr P <= 10 n P0, since without excitation P grows as lambda^-k
//! ```

use alloc::boxed::Box;

use crate::{Param, ParamError, Unit};

/// Bound on the trace of P relative to its initial value.
const TRACE_FACTOR: f64 = 10.0;

/// Parameters of [`Rls`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RlsParams {
    /// Forgetting factor, lambda, in (0, 1].
    pub forgetting: f64,
    /// Initial covariance, P0: P = P0 I.
    pub covariance: f64,
    /// Dead zone: smaller errors cause no update.
    pub dead_zone: f64,
}

/// Recursive least-squares estimator of theta in y = phi' theta.
#[derive(Clone, Debug)]
pub struct Rls {
    params: RlsParams,
    theta: Box<[f64]>,
    /// P in row-major order.
    p: Box<[f64]>,
    /// Buffer for P phi.
    gain: Box<[f64]>,
}

impl Rls {
    /// Estimator with initial estimate `theta`.
    pub fn new(params: RlsParams, theta: &[f64]) -> Result<Self, ParamError> {
        Param::check_positive("covariance", params.covariance, Unit::One)?;
        if !(params.forgetting > 0.0 && params.forgetting <= 1.0) {
            return Err(ParamError::relation("forgetting", params.forgetting, "must be above 0, at most 1"));
        }
        if !(params.dead_zone >= 0.0 && params.dead_zone.is_finite()) {
            return Err(ParamError::relation("dead_zone", params.dead_zone, "must be at least 0"));
        }
        let n = theta.len();
        let mut p = alloc::vec![0.0; n * n];
        p.iter_mut().step_by(n + 1).for_each(|diagonal| *diagonal = params.covariance);
        Ok(Rls { params, theta: theta.into(), p: p.into(), gain: alloc::vec![0.0; n].into() })
    }

    /// Sets the initial P, n by n in row-major order.
    ///
    /// # Panics
    /// If `p` does not have n times n entries.
    pub fn with_covariance(mut self, p: &[f64]) -> Self {
        self.p.copy_from_slice(p);
        self
    }

    /// Updates the estimate with output `y` and regressor `phi`; returns the error before the update.
    pub fn update(&mut self, phi: &[f64], y: f64) -> f64 {
        let n = self.theta.len();
        let RlsParams { forgetting, covariance, dead_zone } = self.params;
        let error = y - dot(phi, &self.theta);
        if error.abs() < dead_zone {
            return error;
        }
        for (gain, row) in self.gain.iter_mut().zip(self.p.chunks_exact(n)) {
            *gain = dot(row, phi);
        }
        let den = forgetting + dot(phi, &self.gain);
        for (theta, gain) in self.theta.iter_mut().zip(&self.gain) {
            *theta += gain * error / den;
        }
        for i in 0..n {
            for j in i..n {
                // The mean of both entries keeps P symmetric despite rounding.
                let mean = 0.5 * (self.p[i * n + j] + self.p[j * n + i]);
                let new = (mean - self.gain[i] * self.gain[j] / den) / forgetting;
                self.p[i * n + j] = new;
                self.p[j * n + i] = new;
            }
        }
        let (trace, bound) = (self.trace(), TRACE_FACTOR * n as f64 * covariance);
        if trace > bound {
            self.p.iter_mut().for_each(|entry| *entry *= bound / trace);
        }
        error
    }

    /// The estimate.
    pub fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// The trace of P.
    pub fn trace(&self) -> f64 {
        self.p.iter().step_by(self.theta.len() + 1).sum()
    }

    /// Parameters.
    pub const fn params(&self) -> &RlsParams {
        &self.params
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: RlsParams = RlsParams { forgetting: 1.0, covariance: 1.0, dead_zone: 0.0 };

    #[test]
    fn one_unknown_by_hand() {
        // theta = 0, P = 1, phi = 2, y = 10: e = 10, den = 1 + 4 = 5, theta = 2 * 10 / 5 = 4, P = 1 - 4/5 = 0.2.
        let mut rls = Rls::new(PARAMS, &[0.0]).unwrap();
        assert_eq!(rls.update(&[2.0], 10.0), 10.0);
        assert!((rls.theta()[0] - 4.0).abs() < 1e-15 && (rls.trace() - 0.2).abs() < 1e-15);
    }

    #[test]
    fn without_noise_the_estimate_converges() {
        let mut rls = Rls::new(RlsParams { covariance: 1e6, ..PARAMS }, &[0.0, 0.0]).unwrap();
        for k in 0..20 {
            let phi = [f64::from(k % 3), f64::from(k % 5) - 2.0];
            rls.update(&phi, 3.0 * phi[0] - 7.0 * phi[1]);
        }
        assert!((rls.theta()[0] - 3.0).abs() < 1e-5 && (rls.theta()[1] + 7.0).abs() < 1e-5, "{:?}", rls.theta());
    }

    #[test]
    fn the_dead_zone_skips_updates_and_the_trace_is_bounded() {
        let mut rls = Rls::new(RlsParams { dead_zone: 2.0, ..PARAMS }, &[1.0]).unwrap();
        assert_eq!(rls.update(&[1.0], 2.9), 1.9);
        assert_eq!((rls.theta()[0], rls.trace()), (1.0, 1.0));
        // With phi = 0 P grows by 1 / lambda at each update; 0.9^-22 exceeds the bound of 10.
        let mut rls = Rls::new(RlsParams { forgetting: 0.9, ..PARAMS }, &[1.0]).unwrap();
        for _ in 0..1000 {
            rls.update(&[0.0], 5.0);
        }
        assert!((rls.trace() - 10.0).abs() < 1e-12);
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let refused = |params| Rls::new(params, &[0.0]).unwrap_err().param;
        assert_eq!(refused(RlsParams { forgetting: 0.0, ..PARAMS }), "forgetting");
        assert_eq!(refused(RlsParams { forgetting: 1.1, ..PARAMS }), "forgetting");
        assert_eq!(refused(RlsParams { covariance: 0.0, ..PARAMS }), "covariance");
        assert_eq!(refused(RlsParams { dead_zone: -1.0, ..PARAMS }), "dead_zone");
    }
}
