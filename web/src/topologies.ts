// Topologies of the forms: what each begins with, the values of its sliders, and its tables in the scenario.

import { type Settings, bits } from "./settings";

export type TopologyName = "dumbbell" | "parking-lot" | "home" | "port" | "cell";

/** Settings with a slider. */
export type SliderKey = "flows" | "rate_mbit" | "target_pkts" | "down_mbit" | "cqi" | "share" | "rtt_min_ms" | "rtt_max_ms" | "buffer_pkts";

export interface Topology {
  title: string;
  /** Settings that it begins with. */
  settings: Partial<Settings>;
  /** Values of its sliders where they are not those of `VALUES`; an empty list for none. */
  values: Partial<Record<SliderKey, number[]>>;
  /** Whether the medium decides the rate, which no event changes then. */
  medium?: boolean;
  /** Text of `[topology]`, and of flow groups that are part of it. */
  tables: (settings: Settings) => string;
  /** Keys of flows in the direction of the bottleneck, and of downloads. */
  flows: string;
  downloads: string;
}

const RTT_MS = [4, 8, 12, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500];
const NONE = { down_mbit: [], cqi: [], share: [] };

/** Values of the sliders. */
export const VALUES: Record<SliderKey, number[]> = {
  flows: [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200],
  rate_mbit: [0.25, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50, 80, 100],
  target_pkts: [1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300],
  down_mbit: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
  cqi: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
  share: [5, 10, 20, 30, 50, 70, 100],
  rtt_min_ms: RTT_MS,
  rtt_max_ms: RTT_MS,
  buffer_pkts: [5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000],
};

const shortest_ms = ({ rtt_min_ms, rtt_max_ms }: Settings) => Math.min(rtt_min_ms, rtt_max_ms);

/** Flow group `name` of `count` flows: their round trips and their transport; `more` are further lines. */
export function group(settings: Settings, name: string, count: number, more = ""): string {
  const { rtt_min_ms, rtt_max_ms, unit_s } = settings;
  return `
[[flows]]
name = "${name}"
count = ${count}
start = ["0s", "${unit_s}s"]
rtt = ["${Math.min(rtt_min_ms, rtt_max_ms)}ms", "${Math.max(rtt_min_ms, rtt_max_ms)}ms"]
transport = ${transport(settings)}
${more}`;
}

/** BBR and UDP are not ECN-capable; in a data centre the timeout is as short as its hosts are set to. */
function transport({ transport, ecn, unit_s }: Settings): string {
  const keys = [`preset = "${transport}"`];
  if (!transport.includes("bbr") && transport !== "udp") keys.push(`ecn = ${ecn}`);
  if (unit_s < 1 && transport !== "udp") keys.push('min_rto = "5ms"');
  return keys.length > 1 ? `{ ${keys.join(", ")} }` : `"${transport}"`;
}

interface Link {
  name: string;
  from: string;
  to: string;
  /** Key with the rate or the medium. */
  rate: string;
  buffer_pkts: number;
  tested: boolean;
  one_way: boolean;
}

const link = ({ name, from, to, rate, buffer_pkts, tested, one_way }: Link): string => `
[[topology.links]]
name = "${name}"
from = "${from}"
to = "${to}"
${rate}
delay = "0s"
buffer = "${buffer_pkts}pkt"
${tested ? 'aqm = "test"\n' : ""}${one_way ? "one_way = true\n" : ""}`;

/** Keys of flows from one node to another. */
const route = (from: string, to: string): string => `from = "${from}"\nto = "${to}"\n`;

/** Buffer of a link without an AQM under test: ample. */
const AMPLE_PKTS = 2000;

export const TOPOLOGIES: Record<TopologyName, Topology> = {
  dumbbell: {
    title: "one bottleneck",
    settings: {},
    values: NONE,
    tables: (settings) => `preset = "dumbbell"
bottleneck = { rate = "${bits(settings.rate_mbit)}", delay = "${shortest_ms(settings) / 4}ms", buffer = "${settings.buffer_pkts}pkt" }
access = { rate = "10Gbit" }
`,
    flows: "",
    downloads: "",
  },
  "parking-lot": {
    title: "three bottlenecks in a row",
    settings: {},
    values: NONE,
    // The flows cross all links, and each link has as many of its own as there are at the start.
    tables: (settings) => `preset = "parking-lot"
rate = [${[1, 2, 3].map(() => `"${bits(settings.rate_mbit)}"`).join(", ")}]
delay = "${shortest_ms(settings) / 12}ms"
buffer = "${settings.buffer_pkts}pkt"
access = { rate = "10Gbit" }
${[1, 2, 3].map((i) => group(settings, `cross${i}`, settings.flows, route(`r${i - 1}`, `r${i}`))).join("")}`,
    flows: "",
    downloads: "",
  },
  home: {
    title: "the uplink of a home",
    settings: { rate_mbit: 2, rtt_min_ms: 20, rtt_max_ms: 40, flows: 2, buffer_pkts: 100, target_pkts: 5, transport: "linux", ecn: false, beside: "calls", aqms: ["droptail", "codel", "fq-codel-linux", "cake"] },
    values: { cqi: [], share: [] },
    tables: ({ rate_mbit, down_mbit, buffer_pkts }) => `nodes = ["home", "isp"]
access = { rate = "1Gbit" }
${link({ name: "up", from: "home", to: "isp", rate: `rate = "${bits(rate_mbit)}"`, buffer_pkts, tested: true, one_way: true })}\
${link({ name: "down", from: "isp", to: "home", rate: `rate = "${bits(down_mbit)}"`, buffer_pkts: AMPLE_PKTS, tested: false, one_way: true })}`,
    flows: route("home", "isp"),
    downloads: route("isp", "home"),
  },
  port: {
    title: "a port in a data centre",
    settings: { rate_mbit: 10000, rtt_min_ms: 0.08, rtt_max_ms: 0.12, flows: 8, buffer_pkts: 1000, target_pkts: 70, transport: "dctcp", unit_s: 0.001, speed: 0.001, aqms: ["droptail", "red:min_th=70pkt,max_th=71pkt,weight=1,max_p=1", "codel-linux"] },
    values: {
      ...NONE,
      rate_mbit: [1000, 2500, 5000, 10000, 25000],
      rtt_min_ms: [0.02, 0.05, 0.08, 0.1, 0.12, 0.2, 0.5, 1],
      rtt_max_ms: [0.02, 0.05, 0.08, 0.1, 0.12, 0.2, 0.5, 1],
    },
    tables: ({ rate_mbit, buffer_pkts }) => `nodes = ["switch", "server"]
access = { rate = "100Gbit" }
${link({ name: "port", from: "switch", to: "server", rate: `rate = "${bits(rate_mbit)}"`, buffer_pkts, tested: true, one_way: false })}`,
    flows: route("switch", "server"),
    downloads: route("switch", "server"),
  },
  cell: {
    title: "a phone in an LTE cell",
    settings: { rtt_min_ms: 50, rtt_max_ms: 50, flows: 3, buffer_pkts: 1000, transport: "linux", ecn: false, aqms: ["droptail", "codel", "pie", "fq-codel-linux"] },
    values: { rate_mbit: [], down_mbit: [] },
    medium: true,
    tables: ({ cqi, share, buffer_pkts }) => {
      const channel = `channel = { model = "lte", cqi = ${cqi.toFixed(1)}, resource_blocks = 50, share = ${share / 100}, handover_interval = "30s" }`;
      return `nodes = ["phone", "cell"]
access = { rate = "1Gbit" }
${link({ name: "down", from: "cell", to: "phone", rate: channel, buffer_pkts, tested: true, one_way: true })}\
${link({ name: "up", from: "phone", to: "cell", rate: 'rate = "10Mbit"', buffer_pkts: AMPLE_PKTS, tested: false, one_way: true })}`;
    },
    flows: route("cell", "phone"),
    downloads: route("cell", "phone"),
  },
};
