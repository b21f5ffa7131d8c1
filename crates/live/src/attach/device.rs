//! The device to attach to.

use crate::netlink::Netlink;
use crate::netlink::tc::{self, Device};
use crate::{Failure, Tried};

/// The device called `name`.
pub(crate) fn find(netlink: &mut Netlink, name: &str) -> Result<Device, Failure> {
    tc::device(netlink, name)
        .or_refuse(|| format!("{name}: the device"))?
        .ok_or_else(|| Failure::refused(format!("no device {name} in this network namespace; ip link lists them")))
}

/// Bytes before the network header on `device`.
pub(crate) fn link_header(device: &Device) -> Result<u32, Failure> {
    // ARPHRD_*: Ethernet and loopback; PPP, raw IP, none and the tunnels.
    match device.hardware {
        1 | 772 => Ok(14),
        512 | 519 | 65_534 | 768 | 769 | 776 | 778 | 823 => Ok(0),
        other => Err(Failure::refused(format!(
            "{}: frames of this kind of device (ARPHRD {other}) are not understood; Ethernet, PPP and tunnels are",
            device.name
        ))),
    }
}
