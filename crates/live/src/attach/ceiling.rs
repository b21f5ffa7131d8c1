//! How many packets a second this machine can bring to a shaper. A rate above that never makes a queue, so that an AQM
//! over it would regulate nothing.
//!
//! Measured with the largest super-packets that the kernel builds by itself: a shaper handles each as one packet, and
//! what comes packet by packet costs more. They go over a loopback device with a token bucket like that of `--rate`, in
//! a namespace of its own, from all cores at once, since a bucket has one lock; without CAP_SYS_ADMIN over the loopback
//! device that is there, without a bucket. It is CPU time that counts, and the cheapest round: a busy machine is not
//! taken for a slow one.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;

use aqumen_units::Rate;

use crate::lab::ceiling::MODEST_PPS;
use crate::lab::namespace::{LOOPBACK, Namespace};
use crate::lab::thread::CpuTime;
use crate::netlink::Netlink;
use crate::netlink::tc::{self, Bucket, Handle};
use crate::{Failure, Tried};

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u32 = 28;
/// The longest payload of a datagram, bytes.
const PAYLOAD_MAX: u32 = 65_507;
/// Segments of a super-packet of datagrams: more the kernel refuses.
const SEGMENTS_MAX: u32 = 64;
/// Super-packets in a round.
const BURST: usize = 64;
const ROUNDS: usize = 15;
/// A bucket that holds nothing back: the highest rate that `--rate` takes, and room for all of a round.
const WIDE: Bucket = Bucket { rate: 50_000_000_000, burst: 500_000_000, limit: 1 << 30, overhead: 0 };

/// Refuses a `rate` in packets of `packet_bytes` (of which `mtu` from the IP header on) that this machine cannot fill.
pub(super) fn check(rate: Rate, packet_bytes: f64, mtu: u32) -> Result<(), Failure> {
    let wanted = rate.as_bps() as f64 / 8.0 / packet_bytes;
    if wanted <= MODEST_PPS {
        return Ok(());
    }
    // Where nothing can be measured nothing is refused.
    measured_pps(segment_bytes(mtu)).map_or(Ok(()), |ceiling| judge(rate, wanted, ceiling))
}

/// What a datagram of the longest packet carries.
fn segment_bytes(mtu: u32) -> u32 {
    mtu.clamp(576, 1500) - HEADERS
}

fn judge(rate: Rate, wanted: f64, ceiling: f64) -> Result<(), Failure> {
    if wanted <= ceiling {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "--rate: {:.1} Gbit/s are {wanted:.0} packets a second; this machine carries at most {ceiling:.0} (measured, in \
         super-packets of 64 kB), so that no queue would ever form: give the rate of the bottleneck",
        rate.as_bps() as f64 / 1e9
    )))
}

/// Segments of `segment_bytes` a second over a token bucket.
fn measured_pps(segment_bytes: u32) -> Result<f64, Failure> {
    let Ok(namespace) = Namespace::new() else { return of_all_cores_pps(segment_bytes, None) };
    namespace.within(|| {
        let mut netlink = Netlink::open().or_refuse(|| "netlink".into())?;
        tc::set_bucket(&mut netlink, LOOPBACK, Handle::new(1, 0), &WIDE).or_refuse(|| "a token bucket".into())
    })?;
    of_all_cores_pps(segment_bytes, Some(&namespace))
}

/// The same over the loopback device of `namespace`, or that of the calling thread, as it is.
fn of_all_cores_pps(segment_bytes: u32, namespace: Option<&Namespace>) -> Result<f64, Failure> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = || match namespace {
        Some(namespace) => namespace.within(|| sent_s(segment_bytes)),
        None => sent_s(segment_bytes),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let each = threads.into_iter().map(|thread| thread.join().expect("sending does not panic"));
        each.map(|packet_s| packet_s.map(f64::recip)).sum()
    })
}

/// CPU seconds that the calling thread takes for each segment of `segment_bytes`.
fn sent_s(segment_bytes: u32) -> Result<f64, Failure> {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).or_refuse(|| "cannot bind a socket".into());
    let (source, sink) = (socket()?, socket()?);
    let to = sink.local_addr().or_refuse(|| "a socket's address".into())?;
    source.connect(to).or_refuse(|| "cannot connect a socket".into())?;
    // Nobody reads: what has no more room is gone without a word, and is not split before.
    set(&sink, libc::UDP_GRO, 1)?;
    set(&source, libc::UDP_SEGMENT, segment_bytes as libc::c_int)?;
    let (segments, bytes) = super_packet(segment_bytes);
    // Each has memory of its own: traffic does not come out of the nearest cache.
    let payloads = vec![1; BURST * bytes];
    let mut rounds_s = [0.0; ROUNDS];
    for round_s in &mut rounds_s {
        let cpu = CpuTime::of_thread();
        for payload in payloads.chunks(bytes) {
            source.send(payload).or_refuse(|| "cannot send a datagram".into())?;
        }
        *round_s = cpu.passed_s();
    }
    Ok(each_s(rounds_s, segments))
}

/// Segments of the largest super-packet of such segments, and its bytes.
fn super_packet(segment_bytes: u32) -> (u32, usize) {
    let segments = (PAYLOAD_MAX / segment_bytes).min(SEGMENTS_MAX);
    (segments, (segments * segment_bytes) as usize)
}

/// What one segment takes, where rounds of super-packets of so many took so long. Neighbours make a round dearer, never
/// cheaper.
fn each_s(rounds_s: [f64; ROUNDS], segments: u32) -> f64 {
    rounds_s.into_iter().fold(f64::INFINITY, f64::min) / f64::from(segments) / BURST as f64
}

fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> Result<(), Failure> {
    // SAFETY: the kernel reads one int at `value`, which outlives the call.
    let answer = unsafe {
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), size)
    };
    if answer == 0 { Ok(()) } else { Err(Failure::refused(std::io::Error::last_os_error().to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_cannot_carry_is_refused_and_what_it_can_is_not() {
        // 12 Gbit/s in packets of 1500 bytes: a million a second.
        let rate = Rate::from_bps(12_000_000_000);
        assert_eq!(judge(rate, 1e6, 1e6), Ok(()));
        let refused = judge(rate, 1e6, 9e5).unwrap_err().to_string();
        assert!(refused.contains("12.0 Gbit/s are 1000000 packets a second"), "{refused}");
        assert!(refused.contains("at most 900000 (measured"), "{refused}");
    }

    #[test]
    fn a_super_packet_has_as_many_segments_as_the_kernel_takes() {
        // 44 x 1472 are 64 768 bytes, 45 were more than 65 507; of short ones 64.
        assert_eq!([1500, 9000, 576, 296].map(segment_bytes), [1472, 1472, 548, 548]);
        assert_eq!([super_packet(1472), super_packet(548)], [(44, 64_768), (64, 35_072)]);
    }

    #[test]
    fn the_cheapest_round_counts() {
        // 64 super-packets of 40 segments are 2560.
        let mut rounds_s = [7.0; ROUNDS];
        rounds_s[3] = 2.56e-3;
        assert!((each_s(rounds_s, 40) - 1e-6).abs() < 1e-18);
    }

    #[test]
    fn modest_rates_are_not_measured() {
        // 240 Mbit/s in packets of 1500 bytes: 20 000 a second.
        assert_eq!(check(Rate::from_bps(240_000_000), 1500.0, 1500), Ok(()));
    }

    #[test]
    fn what_every_machine_carries_is_taken_though_it_is_measured() {
        // 252 Mbit/s in packets of 1500 bytes: 21 000 a second.
        assert_eq!(check(Rate::from_bps(252_000_000), 1500.0, 1500), Ok(()));
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(set(&socket, libc::UDP_GRO, 1).is_ok() && set(&socket, 9999, 1).is_err());
    }

    #[test]
    fn what_no_machine_carries_is_refused() {
        // 10^15 bit/s in packets of 1500 bytes: 83 thousand million a second.
        let refused = check(Rate::from_bps(1_000_000_000_000_000), 1500.0, 1500).unwrap_err().to_string();
        assert!(refused.contains("1000000.0 Gbit/s are 83333333333 packets a second"), "{refused}");
    }
}
