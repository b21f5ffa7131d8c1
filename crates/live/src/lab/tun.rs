//! TUN devices: what the kernel routes there is read here as IP packets, and what is written here arrives there.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Failure, Tried};

/// A TUN device; it goes away with this.
#[derive(Debug)]
pub struct Tun {
    file: File,
    /// Its index in the namespace where it was made.
    pub index: u32,
    /// It hands over super-packets, and takes them: each packet has a `gso::Header` before it.
    pub super_packets: bool,
}

/// What the program does in the kernel's place (`linux/if_tun.h`): checksums, segments of TCP over
/// IPv4 and IPv6, with CWR too.
const OFFLOADS: libc::c_uint = 0x01 | 0x02 | 0x04 | 0x08;

impl Tun {
    /// Makes the device `name` in the calling thread's namespace, one with super-packets if wanted.
    pub fn new(name: &str, super_packets: bool) -> Result<Self, Failure> {
        let flags = if super_packets { libc::IFF_VNET_HDR } else { 0 };
        let tun = Tun::with_flags(name, flags)?;
        if super_packets {
            // SAFETY: the descriptor is open; the request takes a number, no pointer.
            let answer =
                unsafe { libc::ioctl(tun.file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(OFFLOADS)) };
            if answer < 0 {
                let error = io::Error::last_os_error();
                return Err(Failure::refused(format!(
                    "device {name}: this kernel hands over no super-packets: {error}"
                )));
            }
        }
        Ok(Tun { super_packets, ..tun })
    }

    fn with_flags(name: &str, flags: libc::c_int) -> Result<Self, Failure> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['/', '%', ' ']) {
            let most = libc::IFNAMSIZ - 1;
            return Err(Failure::refused(format!(
                "device {name}: a name has 1 to {most} characters, none of them / % or blank"
            )));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .or_refuse(|| "/dev/net/tun (kernel option CONFIG_TUN)".into())?;
        // SAFETY: all-zero bytes are a valid ifreq.
        let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | flags) as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes the ifreq that it is given, no more.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        if answer < 0 {
            let error = io::Error::last_os_error();
            return Err(Failure::refused(match error.raw_os_error() {
                Some(libc::EBUSY) => format!("device {name}: another program holds it"),
                Some(libc::EINVAL) => format!("device {name}: there is one already, and it is no TUN device"),
                _ => format!("cannot make the TUN device {name}: {error}"),
            }));
        }
        let index = rustix::net::netdevice::name_to_index(
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
                .or_refuse(|| "cannot open a socket".into())?,
            name,
        )
        .or_refuse(|| format!("cannot find the TUN device {name}"))?;
        Ok(Tun { file, index, super_packets: false })
    }

    /// The next packet, into `buffer`; `None`: none waits.
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

    /// Gives the kernel `packet`.
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
