// Settings in the fragment of the address: `#preset=home&aqm=codel&seed=3`. Only what differs from the preset is written.

import { specList } from "./catalogue";
import { PRESETS } from "./presets";
import { BESIDE, TRANSPORTS } from "./scenario";
import { DEFAULTS, FLOWS_MAX, type Settings } from "./settings";
import { TOPOLOGIES, type TopologyName } from "./topologies";

export const AQMS_MAX = 4;

/** Keys of numbers with the range that a link may ask for. */
const NUMBERS: [keyof Settings, string, number, number][] = [
  ["rate_mbit", "rate", 0.01, 100000],
  ["down_mbit", "down", 0.01, 100000],
  ["cqi", "cqi", 1, 15],
  ["share", "share", 1, 100],
  ["flows", "flows", 1, FLOWS_MAX],
  ["target_pkts", "target", 1, 100000],
  ["rtt_min_ms", "rtt-min", 0.01, 10000],
  ["rtt_max_ms", "rtt-max", 0.01, 10000],
  ["buffer_pkts", "buffer", 1, 1000000],
  ["seed", "seed", 0, 4294967295],
  ["speed", "speed", 1e-6, Infinity],
];
/** Keys of numbers that have no fraction. */
const WHOLE = ["flows", "buffer", "seed"];
/** Keys that go with a preset whose network is a file. */
const OF_FILES = ["preset", "aqm", "seed", "speed", "lesson", "lesson-text"];
const WORDS = ["preset", "aqm", "topology", "transport", "beside", "ecn", "lesson", "lesson-text"];

/** Settings of a preset, in a topology of the forms if one is named. */
export function base(name: string, topology?: TopologyName): Settings {
  const preset = { ...DEFAULTS, ...PRESETS.find((preset) => preset.name === name)?.settings };
  return topology && topology !== preset.topology ? { ...preset, topology, ...TOPOLOGIES[topology].settings } : preset;
}

export function toFragment(settings: Settings): string {
  const { topology } = settings;
  const from = base(settings.preset, topology === "file" ? undefined : topology);
  const parts = new URLSearchParams();
  if (settings.preset !== DEFAULTS.preset) parts.set("preset", settings.preset);
  if (topology !== "file" && topology !== base(settings.preset).topology) parts.set("topology", topology);
  if (settings.aqms.join() !== from.aqms.join()) settings.aqms.forEach((aqm) => parts.append("aqm", aqm));
  // The network of a file comes from the file, the rate of a medium from the medium.
  const own = (key: keyof Settings) => (topology === "file" ? key === "seed" || key === "speed" : !(key === "rate_mbit" && TOPOLOGIES[topology].medium));
  for (const [key, name] of NUMBERS) if (own(key) && settings[key] !== from[key]) parts.set(name, String(settings[key]));
  if (settings.transport !== from.transport) parts.set("transport", settings.transport);
  if (settings.beside !== from.beside) parts.set("beside", settings.beside);
  if (settings.ecn !== from.ecn) parts.set("ecn", settings.ecn ? "yes" : "no");
  return parts.toString();
}

/** Preset and settings of a fragment; an unknown key and a value out of its range are errors. */
export function fromFragment(fragment: string): { preset: string; settings: Partial<Settings> } {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const known = [...WORDS, ...NUMBERS.map(([, name]) => name)];
  const strange = [...parts.keys()].find((key) => !known.includes(key));
  if (strange !== undefined) throw new Error(`link: no key "${strange}"; choose from: ${known.join(", ")}`);
  /** Value of a key that has a list of values. */
  const choice = (key: string, values: string[]): string | undefined => {
    const value = parts.get(key);
    if (value !== null && !values.includes(value)) throw new Error(`link: ${key} = ${value}: choose from: ${values.join(", ")}`);
    return value ?? undefined;
  };
  const preset = choice("preset", PRESETS.map(({ name }) => name)) ?? DEFAULTS.preset;
  const topology = choice("topology", Object.keys(TOPOLOGIES)) as TopologyName | undefined;
  const settings: Partial<Settings> = topology ? { ...TOPOLOGIES[topology].settings, topology } : {};
  const fixed = !topology && PRESETS.some(({ name, file }) => name === preset && file) ? [...parts.keys()].find((key) => !OF_FILES.includes(key)) : undefined;
  if (fixed !== undefined) throw new Error(`link: ${fixed}: the network of the preset ${preset} is a file; it can be changed while it runs`);
  for (const [key, name, least, most] of NUMBERS) {
    const text = parts.get(name);
    if (text === null) continue;
    const value = Number(text);
    const whole = WHOLE.includes(name);
    if (text.trim() === "" || !(value >= least && value <= most) || (whole && !Number.isInteger(value)))
      throw new Error(`link: ${name} = ${text}: must be ${whole ? "a whole number " : ""}from ${least} to ${most}`);
    Object.assign(settings, { [key]: value });
  }
  const aqms = specList(parts.getAll("aqm"));
  if (aqms.length > AQMS_MAX) throw new Error(`link: ${aqms.length} AQMs: at most ${AQMS_MAX}`);
  if (aqms.length) settings.aqms = aqms;
  const transport = choice("transport", Object.keys(TRANSPORTS));
  if (transport !== undefined) settings.transport = transport;
  const beside = choice("beside", Object.keys(BESIDE));
  if (beside !== undefined) settings.beside = beside;
  const ecn = choice("ecn", ["yes", "no"]);
  if (ecn !== undefined) settings.ecn = ecn === "yes";
  return { preset, settings };
}
