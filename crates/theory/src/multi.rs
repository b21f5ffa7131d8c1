//! ParkingLot queues: links in series that share flows, and the coupled queues of DualPI2.

pub(crate) mod coupled;
pub(crate) mod parking_lot;
