// Samples of one run: arrays that grow, and what is computed from them.

import type { Look } from "./engine/protocol";

/** An array of numbers that grows at its end. */
export class Column {
  private store = new Float64Array(1024);
  length = 0;

  push(values: ArrayLike<number>): void {
    const needed = this.length + values.length;
    if (needed > this.store.length) {
      const larger = new Float64Array(Math.max(needed, this.store.length * 2));
      larger.set(this.store.subarray(0, this.length));
      this.store = larger;
    }
    this.store.set(values, this.length);
    this.length = needed;
  }

  /** The values from number `first` on. */
  from(first: number): Float64Array {
    return this.store.subarray(first, this.length);
  }

  get(index: number): number {
    return this.store[index];
  }
}

/** Delay and throughput over a unit of time. */
export interface Point {
  t_s: number;
  delay_s: number;
  throughput_bps: number;
  /** Seconds that it covers. */
  interval_s: number;
  arrivals: number;
  departures: number;
  /** Packets that waited at its end. */
  queue: number;
}

/** Windows of the flows at one moment. */
export interface Windows {
  t_s: number;
  windows: Float64Array;
  /** Goodputs since the snapshot before, bit/s. */
  goodputs_bps: Float64Array;
}

const WINDOW_SNAPSHOTS_MAX = 1500;

/** Everything that the page keeps of one run. */
export class Trace {
  t_s = new Column();
  queue = new Column();
  probability = new Column();
  target = new Column();
  points: Point[] = [];
  windows: Windows[] = [];
  sojourns: Float64Array = new Float64Array();
  packets: Uint32Array = new Uint32Array();
  now_s = 0;
  /** Since the last point: seconds, bytes, packets, packets times delay. */
  private since = { s: 0, bytes: 0, packets: 0, delay: 0, arrivals: 0 };

  /** `unit_s`: length of a point. */
  constructor(private unit_s: number) {}

  add(look: Look, target_pkts: number): void {
    const n = look.samples.length / 3;
    this.t_s.push(look.samples.subarray(0, n));
    this.queue.push(look.samples.subarray(n, 2 * n));
    this.probability.push(look.samples.subarray(2 * n));
    this.target.push(new Float64Array(n).fill(target_pkts));
    const [now_s, interval_s, queue, , arrivals, , departures, bytes] = look.observation;
    const delay_s = look.observation[12];
    this.now_s = now_s;
    const since = this.since;
    since.s += interval_s;
    since.bytes += bytes;
    since.arrivals += arrivals;
    if (departures > 0 && !Number.isNaN(delay_s)) {
      since.packets += departures;
      since.delay += departures * delay_s;
    }
    if (since.s >= this.unit_s) {
      const delay = since.packets > 0 ? since.delay / since.packets : 0;
      const { s, packets, arrivals } = since;
      this.points.push({ t_s: now_s, delay_s: delay, throughput_bps: (since.bytes * 8) / s, interval_s: s, arrivals, departures: packets, queue });
      this.cut();
    }
    if (look.flows) {
      const column = (number: number) => Float64Array.from({ length: look.flows!.length / 5 }, (_, flow) => look.flows![5 * flow + number]);
      this.windows.push({ t_s: now_s, windows: column(1), goodputs_bps: column(2) });
      if (this.windows.length > WINDOW_SNAPSHOTS_MAX) this.windows.shift();
    }
    if (look.sojourns) this.sojourns = look.sojourns;
    if (look.packets) this.packets = look.packets;
  }

  /** Begins the next point now: the network has changed. */
  cut(): void {
    this.since = { s: 0, bytes: 0, packets: 0, delay: 0, arrivals: 0 };
  }

  /** Number of the first sample at or after `t_s`. */
  firstAt(t_s: number): number {
    let [low, high] = [0, this.t_s.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.t_s.get(middle) < t_s) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Mean of a column over the samples from `t_s` on. */
  mean(column: Column, t_s: number): number {
    const values = column.from(this.firstAt(t_s));
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : NaN;
  }
}

/** Value at or below which `fraction` of the sojourn times lie; NaN without any. */
export function quantile(sojourns: Float64Array, fraction: number): number {
  const n = sojourns.length / 2;
  for (let i = 0; i < n; i++) if (sojourns[n + i] >= fraction) return sojourns[i];
  return NaN;
}
