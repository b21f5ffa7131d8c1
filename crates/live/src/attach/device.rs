//! Device to attach to.

use crate::netlink::Netlink;
use crate::netlink::tc::{self, Device};
use crate::{Context, Error, shorten};

/// Finds the device called `name`.
pub(crate) fn find(netlink: &mut Netlink, name: &str) -> Result<Device, Error> {
    tc::device(netlink, name).context(|| format!("{}: the device", shorten(name)))?.ok_or_else(|| {
        Error::setup(format!("no device {} in this network namespace; ip link lists them", shorten(name)))
    })
}

/// Bytes before the network header on `device`.
pub(crate) fn link_header(device: &Device) -> Result<u32, Error> {
    // ARPHRD_*: Ethernet and loopback; PPP, raw IP, none and the tunnels.
    match device.hardware {
        1 | 772 => Ok(14),
        512 | 519 | 65_534 | 768 | 769 | 776 | 778 | 823 => Ok(0),
        other => Err(Error::setup(format!(
            "{}: unsupported device type (ARPHRD {other}); supported are Ethernet, PPP and tunnels",
            device.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_begin_with_a_link_header_or_with_the_packet() {
        // linux/if_arp.h: Ethernet and loopback; PPP, raw IP, none, and the tunnels of IPv4, IPv6, sit and GRE.
        let header = |hardware| {
            link_header(&Device { index: 1, name: "wan".into(), hardware, mtu: 1500, queue_length: 1000 })
                .map_err(|error| error.to_string())
        };
        assert!([1, 772].iter().all(|kind| header(*kind) == Ok(14)));
        assert!([512, 519, 65_534, 768, 769, 776, 778, 823].iter().all(|kind| header(*kind) == Ok(0)));
        let wireless = header(801).unwrap_err();
        assert!(wireless.starts_with("wan: unsupported device type (ARPHRD 801)"), "{wireless}");
    }
}
