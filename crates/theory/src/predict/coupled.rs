//! A link with two coupled queues: the analysis is that of the classic one on what the other leaves.

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{DualPi2Params, Limit};
use aqumen_scenario::Link;

use super::groups::{GroupClass, most_common, together};
use super::link::LinkPrediction;
use crate::Error;
use crate::design::Analysis;
use crate::equilibrium::solver::OperatingConditions;
use crate::fluid::Model;
use crate::multi::coupled::{Class, CoupledQueues, QueueState};
use crate::noise::packet_noise::{Noise, WINDOW_MIN_LOSSES, Z95};

/// The coupled queues of `link`, and which of `groups` wait in the one for scalable flows; `None` where it has no two
/// queues, or nobody for the second.
pub(super) fn two_queues(link: &Link, groups: &[GroupClass]) -> Option<(DualPi2Params, Vec<Class>)> {
    let Ok(AnyQdisc::DualPi2(dual)) = link.aqm.build_qdisc(Limit::packets(u32::MAX))? else { return None };
    let params = *dual.params();
    let scalable = |group: &GroupClass| group.class.scalable || params.any_ect && group.ecn;
    let classes = groups.iter().map(|group| Class { scalable: scalable(group), ..group.class });
    groups.iter().any(scalable).then(|| (params, classes.collect()))
}

/// Two coupled queues that rest `at`; without them the link would be `idle`.
pub(super) fn in_coupled_queues(
    groups: &[GroupClass],
    classes: &[Class],
    at: CoupledQueues,
    idle: LinkPrediction,
    buffer_pkts: f64,
    analysed: &mut dyn FnMut(&OperatingConditions) -> Result<Analysis, Error>,
) -> Result<LinkPrediction, Error> {
    let classic = || classes.iter().filter(|class| !class.scalable);
    let conditions = OperatingConditions {
        model: Model::Reno,
        flows: at.classic.flows,
        capacity_pps: at.classic.rate_pps,
        unresponsive_pps: 0.0,
        transfer_rtts: 0.0,
        base_rtt_s: together(classic().map(|class| (class.flows, class.base_rtt_s))).1,
        buffer_pkts,
        sender: most_common(classic().map(|class| (class.flows, class.sender))),
    };
    let mut analysis = analysed(&conditions)?;
    let queue_pkts = waiting(&at.classic) + waiting(&at.low_latency);
    let marks = groups.iter().zip(classes).filter(|(_, class)| !class.scalable).all(|(group, _)| group.ecn);
    let signals = |side: &QueueState| side.rate_pps / idle.capacity_pps * side.probability;
    let (classic, low_latency) = (signals(&at.classic), signals(&at.low_latency));
    analysis.warnings.retain(|warning| !warning.starts_with("this is of its classic queue"));
    // The classic queue's own loop lacks the flows of the other.
    analysis.margins = None;
    analysis.expected.settling_s = None;
    analysis.expected.queue_pkts = queue_pkts;
    analysis.noise = noise(&at, marks);
    if analysis.noise.valid && at.evenly {
        analysis.warnings.push(
            "the deviation takes it for chance which windows meet a mark; but each 1/p-th packet is marked and packets keep their \
             order, so that marks meet the same windows again or miss them: in packets it was .9 to 1.35 times this"
                .into(),
        );
    }
    let waits = |class: &Class| if class.scalable { at.low_latency.delay_s } else { at.classic.delay_s };
    let own = groups.iter().zip(classes).zip(&at.windows);
    Ok(LinkPrediction {
        queue_pkts,
        probability: classic + low_latency,
        admitted_pps: 0.0,
        own: own.map(|((group, class), (window, _))| (group.number, *window, waits(class))).collect(),
        signalled: Some(if marks { [classic + low_latency, 0.0] } else { [low_latency, classic] }),
        analysis: Some(analysis),
        coupled: Some(at),
        ..idle
    })
}

/// Packets that wait in one of the queues.
fn waiting(side: &QueueState) -> f64 {
    side.rate_pps * side.delay_s
}

/// The noise of both queues together; `marks`: the classic one's signals are marks.
fn noise(at: &CoupledQueues, marks: bool) -> Noise {
    let deviation_s = match at.delay_std_s {
        _ if !at.feasible => Err("p' is at 1/k, where marks no longer regulate"),
        None => Err("the loop is unstable, or the law of a class has no slope that is known"),
        Some(deviation) if deviation > 0.5 * at.classic.delay_s => {
            Err("the queue runs empty too often for a linear answer")
        }
        Some(_) if !marks && at.classic.window_pkts < WINDOW_MIN_LOSSES => {
            Err("small windows under losses: time-outs rule, which the models do not have")
        }
        Some(deviation) => Ok(deviation),
    };
    let deviation_s = match deviation_s {
        Ok(deviation_s) => deviation_s,
        Err(why) => return Noise::none(why.into()),
    };
    // Waits spread exponentially leave a geometric number of packets in the L queue, of variance m (1 + m).
    let low = waiting(&at.low_latency);
    let deviation = libm::hypot(deviation_s * at.classic.rate_pps, (low * (1.0 + low)).sqrt());
    Noise {
        valid: true,
        why: None,
        window_pkts: Some(at.classic.window_pkts),
        probability: Some(at.classic.probability),
        queue_std_pkts: Some(deviation),
        queue_p95_pkts: Some(waiting(&at.classic) + low + Z95 * deviation),
        ..Noise::none(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{Depth, analyse_to};
    use crate::equilibrium::response::Law;
    use crate::multi::coupled;
    use crate::predict::testing::{choice, group, idle};

    #[test]
    fn a_deviation_of_coupled_queues_is_told_where_it_means_something() {
        let Some(Ok(AnyQdisc::DualPi2(dual))) = choice("dualpi2").build_qdisc(Limit::packets(u32::MAX)) else {
            panic!("no coupled queues")
        };
        let mut groups = [group(0, Law::Reno, 20.0), group(1, Law::Reno, 20.0), group(2, Law::Prague, 40.0)];
        (groups[0].class.base_rtt_s, groups[1].class.base_rtt_s) = (0.02, 0.04);
        let classes = groups.map(|group| group.class);
        let rest = coupled::equilibrium(dual.params(), 12_000.0, &classes);
        let found = |groups: &[GroupClass], at: CoupledQueues| {
            let mut analysed =
                |conditions: &OperatingConditions| analyse_to(Depth::Equilibrium, &choice("dualpi2"), conditions);
            in_coupled_queues(groups, &classes, at, idle(), 1000.0, &mut analysed).unwrap()
        };
        let told = |groups: &[GroupClass], at: CoupledQueues| {
            found(groups, at).analysis.unwrap().noise.why.unwrap_or_default()
        };
        // The C queue is that of the classic flows, of both round trips: 40 / (20 / .02 + 20 / .04) s.
        let whole = found(&groups, rest.clone());
        let point = whole.analysis.unwrap().operating_point.at;
        assert!(point.flows == 40.0 && (point.base_rtt_s - 0.08 / 3.0).abs() < 1e-12, "{point:?}");
        let waits: Vec<(u32, f64)> = whole.own.iter().map(|(number, _, wait_s)| (*number, *wait_s)).collect();
        let (classic_s, low_s) = (rest.classic.delay_s, rest.low_latency.delay_s);
        assert_eq!(waits, [(0, classic_s), (1, classic_s), (2, low_s)]);
        let with = |share: f64| CoupledQueues { delay_std_s: Some(share * rest.classic.delay_s), ..rest.clone() };
        assert_eq!((told(&groups, with(0.4)), told(&groups, with(0.49))), (String::new(), String::new()));
        assert!(told(&groups, with(0.51)).contains("runs empty too often"));
        assert!(told(&groups, CoupledQueues { delay_std_s: None, ..rest.clone() }).contains("the loop is unstable"));
        assert!(told(&groups, CoupledQueues { feasible: false, ..with(0.4) }).contains("no longer regulate"));
        // Losses of classic flows need larger windows; whether the scalable ones can be marked is no question.
        let lost = |number: usize, window_pkts: f64| {
            let mut groups = groups;
            groups[number].ecn = false;
            let classic = crate::multi::coupled::QueueState { window_pkts, ..rest.classic };
            told(&groups, CoupledQueues { classic, ..with(0.4) })
        };
        assert!(lost(0, 4.9).contains("under losses") && lost(1, 4.9) == lost(0, 4.9));
        assert!(lost(2, 4.9).is_empty() && lost(0, 5.0).is_empty());
    }
}
