// Settings in the fragment of the address: `#preset=home&aqm=codel&seed=3`. Only what differs from the preset is written.

import { PRESETS } from "./presets";
import { BESIDE, DEFAULTS, FLOWS_MAX, type Settings } from "./settings";

/** Keys of numbers with the range that a link may ask for. */
const NUMBERS: [keyof Settings, string, number, number][] = [
  ["rate_mbit", "rate", 0.01, 10000],
  ["flows", "flows", 1, FLOWS_MAX],
  ["target_pkts", "target", 1, 100000],
  ["rtt_min_ms", "rtt-min", 1, 10000],
  ["rtt_max_ms", "rtt-max", 1, 10000],
  ["buffer_pkts", "buffer", 1, 1000000],
  ["seed", "seed", 0, 4294967295],
  ["speed", "speed", 1e-6, Infinity],
];

const base = (name: string): Settings => ({ ...DEFAULTS, ...PRESETS.find((preset) => preset.name === name)?.settings });

export function toFragment(settings: Settings): string {
  const from = base(settings.preset);
  const parts = new URLSearchParams();
  if (settings.preset !== DEFAULTS.preset) parts.set("preset", settings.preset);
  if (settings.aqms.join() !== from.aqms.join()) settings.aqms.forEach((aqm) => parts.append("aqm", aqm));
  // The network of a file comes from the file.
  const keys = settings.topology === "file" ? NUMBERS.filter(([key]) => key === "seed" || key === "speed") : NUMBERS;
  for (const [key, name] of keys) if (settings[key] !== from[key]) parts.set(name, String(settings[key]));
  if (settings.topology !== "file" && settings.topology !== from.topology) parts.set("topology", settings.topology);
  if (settings.transport !== from.transport) parts.set("transport", settings.transport);
  if (settings.beside !== from.beside) parts.set("beside", settings.beside);
  if (settings.ecn !== from.ecn) parts.set("ecn", settings.ecn ? "yes" : "no");
  return parts.toString();
}

/** Preset and settings of a fragment; a value out of its range is an error. */
export function fromFragment(fragment: string): { preset: string; settings: Partial<Settings> } {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const preset = parts.get("preset") ?? DEFAULTS.preset;
  if (!PRESETS.some((known) => known.name === preset)) throw new Error(`link: no preset "${preset}"; choose from: ${PRESETS.map((known) => known.name).join(", ")}`);
  const settings: Partial<Settings> = {};
  for (const [key, name, least, most] of NUMBERS) {
    const text = parts.get(name);
    if (text === null) continue;
    const value = Number(text);
    if (text === "" || !(value >= least && value <= most)) throw new Error(`link: ${name} = ${text}: must be from ${least} to ${most}`);
    Object.assign(settings, { [key]: value });
  }
  const aqms = parts.getAll("aqm").filter(Boolean);
  if (aqms.length > 4) throw new Error(`link: ${aqms.length} AQMs: at most 4`);
  if (aqms.length) settings.aqms = aqms;
  const topology = parts.get("topology");
  if (topology === "dumbbell" || topology === "parking-lot") settings.topology = topology;
  const transport = parts.get("transport");
  if (transport && /^[a-z0-9-]+$/.test(transport)) settings.transport = transport;
  const beside = parts.get("beside");
  if (beside !== null && !(beside in BESIDE)) throw new Error(`link: beside = ${beside}: choose from: ${Object.keys(BESIDE).join(", ")}`);
  if (beside !== null) settings.beside = beside;
  if (parts.has("ecn")) settings.ecn = parts.get("ecn") === "yes";
  return { preset, settings };
}
