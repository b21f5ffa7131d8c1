// Presets: settings of the forms, or scenario files of the repository with the AQMs to compare.

import type { Settings } from "./settings";

export interface Preset {
  name: string;
  title: string;
  group: "Networks" | "Papers";
  settings: Partial<Settings>;
  /** Text of a scenario file in place of the one that the forms make. */
  file?: () => Promise<string>;
}

type Raw = Promise<{ default: string }>;
const text = (load: () => Raw) => () => load().then((module) => module.default);

export const PRESETS: Preset[] = [
  { name: "dumbbell", title: "One bottleneck, four AQMs", group: "Networks", settings: {} },
  {
    name: "home",
    title: "Bufferbloat at home",
    group: "Networks",
    settings: { aqms: ["droptail", "codel", "fq-codel-linux", "cake"], interval: "50ms" },
    file: text(() => import("../../experiments/everyday/uplink.toml?raw")),
  },
  {
    name: "data-centre",
    title: "A port in a data centre",
    group: "Networks",
    settings: { aqms: ["droptail", "codel-linux", "fq-codel-linux"], interval: "100us", speed: 0.001, unit_s: 0.001 },
    file: text(() => import("../../experiments/everyday/datacenter.toml?raw")),
  },
  {
    name: "l4s",
    title: "L4S beside classic traffic",
    group: "Networks",
    settings: { aqms: ["droptail", "pie", "dualpi2", "fq-codel-linux"], interval: "20ms" },
    file: text(() => import("../presets/l4s.toml?raw")),
  },
  {
    name: "cell",
    title: "A phone in an LTE cell",
    group: "Networks",
    settings: { aqms: ["droptail", "codel", "pie", "fq-codel-linux"], interval: "50ms" },
    file: text(() => import("../../experiments/everyday/cell.toml?raw")),
  },
  {
    name: "red",
    title: "RED oscillates",
    group: "Networks",
    settings: { rate_mbit: 15, flows: 60, rtt_min_ms: 150, rtt_max_ms: 200, buffer_pkts: 500, transport: "ns2", aqms: ["red:min_th=50pkt,max_th=150pkt,max_p=0.5,weight=0.0001"] },
  },
  {
    name: "parking-lot",
    title: "Three bottlenecks in a row",
    group: "Networks",
    settings: { topology: "parking-lot", aqms: ["droptail", "pi", "codel", "pie"] },
  },
  {
    name: "load-step",
    title: "PI and ARM-PFC under load steps (ARM-PFC, experiment 2)",
    group: "Papers",
    settings: { aqms: ["pi", "arm-pfc"], interval: "50ms", speed: 2 },
    file: text(() => import("../../experiments/arm-pfc/exp2.toml?raw")),
  },
  {
    name: "arm-pfc",
    title: "ARM-PFC, experiment 1",
    group: "Papers",
    settings: { aqms: ["arm-pfc-repaired", "pi-repaired", "red-repaired", "droptail"], interval: "50ms", speed: 2 },
    file: text(() => import("../../experiments/arm-pfc/exp1.toml?raw")),
  },
  {
    name: "paqm",
    title: "PAQM, section 4",
    group: "Papers",
    settings: { aqms: ["paqm", "pi-c", "red-r", "droptail"], interval: "50ms", speed: 2 },
    file: text(() => import("../../experiments/paqm/load.toml?raw")),
  },
  {
    name: "aqm-mo",
    title: "AQM-MO, round-trip times",
    group: "Papers",
    settings: { aqms: ["aqm-mo", "pi", "red", "droptail"], interval: "50ms", speed: 2 },
    file: text(() => import("../../experiments/aqm-mo/rtt.toml?raw")),
  },
  {
    name: "aaqm",
    title: "AAQM, an access router",
    group: "Papers",
    settings: { aqms: ["aaqm-95", "pie", "droptail"], interval: "100ms", speed: 5 },
    file: text(() => import("../../experiments/aaqm/load.toml?raw")),
  },
  {
    name: "self-tuning",
    title: "Self-tuning, at a fortieth of the size",
    group: "Papers",
    settings: { aqms: ["stpi", "pi-classic", "ared-400", "droptail"], interval: "100ms", speed: 5 },
    file: text(() => import("../../experiments/self-tuning/fortieth.toml?raw")),
  },
];
