//! How many packets a second this machine can carry: measured, so that a plan that may ask for more
//! is refused before it begins.

use std::net::{SocketAddr, UdpSocket};

use aqumen_scenario::Plan;

use super::namespace::{Namespace, Route};
use super::thread::CpuTime;
use super::tun::Tun;
use super::world;
use crate::{Failure, Tried};

/// Every machine carries so many; nothing is measured for fewer.
pub const MODEST_PPS: f64 = 20_000.0;
/// What a packet costs in a link, beside reading and writing it alone: `make bench` measures it.
const LINK_COST: f64 = 1.3;
/// Acknowledgements for each packet of data, at most every other one.
const ACKS: f64 = 0.5;

/// Datagrams in a burst of [`Rig`], each of [`DATAGRAM_BYTES`].
pub const BURST: usize = 128;
/// Their payload.
pub const DATAGRAM_BYTES: usize = 1400;
/// Flows among them.
pub const FLOWS: u32 = 8;
const ROUNDS: usize = 15;

/// Refuses a plan whose recorded links carry more packets a second than this machine can.
pub fn check(plan: &Plan, super_packets: bool) -> Result<(), Failure> {
    // Segments that come together cost a fraction of what each alone does, which depends on how many they are. Whether
    // the machine kept up its lateness says.
    if super_packets { Ok(()) } else { check_singly(plan, || Rig::new()?.bare_s()) }
}

/// The same of packets that come one by one, on a machine that reads and writes each in `bare_s` seconds.
fn check_singly(plan: &Plan, bare_s: impl FnOnce() -> Result<f64, Failure>) -> Result<(), Failure> {
    let wanted = wanted_pps(plan);
    if wanted <= MODEST_PPS {
        return Ok(());
    }
    let ceiling = 1.0 / (LINK_COST * bare_s()?);
    if wanted <= ceiling {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{}: its links carry up to {wanted:.0} packets a second, acknowledgements included; this machine carries {ceiling:.0} (measured): \
         take a lower rate or larger packets",
        plan.scenario
    )))
}

/// Packets a second over the recorded links of `plan` at most, and their acknowledgements.
fn wanted_pps(plan: &Plan) -> f64 {
    let recorded = (0u32..).zip(&plan.links).filter(|(_, link)| link.record);
    let of_link = |(number, link): (u32, &aqumen_scenario::Link)| {
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
    recorded.map(of_link).sum()
}

/// Two namespaces with a device each, and datagrams from one to the other.
#[derive(Debug)]
pub struct Rig {
    _namespaces: [Namespace; 2],
    sources: Vec<UdpSocket>,
    _sink: UdpSocket,
    /// The devices; datagrams come from the first and go to the second.
    pub tuns: [Tun; 2],
}

impl Rig {
    /// Sets it up; it goes with this.
    pub fn new() -> Result<Self, Failure> {
        let mut devices = Vec::new();
        let namespaces = [Namespace::new()?, Namespace::new()?];
        for (namespace, own, other) in
            [(&namespaces[0], world::SENDERS, world::RECEIVERS), (&namespaces[1], world::RECEIVERS, world::SENDERS)]
        {
            let tun = namespace.within(|| Tun::new("aqumen", false))?;
            namespace.bring_up(tun.index, 1500, 2 * BURST as u32)?;
            let here = Route::new(std::net::Ipv4Addr::from(own), world::NET_BITS, None);
            let there = Route::new(std::net::Ipv4Addr::from(other), world::NET_BITS, Some(tun.index));
            namespace.add_routes(&[here, there])?;
            devices.push(tun);
        }
        let port = 5003;
        let sources = namespaces[0].within(|| {
            let source = |flow| {
                let socket = UdpSocket::bind((world::sender(flow), 0)).or_refuse(|| "cannot bind a socket".into())?;
                let to = SocketAddr::from((world::receiver(flow), port));
                socket.connect(to).or_refuse(|| "cannot connect a socket".into())?;
                Ok(socket)
            };
            (0..FLOWS).map(source).collect::<Result<_, Failure>>()
        })?;
        // Nobody reads: what has no more room is gone without a word.
        let sink =
            namespaces[1].within(|| UdpSocket::bind(("0.0.0.0", port)).or_refuse(|| "cannot bind a socket".into()))?;
        let tuns = devices.try_into().expect("a device for each of two namespaces");
        Ok(Rig { _namespaces: namespaces, sources, _sink: sink, tuns })
    }

    /// Sends a burst: it waits in the first device to be read.
    pub fn burst(&self) -> Result<(), Failure> {
        let datagram = [0; DATAGRAM_BYTES];
        for source in self.sources.iter().cycle().take(BURST) {
            source.send(&datagram).or_refuse(|| "cannot send a datagram".into())?;
        }
        Ok(())
    }

    /// CPU time of reading a packet from one device and writing it to the other, seconds: the median of some bursts.
    pub fn bare_s(&self) -> Result<f64, Failure> {
        let mut costs = Vec::new();
        for _ in 0..ROUNDS {
            self.burst()?;
            costs.push(self.carry_bare()?);
        }
        costs.sort_by(f64::total_cmp);
        Ok(costs[ROUNDS / 2])
    }

    /// Reads and writes what waits, and nothing else; CPU seconds a packet.
    pub fn carry_bare(&self) -> Result<f64, Failure> {
        let mut buffer = [0; 2048];
        let (cpu, mut packets) = (CpuTime::of_thread(), 0u32);
        while let Some(length) = self.tuns[0].read(&mut buffer).or_refuse(|| "cannot read a TUN device".into())? {
            self.tuns[1].write(&buffer[..length]).or_refuse(|| "cannot write to a TUN device".into())?;
            packets += 1;
        }
        if packets == 0 {
            return Err(Failure::refused("no packet of our own came to a TUN device"));
        }
        Ok(cpu.passed_s() / f64::from(packets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::Scenario;

    fn plan(rate: &str, transport: &str) -> Plan {
        let text = format!(
            "name = \"one\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"{rate}\", delay = \"20ms\", buffer = \"100pkt\" }}\n\
             access = {{ rate = \"10Gbit\", delay = \"1ms\" }}\n[[flows]]\nname = \"one\"\n{transport}"
        );
        Scenario::parse(&text, "one").unwrap().plan(1, None).unwrap()
    }

    #[test]
    fn a_plan_is_refused_where_reading_and_writing_alone_takes_all_the_time() {
        let fast = plan("1200Mbit", "transport = \"linux\"");
        // 150 000 packets a second: each may take 6.7 us.
        assert!(check_singly(&fast, || Ok(1e-6)).is_ok());
        let refused = check_singly(&fast, || Ok(6.7e-6)).unwrap_err().to_string();
        assert!(refused.contains("carry up to 150000 packets a second"), "{refused}");
        let modest = plan("100Mbit", "transport = \"linux\"");
        assert!(check_singly(&modest, || panic!("nothing is measured")).is_ok());
    }

    #[test]
    fn what_is_wanted_is_rate_over_packets_and_their_acknowledgements() {
        // 12 Mbit/s are 1000 packets of 1500 bytes, and half as many acknowledgements.
        assert_eq!(wanted_pps(&plan("12Mbit", "transport = \"linux\"")), 1500.0);
        let datagrams = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }";
        let bytes = f64::from(plan("12Mbit", datagrams).groups[0].transport.packet_bytes());
        assert_eq!(wanted_pps(&plan("12Mbit", datagrams)), 12e6 / 8.0 / bytes);
    }

    #[test]
    fn a_link_costs_three_tenths_more_than_reading_and_writing() {
        // 150 000 packets a second have 6.67 us each, and 5.13 us are three tenths less than that.
        let fast = plan("1200Mbit", "transport = \"linux\"");
        assert!(check_singly(&fast, || Ok(5.12e-6)).is_ok());
        let refused = check_singly(&fast, || Ok(5.2e-6)).unwrap_err().to_string();
        assert!(refused.contains("this machine carries 147929 (measured)"), "{refused}");
        // 13 333 packets of 1500 bytes a second and half as many acknowledgements are just what nobody measures.
        assert!(check_singly(&plan("159Mbit", "transport = \"linux\""), || panic!("nothing is measured")).is_ok());
        let failed = check_singly(&plan("161Mbit", "transport = \"linux\""), || Err(Failure::lost("no device")));
        assert_eq!(failed, Err(Failure::lost("no device")));
        // What comes together is not judged by what comes one by one.
        assert!(check(&plan("400Gbit", "transport = \"linux\""), true).is_ok());
    }

    #[test]
    fn flows_that_share_a_link_bring_packets_of_their_mean_size() {
        // One flow of TCP with packets of 1500 bytes and three with 500: 750 in the mean, 2000 a second at 12 Mbit/s.
        let small = "[[flows]]\nname = \"small\"\ncount = 3\ntransport = { preset = \"linux\", packet = \"500B\" }\n";
        assert_eq!(wanted_pps(&plan("12Mbit", &format!("transport = \"linux\"\n{small}"))), 3000.0);
        // Datagrams are not acknowledged: of four flows three are TCP, so that 3/8 of the packets are.
        let calls = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }\n";
        let bytes = f64::from(plan("12Mbit", calls).groups[0].transport.packet_bytes());
        let wanted = wanted_pps(&plan("12Mbit", &format!("{calls}{small}")));
        assert!((wanted - 12e6 / 8.0 / ((bytes + 1500.0) / 4.0) * 1.375).abs() < 1e-9, "{wanted}");
        let mut idle = plan("12Mbit", calls);
        idle.flows.clear();
        assert_eq!(wanted_pps(&idle), 0.0, "nobody crosses it");
        // The highest rate counts.
        let events = "transport = \"linux\"\n[[events]]\nat = \"500ms\"\ncapacity = \"24Mbit\"\n";
        assert_eq!(wanted_pps(&plan("12Mbit", events)), 3000.0);
    }

    #[test]
    fn a_burst_is_carried_from_one_device_to_the_other() {
        if crate::common::skipped("the rig that measures this machine") {
            return;
        }
        let rig = Rig::new().unwrap();
        rig.burst().unwrap();
        assert!(rig.carry_bare().unwrap() > 0.0);
        // What was carried is gone.
        let refused = rig.carry_bare().unwrap_err().to_string();
        assert_eq!(refused, "no packet of our own came to a TUN device");
        // A packet takes no millisecond on any machine.
        let bare_s = rig.bare_s().unwrap();
        assert!(bare_s > 0.0 && bare_s < 1e-3, "{bare_s}");
    }
}
