//! The list of congestion controls: one row each, and their names.

/// Hands the list to a macro. A row: variant with its documentation, the word for it, what implements it, how that is
/// made.
macro_rules! controls {
    ($then:ident) => {
        $then! {
            /// One segment a round trip more, half after a loss or mark (RFC 5681).
            Reno "reno" PacedReno |_| PacedReno;
            /// A cubic of the time since the last reduction (RFC 9438).
            Cubic "cubic" Cubic Cubic::new;
            /// CUBIC 2.1 as in Linux 2.6.22, in whole segments: that of ns-2.35.
            Cubic21 "cubic-2.1" Cubic21 |_| Cubic21::new();
            /// A reduction in proportion to the fraction of marked packets (RFC 8257).
            Dctcp "dctcp" Dctcp |_| Dctcp::new();
            /// The same for the Internet: ECT(1), paced, less dependent on the round trip
            /// (draft-briscoe-iccrg-prague-congestion-control).
            Prague "prague" Prague |_| Prague::new();
            /// A model of the path, bandwidth and round trip, instead of losses
            /// (draft-cardwell-iccrg-bbr-congestion-control-00).
            Bbr "bbr" Bbr Bbr::new;
            /// A few packets in the queue, counted from the round trip (Brakmo and Peterson 1995).
            Vegas "vegas" Vegas |_| Vegas::new();
            /// At most 100 ms of queue, and less than others get (RFC 6817).
            Ledbat "ledbat" Ledbat |_| Ledbat::new();
        }
    };
}
pub(super) use controls;

macro_rules! names {
    ($( $(#[doc = $doc:literal])* $variant:ident $word:literal $control:ident $make:expr; )*) => {
        /// How a sender sets its congestion window.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Congestion {
            $( $(#[doc = $doc])* $variant, )*
        }

        impl Congestion {
            /// All of them.
            pub const ALL: &[Congestion] = &[$( Congestion::$variant, )*];

            /// The word for each of [`ALL`](Self::ALL), as lists show them.
            pub const WORDS: &[&str] = &[$( $word, )*];
        }
    };
}

controls!(names);
