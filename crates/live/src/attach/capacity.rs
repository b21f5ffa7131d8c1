//! Upper bound on the packet rate of this machine. Above it no queue ever forms, and an AQM would regulate nothing.
//!
//! The bound is measured with the largest super-packets that the kernel builds by itself: a shaper handles each as one
//! packet, and single packets cost more. They cross a loopback device with a token bucket like that of `--rate`, in a
//! separate namespace, from all cores at once, since a bucket has one lock. Without CAP_SYS_ADMIN they cross the
//! existing loopback device, without a bucket. The cheapest round in CPU time counts, so that a busy machine is not
//! mistaken for a slow one.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;

use aqumen_units::Rate;

use crate::machine::UNMEASURED_PPS_MAX;
use crate::machine::namespace::{LOOPBACK, Namespace};
use crate::machine::thread::CpuTime;
use crate::netlink::Netlink;
use crate::netlink::tc::{self, Bucket, Handle};
use crate::{Context, Error};

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u32 = 28;
/// Longest payload of a datagram, bytes.
const PAYLOAD_MAX: u32 = 65_507;
/// Highest number of segments in a UDP super-packet of Linux.
const SEGMENTS_MAX: u32 = 64;
/// Super-packets in a round.
const BURST: usize = 64;
const ROUNDS: usize = 15;
/// Bucket that never limits: the highest rate of `--rate`, and a buffer for a whole round.
const UNLIMITED: Bucket = Bucket { rate: 50_000_000_000, burst: 500_000_000, limit: 1 << 30, overhead: 0 };

/// Refuses a `rate` in packets of `packet_bytes` that this machine cannot reach. `mtu` counts from the IP header.
pub(super) fn check(rate: Rate, packet_bytes: f64, mtu: u32) -> Result<(), Error> {
    let demand = rate.as_bps() as f64 / 8.0 / packet_bytes;
    if demand <= UNMEASURED_PPS_MAX {
        return Ok(());
    }
    // A failed measurement refuses nothing.
    measured_pps(segment_bytes(mtu)).map_or(Ok(()), |bound| judge(rate, demand, bound))
}

/// Payload of a datagram in a full packet.
fn segment_bytes(mtu: u32) -> u32 {
    mtu.clamp(576, 1500) - HEADERS
}

fn judge(rate: Rate, demand: f64, bound: f64) -> Result<(), Error> {
    if demand <= bound {
        return Ok(());
    }
    Err(Error::setup(format!(
        "--rate: {:.1} Gbit/s are {demand:.0} packets a second; this machine carries at most {bound:.0} (measured, in \
         super-packets of 64 kB), so that no queue would ever form: give the rate of the bottleneck",
        rate.as_bps() as f64 / 1e9
    )))
}

/// Segments of `segment_bytes` per second through a token bucket.
fn measured_pps(segment_bytes: u32) -> Result<f64, Error> {
    let Ok(namespace) = Namespace::new() else { return all_cores_pps(segment_bytes, None) };
    namespace.within(|| {
        let mut netlink = Netlink::open().context(|| "netlink".into())?;
        tc::set_bucket(&mut netlink, LOOPBACK, Handle::new(1, 0), &UNLIMITED).context(|| "a token bucket".into())
    })?;
    all_cores_pps(segment_bytes, Some(&namespace))
}

/// Segments per second over the unchanged loopback device of `namespace`, or of the calling thread's namespace.
fn all_cores_pps(segment_bytes: u32, namespace: Option<&Namespace>) -> Result<f64, Error> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = || match namespace {
        Some(namespace) => namespace.within(|| segment_cpu_s(segment_bytes)),
        None => segment_cpu_s(segment_bytes),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let each = threads.into_iter().map(|thread| thread.join().expect("sending does not panic"));
        each.map(|packet_s| packet_s.map(f64::recip)).sum()
    })
}

/// CPU seconds per segment of `segment_bytes` in the calling thread.
fn segment_cpu_s(segment_bytes: u32) -> Result<f64, Error> {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context(|| "cannot bind a socket".into());
    let (source, sink) = (socket()?, socket()?);
    let to = sink.local_addr().context(|| "a socket's address".into())?;
    source.connect(to).context(|| "cannot connect a socket".into())?;
    // The sink never reads: the kernel drops what exceeds its buffer. With UDP_GRO it does not split before.
    set(&sink, libc::UDP_GRO, 1)?;
    set(&source, libc::UDP_SEGMENT, segment_bytes as libc::c_int)?;
    let (segments, bytes) = super_packet(segment_bytes);
    // Separate memory for each payload: real traffic is not in the nearest cache either.
    let payloads = vec![1; BURST * bytes];
    let mut rounds_s = [0.0; ROUNDS];
    for round_s in &mut rounds_s {
        let cpu = CpuTime::for_thread();
        for payload in payloads.chunks(bytes) {
            source.send(payload).context(|| "cannot send a datagram".into())?;
        }
        *round_s = cpu.elapsed_s();
    }
    Ok(cheapest_s(rounds_s, segments))
}

/// Number of segments in the largest super-packet, and its payload in bytes.
fn super_packet(segment_bytes: u32) -> (u32, usize) {
    let segments = (PAYLOAD_MAX / segment_bytes).min(SEGMENTS_MAX);
    (segments, (segments * segment_bytes) as usize)
}

/// CPU seconds per segment, from the cheapest round of super-packets with `segments`. Other load only makes a round
/// longer.
fn cheapest_s(rounds_s: [f64; ROUNDS], segments: u32) -> f64 {
    rounds_s.into_iter().fold(f64::INFINITY, f64::min) / f64::from(segments) / BURST as f64
}

fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> Result<(), Error> {
    // SAFETY: the kernel reads one int at `value`, which outlives the call.
    let answer = unsafe {
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), size)
    };
    if answer == 0 { Ok(()) } else { Err(Error::setup(std::io::Error::last_os_error().to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_above_the_measured_bound_are_refused() {
        // 12 Gbit/s in packets of 1500 bytes: a million a second.
        let rate = Rate::from_bps(12_000_000_000);
        assert_eq!(judge(rate, 1e6, 1e6), Ok(()));
        let error = judge(rate, 1e6, 9e5).unwrap_err().to_string();
        assert!(error.contains("12.0 Gbit/s are 1000000 packets a second"), "{error}");
        assert!(error.contains("at most 900000 (measured"), "{error}");
    }

    #[test]
    fn a_super_packet_has_as_many_segments_as_the_kernel_takes() {
        // 44 x 1472 are 64 768 bytes, 45 would exceed 65 507; of short segments there are 64.
        assert_eq!([1500, 9000, 576, 296].map(segment_bytes), [1472, 1472, 548, 548]);
        assert_eq!([super_packet(1472), super_packet(548)], [(44, 64_768), (64, 35_072)]);
    }

    #[test]
    fn the_cheapest_round_counts() {
        // 64 super-packets of 40 segments are 2560.
        let mut rounds_s = [7.0; ROUNDS];
        rounds_s[3] = 2.56e-3;
        assert!((cheapest_s(rounds_s, 40) - 1e-6).abs() < 1e-18);
    }

    #[test]
    fn modest_rates_are_not_measured() {
        // 240 Mbit/s in packets of 1500 bytes: 20 000 a second.
        assert_eq!(check(Rate::from_bps(240_000_000), 1500.0, 1500), Ok(()));
    }

    #[test]
    fn a_low_rate_passes_the_measurement() {
        // 252 Mbit/s in packets of 1500 bytes: 21 000 a second.
        assert_eq!(check(Rate::from_bps(252_000_000), 1500.0, 1500), Ok(()));
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(set(&socket, libc::UDP_GRO, 1).is_ok() && set(&socket, 9999, 1).is_err());
    }

    #[test]
    fn an_impossible_rate_is_refused() {
        // 10^15 bit/s in packets of 1500 bytes: 83 thousand million a second.
        let error = check(Rate::from_bps(1_000_000_000_000_000), 1500.0, 1500).unwrap_err().to_string();
        assert!(error.contains("1000000.0 Gbit/s are 83333333333 packets a second"), "{error}");
    }
}
