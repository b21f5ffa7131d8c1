//! Integration tests of the crate in one program, which links faster than several.

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
