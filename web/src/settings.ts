// Settings of the forms.

import type { TopologyName } from "./topologies";

export interface Settings {
  /** Name of the preset that the other values began with. */
  preset: string;
  /** A topology of the forms, or a scenario file. */
  topology: TopologyName | "file";
  /** Sampling interval of a scenario file; empty for that of the file. */
  interval: string;
  /** Group whose flows the slider stops and resumes. */
  group: string;
  speed: number;
  /** Simulated time that views treat as a second, seconds: a thousandth where round trips take microseconds. */
  unit_s: number;
  rate_mbit: number;
  /** Rate of the way back of a home line. */
  down_mbit: number;
  /** Mean channel quality indicator of a cell, 1 to 15. */
  cqi: number;
  /** Part of the cell's resource blocks that the phone gets, percent. */
  share: number;
  rtt_min_ms: number;
  rtt_max_ms: number;
  buffer_pkts: number;
  flows: number;
  target_pkts: number;
  transport: string;
  /** Traffic beside the endless transfers: a key of BESIDE. */
  beside: string;
  ecn: boolean;
  seed: number;
  aqms: string[];
}

export const FLOWS_MAX = 200;

export const DEFAULTS: Settings = {
  preset: "dumbbell",
  topology: "dumbbell",
  interval: "",
  group: "flows",
  speed: 1,
  unit_s: 1,
  rate_mbit: 8,
  down_mbit: 50,
  cqi: 10,
  share: 50,
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

/** A rate as the scenario writes it: whole bits per second. */
export function bits(rate_mbit: number): string {
  return `${Math.round(rate_mbit * 1e6)}bit`;
}

/** Packet size of the transports, bytes. */
export function packetBytes(transport: string): number {
  return transport.includes("ns2") ? 1000 : 1500;
}
