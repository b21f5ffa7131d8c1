//! CPU time of a packet in a link with FQ-CoDel, compared with a bare read and write of TUN devices; and the effect of
//! super-packets. Times are those of the thread that carries packets. The two sides of a ratio alternate.

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use aqumen_live::lab::capacity::{BURST, Rig};
    use aqumen_live::lab::forwarder::Forwarder;
    use aqumen_live::lab::network::Network;
    use aqumen_live::lab::run::{RunOptions, run_with};
    use aqumen_live::lab::testbed::FlowClassifier;
    use aqumen_live::machine::clock::Clock;
    use aqumen_live::machine::thread::CpuTime;
    use aqumen_scenario::{Plan, Scenario};

    const ROUNDS: usize = 201;

    fn plan(aqm: &str, rate: &str, delay: &str, flows: &str) -> Plan {
        let text = format!(
            "name = \"speed\"\nduration = \"4s\"\naqm = \"{aqm}\"\n[windows]\nsteady = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"{rate}\", delay = \"{delay}\", buffer = \"2000pkt\" }}\n\
             access = {{ rate = \"40Gbit\", delay = \"100us\" }}\n[[flows]]\nname = \"all\"\n{flows}"
        );
        Scenario::parse(&text, "speed").unwrap().plan(1, None).unwrap()
    }

    /// Median of `values`.
    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    /// Nanoseconds per packet: bare, and in a link under `aqm`.
    fn link(aqm: &str) -> (f64, f64) {
        let datagrams = "count = 8\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }\n";
        let plan = plan(aqm, "10Gbit", "0s", datagrams);
        let bottleneck = plan.flows[0].path.iter().copied().find(|link| plan.links[*link as usize].record).unwrap();
        let routes =
            (0..2 * plan.flows.len()).map(|route| if route % 2 == 0 { vec![bottleneck] } else { vec![] }).collect();
        let network = Network::with_routes(&plan, routes, |_| false).unwrap();
        let (bare, mut loaded) = (Rig::new().unwrap(), Rig::new().unwrap());
        let other = Rig::new().unwrap();
        let tuns = std::mem::replace(&mut loaded.tuns, other.tuns);
        let mut forwarder = Forwarder::new(network, tuns, 1500, FlowClassifier::new(&plan), Clock::starting_in(0));
        let (mut costs_bare, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.burst().unwrap();
            costs_bare.push(bare.carry_bare().unwrap());
            loaded.burst().unwrap();
            let cpu = CpuTime::for_thread();
            let mut read = 0;
            while read < BURST {
                read += forwarder.step().unwrap();
            }
            // Flushes the packets that are still in the link.
            forwarder.step().unwrap();
            costs.push(cpu.elapsed_s() / BURST as f64);
        }
        (1e9 * median(costs_bare), 1e9 * median(costs))
    }

    pub(super) fn main() {
        if !rustix::process::geteuid().is_root() {
            println!("Skipped: the links of aqumend need root.");
            return;
        }
        for aqm in ["droptail", "fq-codel"] {
            let (bare, cost) = link(aqm);
            println!(
                "link, {aqm}: {cost:.0} ns a packet, bare read and write {bare:.0} ns: {:.2} times; {:.0} kpacket/s on a core",
                cost / bare,
                1e6 / cost
            );
        }
        let flows = "count = 4\ntransport = \"linux\"\n";
        for (super_packets, rate) in [(false, "1Gbit"), (true, "1Gbit"), (true, "10Gbit")] {
            let plan = plan("fq-codel", rate, "1ms", flows);
            match run_with(&plan, RunOptions { super_packets, record: false }, |_| true) {
                Ok((live, _)) => {
                    let (packets, cpu_s) = (live.result.cost.bottleneck_packets as f64, live.host.links_cpu_s.unwrap());
                    println!(
                        "TCP at {rate}{}: {:.0} ksegment/s of data and their acknowledgements at {:.0} % of a core, {:.0} ns a segment; valid: {}",
                        if super_packets { " with --gso" } else { "" },
                        1e-3 * packets / 4.0,
                        25.0 * cpu_s,
                        1e9 * cpu_s / packets,
                        live.host.valid
                    );
                }
                Err(error) => println!("TCP at {rate}: {error}"),
            }
        }
    }
}
