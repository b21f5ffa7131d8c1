// The scenario that the settings of the forms stand for.

import { FLOWS_MAX, type Settings, bits } from "./settings";
import { TOPOLOGIES, type Topology, group } from "./topologies";

const INTERVAL_MS = 20;
const DURATION_S = 3600;

/** Transports and their titles. */
export const TRANSPORTS: Record<string, string> = {
  modern: "Reno, today's TCP",
  cubic: "CUBIC",
  linux: "CUBIC as in Linux",
  "linux-bbr": "BBR as in Linux",
  dctcp: "DCTCP",
  prague: "Prague",
  vegas: "Vegas",
  ledbat: "LEDBAT",
  ns2: "Reno as in ns-2",
};

/** Traffic beside the endless transfers: its title, and its flow group for settings. */
export const BESIDE: Record<string, { title: string; group: (settings: Settings, topology: Topology) => string }> = {
  nothing: { title: "nothing", group: () => "" },
  web: { title: "ten readers of web pages", group: (settings, { downloads }) => group(settings, "web", 10, `${downloads}traffic = { kind = "web" }\n`) },
  short: {
    title: "short transfers, 30 % of the rate",
    group: (settings, { downloads }) =>
      group(settings, "short", 50, `${downloads}traffic = { kind = "transfers", load = "${bits(0.3 * settings.rate_mbit)}", size = { law = "pareto", mean = "50kB", shape = 1.3, max = "5MB" } }\n`),
  },
  calls: { title: "four calls", group: (settings, { flows }) => group({ ...settings, transport: "udp" }, "calls", 4, `${flows}traffic = "voip"\n`) },
  film: {
    title: "a film, a quarter of the rate",
    group: (settings, { downloads }) => group({ ...settings, transport: "udp" }, "film", 1, `${downloads}traffic = { kind = "video", rate = "${bits(settings.rate_mbit / 4)}" }\n`),
  },
};

/** The scenario of `settings`. Flows beyond their number are declared and stopped, so that events can start them. */
export function scenario(settings: Settings): string {
  const { flows, target_pkts, unit_s } = settings;
  if (settings.topology === "file") throw new Error("the scenario is a file");
  const topology = TOPOLOGIES[settings.topology];
  const spare = FLOWS_MAX - flows;
  const stopped = spare > 0 ? `\n[[events]]\nat = "0s"\nname = "start"\nstop = "flows"\ncount = ${spare}\n` : "";
  return `name = "playground"
title = "${flows} flows: ${topology.title}"
duration = "${DURATION_S * unit_s}s"

[topology]
${topology.tables(settings)}
${group(settings, "flows", FLOWS_MAX, topology.flows)}
${BESIDE[settings.beside].group(settings, topology)}${stopped}
[nominal]
${topology.medium ? "" : `capacity = "${bits(settings.rate_mbit)}"\n`}flows = ${flows}
target = "${target_pkts}pkt"

[record]
interval = "${INTERVAL_MS * unit_s}ms"
`;
}
