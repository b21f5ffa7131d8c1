// Lessons: a text in Markdown with a network, and steps whose conditions the page verifies on the runs.
//
// `# TITLE` is the title; the first link to a fragment (`#rate=8&aqm=pi`) the network; each item of a numbered list (`1. `)
// a step. Code in a step that reads `NAME < VALUE` is a condition, `for 20 s` the time over which it holds.

import { isAqm } from "./catalogue";
import type { AqmRun, Playground } from "./playground";
import type { Settings } from "./settings";

export interface Condition {
  name: string;
  sign: "<" | ">" | "<=" | ">=" | "=";
  value: string;
}

export interface Step {
  text: string;
  conditions: Condition[];
  over_s: number;
}

export interface Lesson {
  title: string;
  /** Fragment of the network. */
  start: string;
  /** Text before the steps. */
  text: string;
  steps: Step[];
  /** The lesson as its author wrote it. */
  source: string;
}

/** Seconds after a change that do not count: the flows adapt to it. */
const SETTLE_S = 10;
const OVER_S = 20;
const SETTINGS: Record<string, keyof Settings> = { flows: "flows", rate: "rate_mbit", target: "target_pkts", buffer: "buffer_pkts", "rtt-min": "rtt_min_ms", "rtt-max": "rtt_max_ms" };

/** Metrics of a run, and the unit of their values in conditions. */
const METRICS: Record<string, { unit: string; of: (run: AqmRun, begin_s: number, playground: Playground) => number }> = {
  queue: { unit: "pkt", of: ({ trace }, begin_s) => trace.mean(trace.queue, begin_s) },
  "queue-std": { unit: "pkt", of: ({ trace }, begin_s) => deviation(trace.queue.from(trace.firstAt(begin_s))) },
  probability: { unit: "%", of: ({ trace }, begin_s) => 100 * trace.mean(trace.probability, begin_s) },
  utilization: { unit: "%", of: (run, begin_s, { settings }) => (sum(run, begin_s, (p) => p.throughput_bps * p.interval_s) / sum(run, begin_s, (p) => p.interval_s) / settings.rate_mbit) * 1e-4 },
  delay: { unit: "ms", of: (run, begin_s) => (1e3 * sum(run, begin_s, (p) => p.delay_s * p.departures)) / sum(run, begin_s, (p) => p.departures) },
  loss: { unit: "%", of: lossOf },
  fairness: { unit: "%", of: fairnessOf },
};
const NAMES = ["aqm", ...Object.keys(SETTINGS), ...Object.keys(METRICS)];

const points = (run: AqmRun, begin_s: number) => run.trace.points.filter((point) => point.t_s - point.interval_s >= begin_s - 1e-9);
const sum = (run: AqmRun, begin_s: number, of: (point: AqmRun["trace"]["points"][0]) => number) => points(run, begin_s).reduce((sum, point) => sum + of(point), 0);

function deviation(values: Float64Array): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
}

/** Dropped share of the arriving packets, percent: those that neither left nor wait. */
function lossOf(run: AqmRun, begin_s: number): number {
  const all = points(run, begin_s);
  const before = run.trace.points[run.trace.points.length - all.length - 1]?.queue ?? all[0].queue;
  const arrivals = sum(run, begin_s, (point) => point.arrivals);
  const left = sum(run, begin_s, (point) => point.departures) + all[all.length - 1].queue - before;
  return (100 * (arrivals - left)) / arrivals;
}

/** Jain's index of the goodputs of the running flows, percent. */
function fairnessOf({ trace }: AqmRun, begin_s: number): number {
  const first = trace.windows.findIndex(({ t_s }) => t_s > begin_s);
  const received = new Float64Array(trace.windows[0]?.windows.length ?? 0);
  for (let i = Math.max(first, 1); i < trace.windows.length; i += 1) {
    const span_s = trace.windows[i].t_s - trace.windows[i - 1].t_s;
    trace.windows[i].goodputs_bps.forEach((goodput, flow) => (received[flow] += goodput * span_s));
  }
  const running = received.filter((value) => value > 0);
  const total = running.reduce((sum, value) => sum + value, 0);
  return (100 * total ** 2) / (running.length * running.reduce((sum, value) => sum + value ** 2, 0));
}

/** Reads a lesson; what is wrong in it is an error with the step. */
export function parseLesson(source: string): Lesson {
  const lines = source.split(/\r?\n/);
  const title = lines.find((line) => line.startsWith("# "))?.slice(2).trim();
  if (!title) throw new Error("lesson: no title; its first line is `# TITLE`");
  const start = /\]\(#([^)\s]*)\)/.exec(source)?.[1];
  if (start === undefined) throw new Error("lesson: no network; link to one, such as [the network](#rate=8&aqm=pi)");
  const items = source.split(/^\d+\. /m);
  if (items.length < 2) throw new Error("lesson: no steps; each is an item of a numbered list, `1. `");
  const text = items[0].replace(/^# .*$/m, "").replace(/\[[^\]]*\]\(#[^)]*\)/, "").trim();
  return { title, start, text, source, steps: items.slice(1).map((item, i) => parseStep(item.trim(), i + 1)) };
}

function parseStep(item: string, number: number): Step {
  const step: Step = { text: item, conditions: [], over_s: OVER_S };
  for (const [, code] of item.matchAll(/`([^`]+)`/g)) {
    const over = /^for (\d+) s$/.exec(code);
    if (over) step.over_s = Number(over[1]);
    const found = /^([a-z-]+) (<=|>=|<|>|=) (\S+)( \S+)?$/.exec(code);
    if (!found) continue;
    const [, name, sign, value] = found;
    if (!NAMES.includes(name)) throw new Error(`lesson: step ${number}: no value "${name}"; choose from: ${NAMES.join(", ")}`);
    if (name === "aqm" ? sign !== "=" : Number.isNaN(Number(value))) throw new Error(`lesson: step ${number}: ${code}: ${name === "aqm" ? "the sign is =" : `${value} is not a number`}`);
    step.conditions.push({ name, sign: sign as Condition["sign"], value });
  }
  if (!step.conditions.length) throw new Error(`lesson: step ${number}: no condition, such as \`queue < 40 pkt\``);
  return step;
}

function compare(left: number, sign: Condition["sign"], right: number): boolean {
  return { "<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right, "=": left === right }[sign];
}

/** Value of a condition's name for a run; NaN while it has not run long enough since the last change. */
export function valueOf(condition: Condition, step: Step, run: AqmRun, playground: Playground): number {
  const key = SETTINGS[condition.name];
  if (key) return playground.settings[key] as number;
  const begin_s = playground.now_ns / 1e9 - step.over_s;
  const last = run.trace.points[run.trace.points.length - 1];
  if (begin_s < playground.changed_s + SETTLE_S || !last || last.t_s - last.interval_s < begin_s) return NaN;
  return METRICS[condition.name].of(run, begin_s, playground);
}

/** Unit of a condition's value. */
export const unitOf = ({ name }: Condition): string => METRICS[name]?.unit ?? "";

/** Whether a run fulfils all conditions of a step at once. */
export function stepDone(step: Step, playground: Playground): boolean {
  return playground.active().some((run) =>
    step.conditions.every((condition) =>
      condition.name === "aqm" ? isAqm(run.spec, condition.value) : compare(valueOf(condition, step, run, playground), condition.sign, Number(condition.value)),
    ),
  );
}
