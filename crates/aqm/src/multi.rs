//! Disciplines of several queues, and their common parts: packets ([`store`]), lists of queues ([`queue_list`]), the
//! flow hash ([`hash`]), and flow queueing with an AQM in each queue ([`fq`]).

pub(crate) mod cake;
pub(crate) mod drr;
pub(crate) mod dualpi2;
pub(crate) mod fq;
pub(crate) mod fq_codel;
pub(crate) mod fq_pie;
pub(crate) mod hash;
pub(crate) mod queue_list;
pub(crate) mod sfq;
pub(crate) mod store;

use crate::{DefaultValue, Kind, Param, ParamError, Settings, Unit, Value};

/// Default number of queues: RFC 8290 section 5.2.5 and Linux.
pub(crate) const QUEUES: f64 = 1024.0;

/// Default quantum: an Ethernet frame's header and payload, bytes (RFC 8290 section 5.2.4).
pub(crate) const QUANTUM: f64 = 1514.0;

/// Parameter `queues`.
pub(crate) const QUEUES_PARAM: Param = Param {
    name: "queues",
    kind: Kind::Number { unit: Unit::One, min: crate::Bound::Inclusive(1.0), max: crate::Bound::Inclusive(65_536.0) },
    default: DefaultValue::number(QUEUES),
    doc: "queues that flows are hashed to",
};

/// Parameter `ways`.
pub(crate) const WAYS_PARAM: Param = Param {
    name: "ways",
    kind: Kind::Number { unit: Unit::One, min: crate::Bound::Inclusive(1.0), max: crate::Bound::Inclusive(64.0) },
    default: DefaultValue::number(1.0),
    doc: "queues of a set of the hash: a flow whose queue is taken uses an idle one of its set (Linux: 1; CAKE: 8)",
};

/// Parameter `quantum`.
pub(crate) const QUANTUM_PARAM: Param = Param {
    name: "quantum",
    kind: Kind::Number { unit: Unit::Bytes, min: crate::Bound::Inclusive(1.0), max: crate::Bound::Inclusive(1e9) },
    default: DefaultValue::number(QUANTUM),
    doc: "bytes that a queue may send per round",
};

/// Value of `queues`.
pub(crate) fn queues(settings: &Settings<'_>) -> Result<usize, ParamError> {
    Ok(settings.whole("queues")?.unwrap_or(QUEUES as usize))
}

/// Value of `ways`.
pub(crate) fn ways(settings: &Settings<'_>) -> Result<usize, ParamError> {
    Ok(settings.whole("ways")?.unwrap_or(1))
}

/// Value of `quantum`, bytes.
pub(crate) fn quantum(settings: &Settings<'_>) -> Result<i64, ParamError> {
    Ok(settings.whole("quantum")?.map_or(QUANTUM as i64, |bytes| bytes as i64))
}

/// Visits `queues` and `ways`.
pub(crate) fn show(visit: &mut dyn FnMut(&'static str, Value<'static>), hash: &hash::FlowHash) {
    visit("queues", Value::Number(hash.queues() as f64));
    visit("ways", Value::Number(hash.ways() as f64));
}

#[cfg(test)]
pub(crate) mod testing {
    //! Common helpers of the unit tests of disciplines.

    use aqumen_units::{Ecn, Rate};

    pub(crate) use crate::testing::{Fixed, Log};
    use crate::{Network, Packet};

    /// A network of 1000 packets per second.
    pub(crate) const NETWORK: Network = Network {
        capacity: Rate::from_bps(8_000_000),
        flows: 2.0,
        base_rtt_s: 0.1,
        target_pkts: 15.0,
        packet_bytes: 1000.0,
        link_rate: Rate::from_bps(8_000_000),
        buffer_pkts: 1000.0,
    };

    /// An ECN-capable packet of flow `flow`.
    pub(crate) fn flow(flow: u32, bytes: u32) -> Packet {
        Packet {
            bytes,
            ecn: Ecn::Ect0,
            segments: 1,
            flow_hash: flow,
            source_hash: flow,
            destination_hash: flow,
            ..Packet::default()
        }
    }
}
