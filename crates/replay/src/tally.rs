//! Counts of a replay: in all, by service, by traffic class, and by flow. Tables are bounded: entries beyond the bound
//! are counted together.

use std::collections::{BTreeMap, HashMap};

use aqumen_aqm::DropReason;
use aqumen_result::Histogram;

use crate::answer::{ClassReport, Counts, FlowReport, Sojourn};
use crate::classify::{FlowKey, Hashes, Service, TRAFFIC_CLASSES, TrafficClass, traffic_class_name};

/// Counts of a class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    /// Sojourn times of transmitted packets, nanoseconds.
    pub(crate) sojourn: Histogram,
}

/// Counts of a flow.
#[derive(Clone, Debug)]
struct Flow {
    key: FlowKey,
    hashes: Hashes,
    service: u16,
    /// Serial number, which distinguishes this flow from an earlier one in its slot.
    generation: u32,
    counts: Counts,
    sojourn_ns: u128,
    sojourn_ns_max: u64,
    /// Packets taken for transmission.
    served: u64,
}

/// Keys of the tallies that a packet belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TallyKeys {
    traffic: TrafficClass,
    service: u16,
    flow: u32,
    generation: u32,
}

/// All tallies of a replay.
pub(crate) struct Tallies {
    pub(crate) total: Tally,
    /// Services in order of appearance; the first counts services beyond the bound.
    services: Vec<Tally>,
    numbers: BTreeMap<Service, u16>,
    traffic: Vec<Option<Box<Tally>>>,
    flows: Vec<Flow>,
    /// Index of each service; never iterated.
    by_key: HashMap<FlowKey, u32>,
    free: Vec<u32>,
    /// Sum over evicted flows.
    pub(crate) others: Counts,
    /// Number of flows inserted; an evicted flow that returns counts again.
    pub(crate) flows_seen: u64,
    flows_max: usize,
}

/// Most services; each has a histogram of some 60 kB.
const SERVICES_MAX: usize = 256;

/// Most flows at a time. When the table is full, the half with the fewest bytes is evicted.
const FLOWS_MAX: usize = 65_536;

impl Tally {
    pub(crate) fn report(&self) -> Sojourn {
        let seconds = |ns: Option<f64>| ns.map(|ns| ns / 1e9);
        let quantile = |q| seconds(self.sojourn.quantile(q));
        Sojourn {
            mean_s: seconds(self.sojourn.mean()),
            p50_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
        }
    }
}

impl Tallies {
    pub(crate) fn new() -> Self {
        Tallies::with_room_for(FLOWS_MAX)
    }

    fn with_room_for(flows_max: usize) -> Self {
        Tallies {
            total: Tally::default(),
            services: vec![Tally::default()],
            numbers: BTreeMap::new(),
            traffic: vec![None; TRAFFIC_CLASSES],
            flows: Vec::new(),
            by_key: HashMap::new(),
            free: Vec::new(),
            others: Counts::default(),
            flows_seen: 0,
            flows_max,
        }
    }

    /// Counts the arrival of a packet of `bytes`.
    #[inline]
    pub(crate) fn arrived(&mut self, key: &FlowKey, traffic: TrafficClass, bytes: u32) -> (TallyKeys, Hashes) {
        let rank = match self.by_key.get(key) {
            Some(rank) => *rank,
            None => self.new_flow(*key),
        };
        let flow = &self.flows[rank as usize];
        let tallied = TallyKeys { traffic, service: flow.service, flow: rank, generation: flow.generation };
        let hashes = flow.hashes;
        self.counts(tallied, |counts| {
            counts.arrivals_pkts += 1;
            counts.arrived_bytes += u64::from(bytes);
        });
        (tallied, hashes)
    }

    pub(crate) fn marked(&mut self, tallied: TallyKeys) {
        self.counts(tallied, |counts| counts.marked_pkts += 1);
    }

    pub(crate) fn dropped(&mut self, tallied: TallyKeys, reason: DropReason) {
        self.counts(tallied, |counts| match reason {
            DropReason::Early => counts.early_dropped_pkts += 1,
            DropReason::Overflow => counts.overflow_dropped_pkts += 1,
        });
    }

    /// Counts the sojourn time of a packet taken for transmission.
    pub(crate) fn served(&mut self, tallied: TallyKeys, sojourn_ns: u64) {
        self.total.sojourn.record(sojourn_ns);
        self.services[usize::from(tallied.service)].sojourn.record(sojourn_ns);
        self.traffic_class(tallied.traffic).sojourn.record(sojourn_ns);
        if let Some(flow) = self.flow(tallied) {
            flow.served += 1;
            flow.sojourn_ns += u128::from(sojourn_ns);
            flow.sojourn_ns_max = flow.sojourn_ns_max.max(sojourn_ns);
        }
    }

    /// Counts the end of a packet's transmission.
    pub(crate) fn departed(&mut self, tallied: TallyKeys, bytes: u32) {
        self.counts(tallied, |counts| {
            counts.departures_pkts += 1;
            counts.departed_bytes += u64::from(bytes);
        });
    }

    #[inline]
    fn counts(&mut self, tallied: TallyKeys, change: impl Fn(&mut Counts)) {
        change(&mut self.total.counts);
        change(&mut self.services[usize::from(tallied.service)].counts);
        change(&mut self.traffic_class(tallied.traffic).counts);
        match self.flow(tallied) {
            Some(flow) => change(&mut flow.counts),
            None => change(&mut self.others),
        }
    }

    #[inline]
    fn traffic_class(&mut self, class: TrafficClass) -> &mut Tally {
        self.traffic[usize::from(class)].get_or_insert_default()
    }

    /// Returns the flow of a packet; `None` if the flow was evicted since the packet arrived.
    #[inline]
    fn flow(&mut self, tallied: TallyKeys) -> Option<&mut Flow> {
        self.flows.get_mut(tallied.flow as usize).filter(|flow| flow.generation == tallied.generation)
    }

    #[cold]
    fn new_flow(&mut self, key: FlowKey) -> u32 {
        if self.by_key.len() == self.flows_max {
            self.make_room();
        }
        let service = self.service(key.service());
        let new = |generation| Flow {
            key,
            hashes: key.hashes(),
            service,
            generation,
            counts: Counts::default(),
            sojourn_ns: 0,
            sojourn_ns_max: 0,
            served: 0,
        };
        let rank = match self.free.pop() {
            Some(rank) => {
                let flow = &mut self.flows[rank as usize];
                *flow = new(flow.generation);
                rank
            }
            None => {
                self.flows.push(new(0));
                (self.flows.len() - 1) as u32
            }
        };
        self.by_key.insert(key, rank);
        self.flows_seen += 1;
        rank
    }

    /// Evicts the half of the flows with the fewest bytes.
    fn make_room(&mut self) {
        let mut ranks: Vec<u32> = (0..self.flows.len() as u32).collect();
        // Of equals the later one.
        ranks.sort_by_key(|rank| (self.flows[*rank as usize].counts.arrived_bytes, u32::MAX - rank));
        ranks.truncate(self.flows_max.div_ceil(2));
        for rank in ranks {
            let flow = &mut self.flows[rank as usize];
            self.others.add(&flow.counts);
            // Packets that still wait no longer count for it.
            flow.generation = flow.generation.wrapping_add(1);
            self.by_key.remove(&flow.key);
            self.free.push(rank);
        }
    }

    fn service(&mut self, service: Service) -> u16 {
        if let Some(number) = self.numbers.get(&service) {
            return *number;
        }
        if self.services.len() > SERVICES_MAX {
            return 0;
        }
        let number = self.services.len() as u16;
        self.services.push(Tally::default());
        self.numbers.insert(service, number);
        number
    }

    /// Returns the services by descending bytes, with the sum over services beyond the bound last.
    pub(crate) fn services(&self) -> Vec<ClassReport> {
        let mut rows: Vec<ClassReport> = self
            .numbers
            .iter()
            .map(|(service, number)| row(service.to_string(), &self.services[*number as usize]))
            .collect();
        // A stable order: of equals the one of the services.
        rows.sort_by_key(|row| std::cmp::Reverse(row.counts.arrived_bytes));
        if self.services[0].counts.arrivals_pkts > 0 {
            rows.push(row("others".into(), &self.services[0]));
        }
        rows
    }

    /// Returns the traffic classes by descending bytes.
    pub(crate) fn traffic_classes(&self) -> Vec<ClassReport> {
        let seen = self.traffic.iter().enumerate().filter_map(|(class, tally)| Some((class, tally.as_deref()?)));
        let mut rows: Vec<ClassReport> =
            seen.map(|(class, tally)| row(traffic_class_name(class as TrafficClass), tally)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.counts.arrived_bytes));
        rows
    }

    /// Returns the `top` flows by descending bytes, and the sum over all others.
    pub(crate) fn flows(&self, top: usize) -> (Vec<FlowReport>, Counts) {
        let mut live = vec![true; self.flows.len()];
        self.free.iter().for_each(|rank| live[*rank as usize] = false);
        let mut ranks: Vec<u32> = (0..self.flows.len() as u32).filter(|rank| live[*rank as usize]).collect();
        ranks.sort_by_key(|rank| (std::cmp::Reverse(self.flows[*rank as usize].counts.arrived_bytes), *rank));
        let mut others = self.others;
        ranks.iter().skip(top).for_each(|rank| others.add(&self.flows[*rank as usize].counts));
        let rows = ranks.iter().take(top).map(|rank| {
            let flow = &self.flows[*rank as usize];
            let seconds = |ns: f64| (flow.served > 0).then_some(ns / 1e9);
            FlowReport {
                flow: flow.key.to_string(),
                counts: flow.counts,
                sojourn_mean_s: seconds(flow.sojourn_ns as f64 / flow.served.max(1) as f64),
                sojourn_max_s: seconds(flow.sojourn_ns_max as f64),
            }
        });
        (rows.collect(), others)
    }
}

fn row(name: String, tally: &Tally) -> ClassReport {
    ClassReport { name, counts: tally.counts, sojourn: tally.report() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_capture::Headers;

    fn key(n: u16) -> FlowKey {
        FlowKey::of(&Headers { ether_type: Some(n), ip: None })
    }

    #[test]
    fn flows_with_few_bytes_make_room_and_nothing_is_lost() {
        let mut tallies = Tallies::with_room_for(4);
        let (kept, _) = tallies.arrived(&key(0), 0, 1000);
        let (small, _) = tallies.arrived(&key(1), 0, 10);
        tallies.arrived(&key(2), 0, 20);
        tallies.arrived(&key(3), 0, 30);
        // The fifth: flows 1 and 2 go.
        tallies.arrived(&key(4), 0, 5);
        // A packet of a flow that is gone, and one of a flow that is not.
        tallies.departed(small, 10);
        tallies.departed(kept, 1000);
        // It comes back as a new flow.
        tallies.arrived(&key(1), 0, 7);
        let (rows, others) = tallies.flows(2);
        let seen: Vec<(u64, u64)> =
            rows.iter().map(|row| (row.counts.arrived_bytes, row.counts.departed_bytes)).collect();
        assert_eq!(seen, [(1000, 1000), (30, 0)]);
        // 10 + 20 made room, 5 + 7 are beyond the first two.
        assert_eq!((others.arrived_bytes, others.departed_bytes, others.arrivals_pkts), (42, 10, 4));
        assert_eq!((tallies.flows_seen, tallies.total.counts.arrived_bytes), (6, 1072));
    }

    #[test]
    fn services_beyond_the_table_are_counted_together() {
        let mut tallies = Tallies::new();
        for n in 0..300 {
            tallies.arrived(&key(n), 0, 1);
        }
        let rows = tallies.services();
        assert_eq!(rows.len(), SERVICES_MAX + 1);
        assert_eq!((rows[SERVICES_MAX].name.as_str(), rows[SERVICES_MAX].counts.arrivals_pkts), ("others", 44));
        assert_eq!(rows.iter().map(|row| row.counts.arrivals_pkts).sum::<u64>(), 300);
    }
}
