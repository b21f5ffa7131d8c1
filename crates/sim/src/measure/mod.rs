//! What is measured of flows beside the counts that their ends keep.
//!
//! [`classes`] gathers, for each group, what happened to packets, messages, transfers and pages of flows that are no endless
//! TCP transfers; [`share`] samples how endless TCP transfers share a recorded link. Both keep their sums in pieces between the
//! edges of the windows, as the meters of the links do.

pub(crate) mod classes;
pub(crate) mod share;

use aqumen_scenario::Plan;

use classes::Classes;
use share::Share;

/// All of it.
pub(crate) struct Measures {
    pub(crate) classes: Classes,
    /// For each recorded link, by number.
    pub(crate) shares: Vec<(u32, Share)>,
}

/// Where an endless TCP transfer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    /// Congestion window, segments.
    pub(crate) cwnd: f64,
    /// Segments acknowledged.
    pub(crate) acknowledged: u32,
}

impl Measures {
    pub(crate) fn new(plan: &Plan) -> Self {
        let recorded = (0u32..).zip(&plan.links).filter(|(_, link)| link.record);
        Measures {
            classes: Classes::new(plan),
            shares: recorded.map(|(number, _)| (number, Share::new(plan, number))).collect(),
        }
    }

    /// It is time to sample.
    pub(crate) fn sample(&mut self, plan: &Plan, now: u64, standing: impl Fn(u32) -> Standing) {
        self.shares.iter_mut().for_each(|(_, share)| share.sample(plan, now, &standing));
    }

    /// A window begins or ends.
    pub(crate) fn edge(&mut self) {
        self.classes.edge();
        self.shares.iter_mut().for_each(|(_, share)| share.edge());
    }
}
