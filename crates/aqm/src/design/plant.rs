//! Plant model for controller design: TCP's window and the queue, linearised at an operating point.
//!
//! Model of Hollot, Misra, Towsley and Gong with unresponsive traffic, as in the ARM-PFC paper (Bigdeli, Haeri 2007),
//! eqs. (1)-(6), with corrected signs and delay:
//!
//! ```text
//! dq/dp = - k_t exp(-s R0) / ((tau1 s + 1) (tau2 s + 1))
//! ```

use crate::{Network, Param, ParamError, Unit};

/// Long-lived TCP flows at a bottleneck, at an operating point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpPlant {
    flows: f64,
    capacity_pps: f64,
    rtt_s: f64,
    unresponsive_pps: f64,
}

impl TcpPlant {
    /// N flows at capacity C (packets/s) with round-trip time R0 (seconds, queueing included). All are above 0.
    pub fn new(flows: f64, capacity_pps: f64, rtt_s: f64) -> Result<Self, ParamError> {
        for (name, value, unit) in
            [("flows", flows, Unit::One), ("capacity", capacity_pps, Unit::One), ("r0", rtt_s, Unit::Seconds)]
        {
            Param::check_positive(name, value, unit)?;
        }
        let plant = TcpPlant { flows, capacity_pps, rtt_s, unresponsive_pps: 0.0 };
        // Far beyond any network, and safe for floating point.
        if (1e-30..1e30).contains(&plant.gain_pkts()) {
            Ok(plant)
        } else {
            Err(ParamError::relation("flows", flows, "gives no finite plant gain at this capacity and round-trip time"))
        }
    }

    /// Adds `unresponsive_pps` packets/s of unresponsive traffic, u0, below the capacity.
    pub fn with_unresponsive(self, unresponsive_pps: f64) -> Result<Self, ParamError> {
        if (0.0..self.capacity_pps).contains(&unresponsive_pps) {
            Ok(TcpPlant { unresponsive_pps, ..self })
        } else {
            Err(ParamError::relation("unresponsive", unresponsive_pps, "must be at least 0 and below the capacity"))
        }
    }

    /// Plant of the nominal network with queue `target_pkts`.
    pub fn nominal(network: &Network, target_pkts: f64) -> Result<Self, ParamError> {
        let at_target = Network { target_pkts, ..*network };
        TcpPlant::new(network.flows, network.capacity_pps(), at_target.r0_s())
    }

    /// Number of long-lived flows, N.
    pub const fn flows(&self) -> f64 {
        self.flows
    }

    /// Capacity, C, packets/s.
    pub const fn capacity_pps(&self) -> f64 {
        self.capacity_pps
    }

    /// Round-trip time at the operating point, R0, seconds.
    pub const fn rtt_s(&self) -> f64 {
        self.rtt_s
    }

    /// Capacity left to TCP, C_e = C - u0, packets/s.
    pub fn tcp_pps(&self) -> f64 {
        self.capacity_pps - self.unresponsive_pps
    }

    /// Window at the operating point, W0 = R0 C_e / N, packets.
    pub fn window_pkts(&self) -> f64 {
        self.rtt_s * self.tcp_pps() / self.flows
    }

    /// Load, L = 1 / W0.
    pub fn load(&self) -> f64 {
        1.0 / self.window_pkts()
    }

    /// Signal probability at the operating point, p0 = 2 / W0^2. Above 1 if no probability holds so small a window.
    pub fn operating_probability(&self) -> f64 {
        let window = self.window_pkts();
        2.0 / (window * window)
    }

    /// Static gain, k_t = R0^3 C C_e^2 / (4 N^2): packets of queue per unit of probability.
    pub fn gain_pkts(&self) -> f64 {
        let (r, n, ce) = (self.rtt_s, self.flows, self.tcp_pps());
        r * r * r * self.capacity_pps * ce * ce / (4.0 * n * n)
    }

    /// Time constant of the queue, tau1 = R0 C / C_e, seconds.
    pub fn queue_time_s(&self) -> f64 {
        self.rtt_s * self.capacity_pps / self.tcp_pps()
    }

    /// Time constant of TCP's window, tau2 = R0^2 C_e / (2 N), seconds.
    pub fn window_time_s(&self) -> f64 {
        self.rtt_s * self.rtt_s * self.tcp_pps() / (2.0 * self.flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arm_pfc_papers_operating_point() {
        // N = 100, C = 1250, R0 = 0.28: W0 = 0.28 * 1250 / 100 = 3.5; p0 = 2 / 12.25 = 8 / 49;
        // k_t = 0.28^3 * 1250^3 / 40000 = 350^3 / 40000 = 42 875 000 / 40 000 = 1071.875; tau2
        // = 0.0784 * 1250 / 200 = 0.49.
        let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
        let near = |x: f64, y: f64| (x - y).abs() < 1e-12 * y;
        assert!(near(plant.window_pkts(), 3.5) && near(plant.load(), 1.0 / 3.5));
        assert!(near(plant.operating_probability(), 8.0 / 49.0));
        assert!(near(plant.gain_pkts(), 1071.875));
        assert!(near(plant.queue_time_s(), 0.28) && near(plant.window_time_s(), 0.49));
    }

    #[test]
    fn unresponsive_traffic_takes_capacity_from_tcp() {
        // A fifth of 1250 leaves 1000: W0 = 2.8, tau1 = 0.28 * 1.25 = 0.35, tau2 = 0.0784 * 1000 / 200 = 0.392.
        let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap().with_unresponsive(250.0).unwrap();
        let near = |x: f64, y: f64| (x - y).abs() < 1e-12 * y;
        assert!(near(plant.window_pkts(), 2.8));
        // k_t = 0.28^3 * 1250 * 1000^2 / (4 * 100^2) = 0.021952 * 31 250 = 686.
        assert!(near(plant.gain_pkts(), 686.0));
        assert!(near(plant.queue_time_s(), 0.35) && near(plant.window_time_s(), 0.392));
        assert!(plant.with_unresponsive(1250.0).is_err() && plant.with_unresponsive(-1.0).is_err());
    }

    #[test]
    fn a_network_without_flows_capacity_or_delay_is_an_error() {
        assert_eq!(TcpPlant::new(0.0, 1.0, 1.0).unwrap_err().param, "flows");
        assert_eq!(TcpPlant::new(1.0, f64::NAN, 1.0).unwrap_err().param, "capacity");
        assert_eq!(TcpPlant::new(1.0, 1.0, f64::INFINITY).unwrap_err().param, "r0");
        assert_eq!(TcpPlant::new(1.0, 1e7, 1e-100).unwrap_err().param, "flows");
    }
}
