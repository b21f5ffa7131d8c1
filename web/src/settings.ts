// Settings of the forms, and the scenario that they stand for.

export interface Settings {
  rate_mbit: number;
  rtt_min_ms: number;
  rtt_max_ms: number;
  buffer_pkts: number;
  flows: number;
  target_pkts: number;
  transport: string;
  ecn: boolean;
  seed: number;
  aqms: string[];
}

export const FLOWS_MAX = 200;
/** Time between two samples. */
export const INTERVAL_MS = 20;
const DURATION_S = 3600;

export const DEFAULTS: Settings = {
  rate_mbit: 8,
  rtt_min_ms: 40,
  rtt_max_ms: 80,
  buffer_pkts: 200,
  flows: 20,
  target_pkts: 30,
  transport: "modern",
  ecn: true,
  seed: 1,
  aqms: ["droptail", "pi", "codel", "pie"],
};

/** The scenario of `settings`. Flows beyond their number are declared and stopped, so that events can start them. */
export function scenario(settings: Settings): string {
  const { rate_mbit, rtt_min_ms, rtt_max_ms, buffer_pkts, flows, target_pkts, transport, ecn } = settings;
  const spare = FLOWS_MAX - flows;
  const stopped = spare > 0 ? `\n[[events]]\nat = "0s"\nname = "start"\nstop = "flows"\ncount = ${spare}\n` : "";
  return `name = "playground"
title = "${flows} flows over a link of ${rate_mbit} Mbit/s"
duration = "${DURATION_S}s"

[topology]
preset = "dumbbell"
bottleneck = { rate = "${bits(rate_mbit)}", delay = "${rtt_min_ms / 4}ms", buffer = "${buffer_pkts}pkt" }
access = { rate = "10Gbit" }

[[flows]]
name = "flows"
count = ${FLOWS_MAX}
start = ["0s", "1s"]
rtt = ["${Math.min(rtt_min_ms, rtt_max_ms)}ms", "${Math.max(rtt_min_ms, rtt_max_ms)}ms"]
transport = { preset = "${transport}", ecn = ${ecn} }
${stopped}
[nominal]
capacity = "${bits(rate_mbit)}"
flows = ${flows}
target = "${target_pkts}pkt"

[record]
interval = "${INTERVAL_MS}ms"
`;
}

/** A rate as the scenario writes it: whole bits per second. */
export function bits(rate_mbit: number): string {
  return `${Math.round(rate_mbit * 1e6)}bit`;
}

/** Packet size of the transports, bytes. */
export function packetBytes(transport: string): number {
  return transport.includes("ns2") ? 1000 : 1500;
}
