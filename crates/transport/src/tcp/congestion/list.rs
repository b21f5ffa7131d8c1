//! Registry of congestion controls.

/// Passes the registry to a macro. An entry: documented variant, name, type, and constructor.
macro_rules! controls {
    ($then:ident) => {
        $then! {
            /// Reno: one segment more per round trip, half after a loss or mark (RFC 5681).
            Reno "reno" PacedReno |_| PacedReno;
            /// CUBIC: a cubic function of the time since the last reduction (RFC 9438).
            Cubic "cubic" Cubic Cubic::new;
            /// CUBIC 2.1 of Linux 2.6.22 and ns-2.35, in whole segments.
            Cubic21 "cubic-2.1" Cubic21 |_| Cubic21::new();
            /// DCTCP: a reduction in proportion to the fraction of marked packets (RFC 8257).
            Dctcp "dctcp" Dctcp |_| Dctcp::new();
            /// TCP Prague: DCTCP's response for the Internet, with ECT(1), pacing, and less dependence on the
            /// round-trip time (draft-briscoe-iccrg-prague-congestion-control).
            Prague "prague" Prague |_| Prague::new();
            /// BBR version 1: a model of bandwidth and round-trip time instead of losses
            /// (draft-cardwell-iccrg-bbr-congestion-control-00).
            Bbr "bbr" Bbr Bbr::new;
            /// Vegas: a few packets in the queue, by the round-trip time (Brakmo and Peterson 1995).
            Vegas "vegas" Vegas |_| Vegas::new();
            /// LEDBAT: at most 100 ms of queueing delay, yielding to other flows (RFC 6817).
            Ledbat "ledbat" Ledbat |_| Ledbat::new();
        }
    };
}
pub(super) use controls;

macro_rules! congestion_enum {
    ($( $(#[doc = $doc:literal])* $variant:ident $name:literal $control:ident $make:expr; )*) => {
        /// Congestion control of a sender.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Congestion {
            $( $(#[doc = $doc])* $variant, )*
        }

        impl Congestion {
            /// All congestion controls.
            pub const ALL: &[Congestion] = &[$( Congestion::$variant, )*];

            /// Name of each of [`ALL`](Self::ALL).
            pub const NAMES: &[&str] = &[$( $name, )*];
        }
    };
}

controls!(congestion_enum);
