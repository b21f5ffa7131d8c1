//! The settings of SCTP.

use aqumen_transport::sctp::{Recovery, SctpConfig};

use super::settings::{Setting, Table, settings};

impl Table for SctpConfig {
    const SETTINGS: &'static [Setting<Self>] = settings! {
        "ecn" ecn Flag: "whether data packets are ECN-capable";
        "packet" packet_bytes Size: "size on the wire of a full packet";
        "header" header_bytes Size: "header bytes of a packet, the chunk header included";
        "streams" streams Count: "streams of the association";
        "handshake" handshake Flag: "whether the association is set up before data flows";
        "initial_window" initial_window_bytes WindowOrNone:
            "congestion window at the start; \"none\": min(4 chunks, max(2 chunks, 4404B)), RFC 9260";
        "receive_window" receive_window_bytes Window: "the receiver's buffer";
        "delayed_sack" delayed_sack TimeOrNone: "longest delay of a SACK; \"none\": one for each packet";
        "max_burst" max_burst Burst: "most packets sent per event; \"none\": no limit";
        "burst_after_repair" burst_after_repair Flag:
            "whether max_burst holds only after a SACK of something that was fast retransmitted";
        "recovery" recovery Choice (&["standard", "ns2"], |config| config.recovery as usize, |config, index| {
            config.recovery = [Recovery::Standard, Recovery::Ns2][index];
        }): "end of fast recovery: as in RFC 9260, or later losses start another and a timeout does not end it";
        "min_rto" min_rto Time: "lower bound of the retransmission timeout";
        "max_rto" max_rto Time: "upper bound of the retransmission timeout";
        "initial_rto" initial_rto Time: "retransmission timeout before the first round-trip sample";
    };

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        self.validate().map_err(|error| (error.field, error.range))
    }
}
