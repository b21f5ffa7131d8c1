//! Built-in profiles: defaults of ns-2 and Linux, and parameters printed in papers.

use crate::{Value, algorithm::Profile};

/// Every built-in profile.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "red-ns2",
        algorithm: "red",
        settings: &[
            ("thresholds", Value::Choice("ns2-auto")),
            ("weight_rule", Value::Choice("ns2-auto")),
            ("bytes", Value::Flag(true)),
            ("queue_in_bytes", Value::Flag(true)),
            ("use_mark_p", Value::Flag(true)),
        ],
        doc: "RED with ns-2's defaults: automatic thresholds and weight, bytes, mark_p",
    },
    Profile {
        name: "red50",
        algorithm: "red",
        settings: &[
            ("min_th", Value::Number(50.0)),
            ("max_th", Value::Number(150.0)),
            ("weight", Value::Number(0.002)),
            ("max_p", Value::Number(0.1)),
            ("use_mark_p", Value::Flag(false)),
        ],
        doc: "RED with thresholds 50 and 150 packets, centred on a target of 100",
    },
    Profile {
        name: "ared-ns2",
        algorithm: "ared",
        settings: &[
            ("thresholds", Value::Choice("ns2-auto")),
            ("weight_rule", Value::Choice("ns2-auto")),
            ("bytes", Value::Flag(true)),
            ("queue_in_bytes", Value::Flag(true)),
            ("use_mark_p", Value::Flag(true)),
            ("bottom_rule", Value::Choice("ns2-auto")),
            ("ns2_stale_gentle", Value::Flag(true)),
        ],
        doc: "ARED with ns-2's defaults for adaptive_",
    },
    Profile {
        name: "codel-linux",
        algorithm: "codel",
        settings: &[
            ("limit", Value::Number(1000.0)),
            ("mtu", Value::Number(LINUX_MTU)),
            ("arithmetic", Value::Choice("linux")),
            ("ecn", Value::Flag(false)),
        ],
        doc: "CoDel with Linux's defaults (sch_codel): 1000 packets, no ECN, one Newton step per signal",
    },
    Profile {
        name: "pie-linux",
        algorithm: "pie",
        settings: LINUX_PIE,
        doc: "PIE with Linux's defaults (sch_pie): 1000 packets, no ECN, faster above 250 ms, updates from 500 ms on",
    },
    Profile {
        name: "fq-codel-linux",
        algorithm: "fq-codel",
        settings: &[
            ("limit", Value::Number(10_240.0)),
            ("quantum", Value::Number(LINUX_MTU)),
            ("mtu", Value::Number(LINUX_MTU)),
            ("emptied", Value::Choice("gone")),
            ("arithmetic", Value::Choice("linux")),
            ("ecn", Value::Flag(true)),
        ],
        doc: "FQ-CoDel with Linux's defaults (sch_fq_codel): 10240 packets, ECN, one Newton step per signal",
    },
    Profile {
        name: "fq-pie-linux",
        algorithm: "fq-pie",
        settings: &{
            let mut settings = [("overflow", Value::Choice("arriving")); LINUX_PIE.len() + 3];
            let mut i = 0;
            while i < LINUX_PIE.len() {
                settings[i] = LINUX_PIE[i];
                i += 1;
            }
            settings[LINUX_PIE.len()] = ("emptied", Value::Choice("gone"));
            settings[LINUX_PIE.len() + 1] = ("quantum", Value::Number(LINUX_MTU));
            settings[0] = ("limit", Value::Number(10_240.0));
            settings
        },
        doc: "FQ-PIE with Linux's defaults (sch_fq_pie): 10240 packets, no ECN, tail drop at overflow, PIE as in pie-linux",
    },
    Profile {
        name: "dualpi2-linux",
        algorithm: "dualpi2",
        settings: &[
            ("limit", Value::Number(10_000.0)),
            ("l4s", Value::Choice("step")),
            ("min_packets", Value::Number(0.0)),
            ("selection", Value::Choice("random")),
            ("min_backlog", Value::Number(2.0 * LINUX_MTU)),
        ],
        doc: "DualPI2 with Linux's defaults (sch_dualpi2): 10000 packets, a step at 1 ms, no coupled signals below two full packets",
    },
    Profile {
        name: "cake-linux",
        algorithm: "cake",
        settings: &[("mtu", Value::Number(LINUX_MTU)), ("arithmetic", Value::Choice("linux"))],
        doc: "CAKE with Linux's defaults (sch_cake) at the link's rate: Linux's arithmetic, full packets without link header",
    },
    Profile {
        name: "red-linux",
        algorithm: "red",
        settings: &[
            ("thresholds", Value::Choice("tc")),
            ("weight_rule", Value::Choice("tc")),
            ("max_p", Value::Number(0.02)),
            ("gentle", Value::Flag(false)),
            ("queue_in_bytes", Value::Flag(true)),
            ("spacing", Value::Choice("linux")),
            ("above", Value::Choice("mark")),
            ("ecn", Value::Flag(false)),
        ],
        doc: "RED with the defaults of Linux and tc for a given limit (sch_red): thresholds 1/12 and 1/4 of it, no ECN, not gentle",
    },
    Profile {
        name: "sfq-linux",
        algorithm: "sfq",
        settings: &[
            ("quantum", Value::Number(LINUX_MTU)),
            ("limit", Value::Number(127.0)),
            ("depth", Value::Number(127.0)),
            ("flows", Value::Number(128.0)),
            ("rehash", Value::Flag(true)),
        ],
        doc: "SFQ with Linux's defaults (sch_sfq): 127 packets, a quantum of one full packet",
    },
    Profile {
        name: "rem-ns2",
        algorithm: "rem",
        settings: &[
            ("target", Value::Number(20.0)),
            ("signal_at", Value::Choice("dequeue")),
            ("ns2_limit", Value::Flag(true)),
        ],
        doc: "REM as in ns-2 with markpkts_: a target of 20 packets, marks at the head, ECN-capable packets only",
    },
    Profile {
        name: "avq-ns2",
        algorithm: "avq",
        settings: &[("form", Value::Choice("ns2")), ("spare_not_ect", Value::Flag(true))],
        doc: "AVQ as in ns-2 with markpkts_, counting packets",
    },
    Profile {
        name: "pi-printed",
        algorithm: "pi",
        settings: &[("a", Value::Number(6.48e-7)), ("b", Value::Number(6.42e-7)), ("frequency", Value::Number(150.0))],
        doc: "PI with the gains printed in the ARM-PFC paper; about 1000 times too small to regulate",
    },
    Profile {
        name: "pi-x1000",
        algorithm: "pi",
        settings: &[("a", Value::Number(6.48e-4)), ("b", Value::Number(6.42e-4)), ("frequency", Value::Number(150.0))],
        doc: "pi-printed with 1000 times larger gains, as if the printed ones were per byte; regulates",
    },
    Profile {
        name: "arm-pfc-printed",
        algorithm: "arm-pfc",
        settings: ARM_PFC_PRINTED,
        doc: "ARM-PFC with the parameters of its paper: N = 100, 10 Mbit/s, R0 = 0.28 s, target 100, d = 5, h = 7, Psi = 0.83",
    },
    Profile {
        name: "arm-pfc-literal",
        algorithm: "arm-pfc",
        settings: &{
            let mut settings = [("variant", Value::Choice("A")); ARM_PFC_PRINTED.len() + 1];
            let mut i = 0;
            while i < ARM_PFC_PRINTED.len() {
                settings[i] = ARM_PFC_PRINTED[i];
                i += 1;
            }
            settings
        },
        doc: "arm-pfc-printed with the paper's literal controller, variant A, which has a steady-state error",
    },
    Profile {
        name: "aaqm-literal",
        algorithm: "aaqm",
        settings: &[("reading", Value::Choice("plain")), ("u", Value::Choice("literal"))],
        doc: "AAQM as printed in its paper: steps of 0.7 and 1.0 every 10 ms, U = A / B; starves the link",
    },
];

/// Size of a full packet, bytes. Linux counts the link header in both packets and MTU (1514 B on Ethernet). Packets
/// here have no link header, so a full packet equals one MTU in both.
const LINUX_MTU: f64 = 1500.0;

/// Settings of Linux's PIE; the limit comes first.
const LINUX_PIE: &[(&str, Value<'static>)] = &[
    ("limit", Value::Number(1000.0)),
    ("start", Value::Number(0.5)),
    ("delay_boost", Value::Flag(true)),
    ("safeguards", Value::Choice("linux")),
    ("mean_packet", Value::Number(LINUX_MTU)),
    ("ecn", Value::Flag(false)),
];

/// Parameters printed in the ARM-PFC paper, for the default variant, which has no steady-state error. The paper's
/// literal controller is profile `arm-pfc-literal`.
const ARM_PFC_PRINTED: &[(&str, Value<'static>)] = &[
    ("flows", Value::Number(100.0)),
    ("capacity", Value::Number(1e7)),
    ("r0", Value::Number(0.28)),
    ("target", Value::Number(100.0)),
    ("d", Value::Number(5.0)),
    ("h", Value::Number(7.0)),
    ("psi", Value::Number(0.83)),
];
