//! Packet rate of this machine. It is measured, so that a plan that may need more is refused before it starts.

use std::net::{SocketAddr, UdpSocket};

use aqumen_scenario::Plan;

use super::testbed;
use crate::machine::UNMEASURED_PPS_MAX;
use crate::machine::namespace::Namespace;
use crate::machine::thread::CpuTime;
use crate::machine::tun::Tun;
use crate::{Context, Error};

/// CPU time of a packet in a link, relative to a bare read and write; `make bench` measures it.
const LINK_COST: f64 = 1.3;
/// Acknowledgements per data packet: every other packet is acknowledged.
const ACKS: f64 = 0.5;

/// Datagrams in a burst of [`Rig`], each of [`DATAGRAM_BYTES`].
pub const BURST: usize = 128;
/// Payload of a datagram, bytes.
pub const DATAGRAM_BYTES: usize = 1400;
/// Flows in a burst.
pub const FLOWS: u32 = 8;
const ROUNDS: usize = 15;

/// Refuses a plan whose recorded links carry more packets a second than this machine can.
pub fn check(plan: &Plan, super_packets: bool) -> Result<(), Error> {
    // The cost of a segment in a super-packet depends on their number. The lateness of a run shows whether the machine
    // kept up.
    if super_packets { Ok(()) } else { check_singly(plan, || Rig::new()?.bare_s()) }
}

/// Checks a plan without super-packets on a machine that reads and writes a packet in `bare_s` seconds.
fn check_singly(plan: &Plan, bare_s: impl FnOnce() -> Result<f64, Error>) -> Result<(), Error> {
    let demand = demand_pps(plan);
    if demand <= UNMEASURED_PPS_MAX {
        return Ok(());
    }
    let bound = 1.0 / (LINK_COST * bare_s()?);
    if demand <= bound {
        return Ok(());
    }
    Err(Error::setup(format!(
        "{}: its links carry up to {demand:.0} packets a second, acknowledgements included; this machine carries {bound:.0} (measured): \
         use a lower rate or larger packets",
        plan.scenario
    )))
}

/// Highest packet rate of the recorded links of `plan`, acknowledgements included.
fn demand_pps(plan: &Plan) -> f64 {
    let recorded = (0u32..).zip(&plan.links).filter(|(_, link)| link.record);
    let link_pps = |(number, link): (u32, &aqumen_scenario::Link)| {
        let crossing = plan.flows.iter().filter(|flow| flow.path.contains(&number));
        let (mut flows, mut bytes, mut acks) = (0.0, 0.0, 0.0);
        for flow in crossing {
            let transport = &plan.groups[flow.group as usize].transport;
            flows += 1.0;
            bytes += f64::from(transport.packet_bytes());
            acks += if transport.tcp().is_some() { ACKS } else { 0.0 };
        }
        let rate = link.rates.iter().map(|(_, rate)| rate.as_bps()).max().unwrap_or(0) as f64;
        if flows > 0.0 { rate / 8.0 / (bytes / flows) * (1.0 + acks / flows) } else { 0.0 }
    };
    recorded.map(link_pps).sum()
}

/// Two namespaces with a device each, and datagrams from one to the other.
#[derive(Debug)]
pub struct Rig {
    _namespaces: [Namespace; 2],
    sources: Vec<UdpSocket>,
    _sink: UdpSocket,
    /// Devices: datagrams come from the first and go to the second.
    pub tuns: [Tun; 2],
}

impl Rig {
    /// Creates namespaces and devices, which end with this object.
    pub fn new() -> Result<Self, Error> {
        let (namespaces, tuns) = testbed::namespaces(&[], 1500, 2 * BURST as u32, false)?;
        let port = 5003;
        let sources = namespaces[0].within(|| {
            let source = |flow| {
                let socket = UdpSocket::bind((testbed::sender(flow), 0)).context(|| "cannot bind a socket".into())?;
                let to = SocketAddr::from((testbed::receiver(flow), port));
                socket.connect(to).context(|| "cannot connect a socket".into())?;
                Ok(socket)
            };
            (0..FLOWS).map(source).collect::<Result<_, Error>>()
        })?;
        // The sink never reads: the kernel drops what exceeds its buffer.
        let sink =
            namespaces[1].within(|| UdpSocket::bind(("0.0.0.0", port)).context(|| "cannot bind a socket".into()))?;
        Ok(Rig { _namespaces: namespaces, sources, _sink: sink, tuns })
    }

    /// Sends a burst, which waits in the first device.
    pub fn burst(&self) -> Result<(), Error> {
        let datagram = [0; DATAGRAM_BYTES];
        for source in self.sources.iter().cycle().take(BURST) {
            source.send(&datagram).context(|| "cannot send a datagram".into())?;
        }
        Ok(())
    }

    /// Median CPU time of a read from one device and a write to the other, seconds per packet.
    pub fn bare_s(&self) -> Result<f64, Error> {
        let mut costs = Vec::new();
        for _ in 0..ROUNDS {
            self.burst()?;
            costs.push(self.carry_bare()?);
        }
        costs.sort_by(f64::total_cmp);
        Ok(costs[ROUNDS / 2])
    }

    /// Reads and writes the waiting packets, and nothing else. Returns CPU seconds per packet.
    pub fn carry_bare(&self) -> Result<f64, Error> {
        let mut buffer = [0; 2048];
        let (cpu, mut packets) = (CpuTime::for_thread(), 0u32);
        while let Some(length) = self.tuns[0].read(&mut buffer).context(|| "cannot read a TUN device".into())? {
            self.tuns[1].write(&buffer[..length]).context(|| "cannot write to a TUN device".into())?;
            packets += 1;
        }
        if packets == 0 {
            return Err(Error::setup("no packet of the test arrived at a TUN device"));
        }
        Ok(cpu.elapsed_s() / f64::from(packets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::dumbbell;

    fn plan(rate: &str, transport: &str) -> Plan {
        let links = [("topology.bottleneck.rate", rate), ("topology.access.rate", "10Gbit")];
        dumbbell(&links, &format!("[[flows]]\nname = \"one\"\n{transport}"))
    }

    #[test]
    fn plans_beyond_the_machines_packet_rate_are_refused() {
        let fast = plan("1200Mbit", "transport = \"linux\"");
        // 150 000 packets a second: each may take 6.7 us.
        assert!(check_singly(&fast, || Ok(1e-6)).is_ok());
        let error = check_singly(&fast, || Ok(6.7e-6)).unwrap_err().to_string();
        assert!(error.contains("carry up to 150000 packets a second"), "{error}");
        let modest = plan("100Mbit", "transport = \"linux\"");
        assert!(check_singly(&modest, || panic!("nothing is measured")).is_ok());
    }

    #[test]
    fn the_packet_rate_includes_acknowledgements() {
        // 12 Mbit/s are 1000 packets of 1500 bytes, and half as many acknowledgements.
        assert_eq!(demand_pps(&plan("12Mbit", "transport = \"linux\"")), 1500.0);
        let datagrams = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }";
        let bytes = f64::from(plan("12Mbit", datagrams).groups[0].transport.packet_bytes());
        assert_eq!(demand_pps(&plan("12Mbit", datagrams)), 12e6 / 8.0 / bytes);
    }

    #[test]
    fn a_link_costs_three_tenths_more_than_reading_and_writing() {
        // 150 000 packets a second have 6.67 us each, and 5.13 us are three tenths less than that.
        let fast = plan("1200Mbit", "transport = \"linux\"");
        assert!(check_singly(&fast, || Ok(5.12e-6)).is_ok());
        let error = check_singly(&fast, || Ok(5.2e-6)).unwrap_err().to_string();
        assert!(error.contains("this machine carries 147929 (measured)"), "{error}");
        // 13 333 packets of 1500 bytes a second and half as many acknowledgements are the least that is measured.
        assert!(check_singly(&plan("159Mbit", "transport = \"linux\""), || panic!("nothing is measured")).is_ok());
        let failed = check_singly(&plan("161Mbit", "transport = \"linux\""), || Err(Error::runtime("no device")));
        assert_eq!(failed, Err(Error::runtime("no device")));
        // Super-packets are not judged by single packets.
        assert!(check(&plan("400Gbit", "transport = \"linux\""), true).is_ok());
    }

    #[test]
    fn flows_that_share_a_link_bring_packets_of_their_mean_size() {
        // One flow of TCP with packets of 1500 bytes and three with 500: 750 in the mean, 2000 a second at 12 Mbit/s.
        let small = "[[flows]]\nname = \"small\"\ncount = 3\ntransport = { preset = \"linux\", packet = \"500B\" }\n";
        assert_eq!(demand_pps(&plan("12Mbit", &format!("transport = \"linux\"\n{small}"))), 3000.0);
        // Datagrams are not acknowledged: of four flows three are TCP, so that 3/8 of the packets are.
        let calls = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }\n";
        let bytes = f64::from(plan("12Mbit", calls).groups[0].transport.packet_bytes());
        let demand = demand_pps(&plan("12Mbit", &format!("{calls}{small}")));
        assert!((demand - 12e6 / 8.0 / ((bytes + 1500.0) / 4.0) * 1.375).abs() < 1e-9, "{demand}");
        let mut idle = plan("12Mbit", calls);
        idle.flows.clear();
        assert_eq!(demand_pps(&idle), 0.0, "no flow crosses it");
        // The highest rate counts.
        let events = "transport = \"linux\"\n[[events]]\nat = \"500ms\"\ncapacity = \"24Mbit\"\n";
        assert_eq!(demand_pps(&plan("12Mbit", events)), 3000.0);
    }

    #[test]
    fn a_burst_is_carried_from_one_device_to_the_other() {
        if crate::common::skipped("the rig that measures this machine") {
            return;
        }
        let rig = Rig::new().unwrap();
        rig.burst().unwrap();
        assert!(rig.carry_bare().unwrap() > 0.0);
        // The burst is gone.
        let error = rig.carry_bare().unwrap_err().to_string();
        assert_eq!(error, "no packet of the test arrived at a TUN device");
        // No machine takes a millisecond for a packet.
        let bare_s = rig.bare_s().unwrap();
        assert!(bare_s > 0.0 && bare_s < 1e-3, "{bare_s}");
    }
}
