//! The settings of UDP.

use aqumen_transport::udp::UdpConfig;

use super::settings::{Setting, Table, settings};

impl Table for UdpConfig {
    const SETTINGS: &'static [Setting<Self>] = settings! {
        "packet" packet_bytes Size: "size on the wire of a full packet";
        "header" header_bytes Size: "header bytes of a packet";
    };

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        self.validate().map_err(|error| (error.field, error.range))
    }
}
