//! Packet captures: pcap and pcapng read as a stream, what the headers of their packets say, and pcapng written.
//!
//! A capture is untrusted input. [`Reader`] holds one block at a time (16 MiB at most, and never much more than what the file
//! really holds), refuses what is malformed with one line that names the offset, and never panics. [`headers::decode`] finds
//! the IP header behind the link layers of ordinary captures; [`Ip::mark`] sets CE in it.
//!
//! The blocks are framed here and not by a library: those at hand either keep every interface for ever, take a block larger
//! than their buffer for the end of the file, refuse interface options that are valid, or cannot say where a fault is.

#![forbid(unsafe_code)]

mod error;
pub mod headers;
mod pcap;
mod pcapng;
mod reader;
mod window;
mod writer;

pub use error::Error;
pub use headers::{Headers, Ip};
pub use reader::{LENGTH_MAX, Reader, Record, is_capture, is_compressed};
pub use writer::{IPV4, Writer};
