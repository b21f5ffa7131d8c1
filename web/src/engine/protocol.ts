// Messages between the page and a worker. Each request has a number, and its answer carries it back.

export type Call =
  | { kind: "load"; module: WebAssembly.Module; setup: Setup }
  | { kind: "show"; link: string }
  | { kind: "advance"; until_ns: number; want: Want }
  | { kind: "push"; event: string }
  | { kind: "scenario" };

/** What a run begins with. */
export interface Setup {
  /** Text of the scenario. */
  scenario: string;
  /** Dotted keys and their values in turn, which change the scenario. */
  changes: string[];
  aqm: string;
  seed: number;
  /** Code of the law `own`. */
  law: string;
}

/** Parts of a look that cost something. */
export interface Want {
  flows: boolean;
  packets: boolean;
  sojourns: boolean;
}

/** The shown link at the start. */
export interface ShownLink {
  target_pkts: number | undefined;
  rate_bps: number;
  /** Whether a medium or a trace decides its rate, which no event changes then. */
  medium: boolean;
}

export interface Loaded extends ShownLink {
  end_ns: number;
  links: string[];
  groups: string[];
  /** For each group its flows, and how many of them run at the start. */
  counts: Uint32Array;
  /** Number of the group of each flow. */
  groupsOfFlows: Uint32Array;
}

/** State of one run after an advance. */
export interface Look {
  now_ns: number;
  over: boolean;
  /** New samples: all times in seconds, then all queues in packets, then all probabilities. */
  samples: Float64Array;
  /** Numbers of `Run.observe`. */
  observation: Float64Array;
  /** Five numbers for each flow. */
  flows?: Float64Array;
  /** Three numbers for each waiting packet. */
  packets?: Uint32Array;
  /** All times in seconds, then the fraction at or below each. */
  sojourns?: Float64Array;
}

export interface Request {
  id: number;
  call: Call;
}

/** `alive`: a law of the page is still being called. */
export type Answer = { id: number; result: unknown } | { id: number; error: string } | { alive: true };
