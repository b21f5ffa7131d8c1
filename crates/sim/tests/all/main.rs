//! All tests of this crate from outside, in one program: to link one is quicker than to link a dozen.

mod applications;
mod classics;
mod common;
mod congestion;
mod cost;
mod engine;
mod experiments;
mod figures;
mod links;
mod measures;
mod multiqueue;
mod papers;
mod processes;
mod queues;
mod scenarios;
mod session;
mod traces;
mod transports;
mod utilization;
mod valid;
