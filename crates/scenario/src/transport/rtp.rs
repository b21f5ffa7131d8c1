//! The settings of RTP.

use aqumen_transport::rtp::{Control, RtpConfig};

use super::settings::{Setting, Table, settings};

const CONTROLS: [Control; 4] = [Control::Fixed, Control::Aaqm, Control::Tfrc, Control::Nada];

impl Table for RtpConfig {
    const SETTINGS: &'static [Setting<Self>] = settings! {
        "control" control Choice(
            &["fixed", "aaqm", "tfrc", "nada"],
            |config| CONTROLS.iter().position(|known| *known == config.control).unwrap_or(0),
            |config, index| config.control = CONTROLS[index]
        ): "how the sender sets its rate";
        "ecn" ecn Flag: "whether media packets are ECN-capable";
        "packet" packet_bytes Size: "size on the wire of a full packet";
        "header" header_bytes Size: "header bytes of a packet";
        "frame_interval" frame_interval Time: "time from frame to frame, over which its packets are spread";
        "whole_packets" whole_packets Flag: "whether frames consist of whole packets; the remainder goes to the next frame";
        "report_interval" report_interval Time: "time from one RTCP report of the receiver to the next";
        "sender_report_interval" sender_report_interval Time: "time from one RTCP report of the sender to the next";
        "initial_rate" initial_rate Rate: "rate of the encoder at the start, without headers";
        "min_rate" min_rate Rate: "lowest rate of the encoder";
        "max_rate" max_rate Rate: "highest rate of the encoder";
    };

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        self.validate().map_err(|error| (error.field, error.range))
    }
}
