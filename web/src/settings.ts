// Settings of the forms, and the scenario that they stand for.

export interface Settings {
  /** Name of the preset that the other values began with. */
  preset: string;
  /** A topology of the forms, or a scenario file. */
  topology: "dumbbell" | "parking-lot" | "file";
  /** Sampling interval of a scenario file; empty for that of the file. */
  interval: string;
  /** Group whose flows the slider stops and resumes. */
  group: string;
  speed: number;
  rate_mbit: number;
  rtt_min_ms: number;
  rtt_max_ms: number;
  buffer_pkts: number;
  flows: number;
  target_pkts: number;
  transport: string;
  /** What runs beside the endless transfers: a key of BESIDE. */
  beside: string;
  ecn: boolean;
  seed: number;
  aqms: string[];
}

export const FLOWS_MAX = 200;
const INTERVAL_MS = 20;
const DURATION_S = 3600;

export const DEFAULTS: Settings = {
  preset: "dumbbell",
  topology: "dumbbell",
  interval: "",
  group: "flows",
  speed: 1,
  rate_mbit: 8,
  rtt_min_ms: 40,
  rtt_max_ms: 80,
  buffer_pkts: 200,
  flows: 20,
  target_pkts: 30,
  transport: "modern",
  beside: "nothing",
  ecn: true,
  seed: 1,
  aqms: ["droptail", "pi", "codel", "pie"],
};

/** Traffic beside the endless transfers: its title, and its flow group for settings. */
export const BESIDE: Record<string, { title: string; group: (settings: Settings) => string }> = {
  nothing: { title: "nothing", group: () => "" },
  web: { title: "ten readers of web pages", group: (settings) => group(settings, "web", 10, '\ntraffic = { kind = "web" }') },
  short: {
    title: "short transfers, 30 % of the rate",
    group: (settings) =>
      group(settings, "short", 50, `\ntraffic = { kind = "transfers", load = "${bits(0.3 * settings.rate_mbit)}", size = { law = "pareto", mean = "50kB", shape = 1.3, max = "5MB" } }`),
  },
  calls: { title: "four calls", group: (settings) => group({ ...settings, transport: "udp" }, "calls", 4, '\ntraffic = "voip"') },
  film: {
    title: "a film, a quarter of the rate",
    group: (settings) => group({ ...settings, transport: "udp" }, "film", 1, `\ntraffic = { kind = "video", rate = "${bits(settings.rate_mbit / 4)}" }`),
  },
};

/** The scenario of `settings`. Flows beyond their number are declared and stopped, so that events can start them. */
export function scenario(settings: Settings): string {
  const { topology, rate_mbit, flows, target_pkts } = settings;
  const spare = FLOWS_MAX - flows;
  const stopped = spare > 0 ? `\n[[events]]\nat = "0s"\nname = "start"\nstop = "flows"\ncount = ${spare}\n` : "";
  return `name = "playground"
title = "${flows} flows over a link of ${rate_mbit} Mbit/s"
duration = "${DURATION_S}s"

[topology]
${topology === "dumbbell" ? dumbbell(settings) : parkingLot(settings)}

${BESIDE[settings.beside].group(settings)}
${stopped}
[nominal]
capacity = "${bits(rate_mbit)}"
flows = ${flows}
target = "${target_pkts}pkt"

[record]
interval = "${INTERVAL_MS}ms"
`;
}

/** Flows, their round trips and their transport; `count` of them. */
function group(settings: Settings, name: string, count: number, more = ""): string {
  const { rtt_min_ms, rtt_max_ms, transport, ecn } = settings;
  return `[[flows]]
name = "${name}"
count = ${count}
start = ["0s", "1s"]
rtt = ["${Math.min(rtt_min_ms, rtt_max_ms)}ms", "${Math.max(rtt_min_ms, rtt_max_ms)}ms"]
transport = ${transportTable(transport, ecn)}${more}`;
}

/** BBR and UDP are not ECN-capable. */
const transportTable = (preset: string, ecn: boolean) =>
  preset.includes("bbr") || preset === "udp" ? `"${preset}"` : `{ preset = "${preset}", ecn = ${ecn} }`;

function dumbbell(settings: Settings): string {
  const { rate_mbit, rtt_min_ms, rtt_max_ms, buffer_pkts } = settings;
  return `preset = "dumbbell"
bottleneck = { rate = "${bits(rate_mbit)}", delay = "${Math.min(rtt_min_ms, rtt_max_ms) / 4}ms", buffer = "${buffer_pkts}pkt" }
access = { rate = "10Gbit" }

${group(settings, "flows", FLOWS_MAX)}`;
}

/** Three links in a row: the flows cross all, and each link has as many of its own as there are at the start. */
function parkingLot(settings: Settings): string {
  const { rate_mbit, rtt_min_ms, rtt_max_ms, buffer_pkts, flows } = settings;
  const cross = [1, 2, 3].map((link) => group(settings, `cross${link}`, flows, `\nfrom = "r${link - 1}"\nto = "r${link}"`));
  return `preset = "parking-lot"
rate = ["${bits(rate_mbit)}", "${bits(rate_mbit)}", "${bits(rate_mbit)}"]
delay = "${Math.min(rtt_min_ms, rtt_max_ms) / 12}ms"
buffer = "${buffer_pkts}pkt"
access = { rate = "10Gbit" }

${[group(settings, "flows", FLOWS_MAX), ...cross].join("\n\n")}`;
}

/** A rate as the scenario writes it: whole bits per second. */
export function bits(rate_mbit: number): string {
  return `${Math.round(rate_mbit * 1e6)}bit`;
}

/** Packet size of the transports, bytes. */
export function packetBytes(transport: string): number {
  return transport.includes("ns2") ? 1000 : 1500;
}
