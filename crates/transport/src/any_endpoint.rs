//! One type for the endpoints of all transports other than TCP.
//!
//! A host that stores endpoints by value dispatches by variant instead of a table of functions. TCP's endpoints are not
//! part of it: hosts store sender and receiver separately and pass segments without an envelope.

use alloc::boxed::Box;

use aqumen_units::Instant;

use crate::rtp::{RtpSink, RtpSource};
use crate::sctp::{SctpSink, SctpSource};
use crate::udp::{UdpSink, UdpSource};
use crate::{Delivery, Endpoint, Message, Packet, Stats};

/// Declares the enumeration of endpoints, given the names of their types.
macro_rules! endpoints {
    ($($endpoint:ident)*) => {
        /// An endpoint of any transport other than TCP.
        #[derive(Clone, Debug)]
        pub enum AnyEndpoint {
            $(
                #[doc = concat!("[`", stringify!($endpoint), "`].")]
                $endpoint(Box<$endpoint>),
            )*
        }

        $(
            impl From<$endpoint> for AnyEndpoint {
                fn from(endpoint: $endpoint) -> Self {
                    AnyEndpoint::$endpoint(Box::new(endpoint))
                }
            }
        )*

        impl Endpoint for AnyEndpoint {
            fn start(&mut self, now: Instant) {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.start(now), )*
                }
            }

            fn stop(&mut self, now: Instant) {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.stop(now), )*
                }
            }

            #[inline]
            fn write(&mut self, now: Instant, message: Message) {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.write(now, message), )*
                }
            }

            #[inline]
            fn on_packet(&mut self, now: Instant, packet: &Packet) {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.on_packet(now, packet), )*
                }
            }

            #[inline]
            fn on_timer(&mut self, now: Instant) {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.on_timer(now), )*
                }
            }

            #[inline]
            fn next_timer(&self) -> Option<Instant> {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.next_timer(), )*
                }
            }

            #[inline]
            fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.poll_transmit(now), )*
                }
            }

            fn stats(&self) -> Stats {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.stats(), )*
                }
            }

            #[inline]
            fn poll_delivery(&mut self) -> Option<Delivery> {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.poll_delivery(), )*
                }
            }

            #[inline]
            fn rate_bps(&self) -> Option<f64> {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.rate_bps(), )*
                }
            }

            #[inline]
            fn is_idle(&self) -> bool {
                match self {
                    $( AnyEndpoint::$endpoint(endpoint) => endpoint.is_idle(), )*
                }
            }
        }
    };
}

endpoints! { UdpSource UdpSink RtpSource RtpSink SctpSource SctpSink }
