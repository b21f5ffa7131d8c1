//! All tests of this crate from outside, in one program: to link one is quicker than to link a dozen.

mod common;
mod congestion;
mod endpoints;
mod ns2;
mod rack;
mod random;
mod receiver;
mod recovery;
mod rtp;
mod sctp;
mod sctp_random;
mod sender;
mod transfers;
mod udp;
