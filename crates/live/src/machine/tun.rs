//! TUN devices: packets that the kernel routes to a device are read here, and packets that are written here arrive from
//! it.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Context, Error};

/// A TUN device, which is removed with this object.
#[derive(Debug)]
pub struct Tun {
    file: File,
    /// Index of the device in its namespace.
    pub index: u32,
    /// Whether the device exchanges super-packets, with a `gso::Header` before each packet.
    pub super_packets: bool,
}

/// Offloads that the program takes from the kernel (`linux/if_tun.h`): checksums, TCP segmentation over IPv4 and IPv6,
/// also with CWR.
const OFFLOADS: libc::c_uint = 0x01 | 0x02 | 0x04 | 0x08;

/// Flags of the open file: non-blocking, closed on exec.
const OPEN_FLAGS: libc::c_int = libc::O_NONBLOCK | libc::O_CLOEXEC;
/// IP packets without a header.
const BARE: libc::c_int = libc::IFF_TUN | libc::IFF_NO_PI;
/// IP packets with a `gso::Header` before each.
const WITH_HEADERS: libc::c_int = BARE | libc::IFF_VNET_HDR;

impl Tun {
    /// Makes the device `name` in the calling thread's namespace, with super-packets if wanted.
    pub fn new(name: &str, super_packets: bool) -> Result<Self, Error> {
        let tun = Tun::create(name, if super_packets { WITH_HEADERS } else { BARE })?;
        if super_packets {
            // SAFETY: the descriptor is open; the request takes a number, no pointer.
            let answer =
                unsafe { libc::ioctl(tun.file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(OFFLOADS)) };
            if answer < 0 {
                let error = io::Error::last_os_error();
                return Err(Error::setup(format!("device {name}: this kernel supports no super-packets: {error}")));
            }
        }
        Ok(Tun { super_packets, ..tun })
    }

    fn create(name: &str, kind: libc::c_int) -> Result<Self, Error> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['/', '%', ' ']) {
            let most = libc::IFNAMSIZ - 1;
            return Err(Error::setup(format!(
                "device {name}: a name has 1 to {most} characters, none of them / % or blank"
            )));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OPEN_FLAGS)
            .open("/dev/net/tun")
            .context(|| "/dev/net/tun (kernel option CONFIG_TUN)".into())?;
        // SAFETY: all-zero bytes are a valid ifreq.
        let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = kind as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes the ifreq that it is given, no more.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        if answer < 0 {
            let error = io::Error::last_os_error();
            return Err(Error::setup(match error.raw_os_error() {
                Some(libc::EBUSY) => format!("device {name}: another program holds it"),
                Some(libc::EINVAL) => format!("device {name}: there is one already, and it is no TUN device"),
                _ => format!("cannot make the TUN device {name}: {error}"),
            }));
        }
        let index = rustix::net::netdevice::name_to_index(
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
                .context(|| "cannot open a socket".into())?,
            name,
        )
        .context(|| format!("cannot find the TUN device {name}"))?;
        Ok(Tun { file, index, super_packets: false })
    }

    /// Reads the next packet into `buffer`; `None` if none waits.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.file, &mut *buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes `packet` to the kernel.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        loop {
            match rustix::io::write(&self.file, packet) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::gso;
    use crate::machine::namespace::tests::namespace_with_addresses;

    #[test]
    fn a_device_has_a_name_that_the_kernel_takes() {
        let Some(here) = namespace_with_addresses("names of devices") else { return };
        let made = |name: &'static str| here.within(move || Tun::new(name, false)).map_err(|error| error.to_string());
        assert!(made("x").is_ok() && made("fifteen-letters").is_ok());
        for name in ["", "sixteen--letters", "a/b", "a%d", "a b"] {
            let why = made(name).unwrap_err();
            assert!(why.starts_with(&format!("device {name}: a name has 1 to 15 characters")), "{why}");
        }
        assert_eq!(made("lo").unwrap_err(), "device lo: there is one already, and it is no TUN device");
        let first = made("held").unwrap();
        assert_eq!(made("held").unwrap_err(), "device held: another program holds it");
        drop(first);
        assert!(made("held").is_ok());
    }

    #[test]
    fn packets_sent_to_a_device_are_read_unchanged() {
        let Some(here) = namespace_with_addresses("packets through a device") else { return };
        for super_packets in [false, true] {
            here.set_sysctls(&[("net.ipv6.conf.default.disable_ipv6".into(), "1".into())]).unwrap();
            let tun = here.within(move || Tun::new("aqumen", super_packets)).unwrap();
            assert_eq!(tun.super_packets, super_packets);
            here.bring_up(tun.index, 1500, 10).unwrap();
            let there = std::net::Ipv4Addr::new(192, 0, 2, 0);
            here.add_routes(&[crate::machine::namespace::Route::new(there, 24, Some(tun.index))]).unwrap();
            let mut buffer = [0; 2000];
            assert_eq!(tun.read(&mut buffer).unwrap(), None);
            let send = || {
                let socket = std::net::UdpSocket::bind("10.0.0.1:0").unwrap();
                assert_eq!(socket.send_to(&[7; 100], "192.0.2.1:9").unwrap(), 100);
                Ok(())
            };
            here.within(send).unwrap();
            // IPv4 and UDP, behind a header of the device's if super-packets may come.
            let before = if super_packets { gso::HEADER_BYTES } else { 0 };
            assert_eq!(tun.read(&mut buffer).unwrap(), Some(before + 128));
            assert_eq!((buffer[before], &buffer[before + 28..before + 128]), (0x45, &[7; 100][..]));
            assert_eq!(tun.read(&mut buffer).unwrap(), None);
            // A packet is written with the same header, or refused.
            let packet = buffer[before..before + 128].to_vec();
            assert_eq!(tun.write(&packet).is_ok(), !super_packets);
            tun.write(&buffer[..before + 128]).unwrap();
        }
    }
}
