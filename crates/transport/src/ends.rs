//! The ends of all transports but TCP, as one type: the list of them, and one interface.
//!
//! A host that keeps ends by value knows at each call which one it is, and needs no table of functions for it. TCP's
//! ends are not among them: a host may keep sender and receiver apart, and hand over segments without an envelope.

use alloc::boxed::Box;

use aqumen_units::Instant;

use crate::rtp::{RtpSink, RtpSource};
use crate::sctp::{SctpSink, SctpSource};
use crate::udp::{UdpSink, UdpSource};
use crate::{Delivery, Endpoint, Message, Packet, Stats};

/// Declares the ends: each the name of its type.
macro_rules! ends {
    ($($end:ident)*) => {
        /// An end of a connection, of whatever transport but TCP.
        #[derive(Clone, Debug)]
        pub enum AnyEnd {
            $(
                #[doc = concat!("[`", stringify!($end), "`].")]
                $end(Box<$end>),
            )*
        }

        $(
            impl From<$end> for AnyEnd {
                fn from(end: $end) -> Self {
                    AnyEnd::$end(Box::new(end))
                }
            }
        )*

        impl Endpoint for AnyEnd {
            fn start(&mut self, now: Instant) {
                match self {
                    $( AnyEnd::$end(end) => end.start(now), )*
                }
            }

            fn stop(&mut self, now: Instant) {
                match self {
                    $( AnyEnd::$end(end) => end.stop(now), )*
                }
            }

            #[inline]
            fn write(&mut self, now: Instant, message: Message) {
                match self {
                    $( AnyEnd::$end(end) => end.write(now, message), )*
                }
            }

            #[inline]
            fn on_packet(&mut self, now: Instant, packet: &Packet) {
                match self {
                    $( AnyEnd::$end(end) => end.on_packet(now, packet), )*
                }
            }

            #[inline]
            fn on_timer(&mut self, now: Instant) {
                match self {
                    $( AnyEnd::$end(end) => end.on_timer(now), )*
                }
            }

            #[inline]
            fn next_timer(&self) -> Option<Instant> {
                match self {
                    $( AnyEnd::$end(end) => end.next_timer(), )*
                }
            }

            #[inline]
            fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
                match self {
                    $( AnyEnd::$end(end) => end.poll_transmit(now), )*
                }
            }

            fn stats(&self) -> Stats {
                match self {
                    $( AnyEnd::$end(end) => end.stats(), )*
                }
            }

            #[inline]
            fn poll_delivery(&mut self) -> Option<Delivery> {
                match self {
                    $( AnyEnd::$end(end) => end.poll_delivery(), )*
                }
            }

            #[inline]
            fn rate_bps(&self) -> Option<f64> {
                match self {
                    $( AnyEnd::$end(end) => end.rate_bps(), )*
                }
            }

            #[inline]
            fn is_idle(&self) -> bool {
                match self {
                    $( AnyEnd::$end(end) => end.is_idle(), )*
                }
            }
        }
    };
}

ends! { UdpSource UdpSink RtpSource RtpSink SctpSource SctpSink }
