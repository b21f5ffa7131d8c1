// A control law of the page in JavaScript, called by the engine through three functions. The code defines `class Law` with a
// `period` in seconds and `step(seen)`, the mirror of Python's SampledLaw.

/** The network that a law is made for. */
interface Network {
  capacity_pps: number;
  flows: number;
  base_rtt_s: number;
  target_pkts: number;
}

interface Law {
  period: number;
  step(seen: Record<string, number>): unknown;
}

/** Names of the numbers of an observation, in order: those of aqumen.session.Observation. */
const SEEN = [
  "now_s",
  "interval_s",
  "queue_pkts",
  "queue_bytes",
  "arrivals_pkts",
  "accepted_pkts",
  "departures_pkts",
  "departures_bytes",
  "busy_s",
  "idle_s",
  "sojourn_s",
  "probability",
];

const ALIVE_MS = 250;
/** Lines that `Function` puts before the code. */
const HEAD_LINES = 2;

let type: (new (network: Network) => Law) | undefined;
let laws: Law[] = [];
let told_ms = 0;

/** An error of the law, with the line of the code. */
function located(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  const line = error instanceof Error && /own-law\.js:(\d+)/.exec(error.stack ?? "");
  return new Error(line ? `own law, line ${Number(line[1]) - HEAD_LINES}: ${message}` : `own law: ${message}`);
}

function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw located(error);
  }
}

/** Takes the code of the law; an empty one leaves none. */
export function prepare(code: string): void {
  type = undefined;
  laws = [];
  if (code)
    type = guarded(() => {
      const found: unknown = new Function(`${code}\nreturn Law;\n//# sourceURL=own-law.js`)();
      if (typeof found !== "function") throw new Error("Law is not a class");
      return found as new (network: Network) => Law;
    });
}

function make(capacity_pps: number, flows: number, base_rtt_s: number, target_pkts: number): Float64Array {
  if (!type) throw new Error("own law: the editor is empty");
  const law = guarded(() => new type!({ capacity_pps, flows, base_rtt_s, target_pkts }));
  if (!(law.period >= 1e-5 && law.period <= 100)) throw new Error(`own law: period is ${law.period}; it must be from 0.00001 to 100 seconds`);
  if (typeof law.step !== "function") throw new Error("own law: Law has no step(seen)");
  laws.push(law);
  return Float64Array.of(laws.length - 1, law.period);
}

function copy(number: number): number {
  const law = laws[number];
  laws.push(Object.assign(Object.create(Object.getPrototypeOf(law)), structuredClone({ ...law })));
  return laws.length - 1;
}

function step(number: number, observation: Float64Array): number {
  const now_ms = performance.now();
  if (now_ms - told_ms > ALIVE_MS) {
    told_ms = now_ms;
    postMessage({ alive: true });
  }
  const seen: Record<string, number> = {};
  SEEN.forEach((name, i) => (seen[name] = observation[i]));
  const p = guarded(() => laws[number].step(seen));
  if (typeof p !== "number" || !(p >= 0 && p <= 1)) throw new Error(`own law: step() returned ${p}; a probability is a number from 0 to 1`);
  return p;
}

Object.assign(globalThis, { aqumenOwnMake: make, aqumenOwnCopy: copy, aqumenOwnStep: step });
