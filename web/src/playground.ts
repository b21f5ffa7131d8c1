// The runs of the page: one engine for each AQM, all at the same simulated time. Views read `runs`; forms act through the
// methods, and each action becomes an event of the scenario.

import { Engine } from "./engine/client";
import { type AqmEntry, readAqms, targetUnit } from "./catalogue";
import { type Settings, bits, packetBytes, scenario } from "./settings";
import { Trace } from "./trace";

/** An action of the user: an event for each AQM; `null` where an AQM has nothing to change. */
interface Action {
  at_ns: number;
  event: (spec: string) => string | null;
}

export interface AqmRun {
  spec: string;
  /** Place among the four, which decides the colour. */
  slot: number;
  engine: Engine;
  trace: Trace;
}

/** Keys of the settings that an event can change while the runs go on. */
export const LIVE_KEYS = ["rate_mbit", "flows", "target_pkts"] as const;
export type LiveKey = (typeof LIVE_KEYS)[number];

/** Speed that stands for as fast as possible. */
export const FASTEST = Infinity;
const STEP_NS = 20e6;
/** Real time that one advance should take, milliseconds. */
const ROUND_MS = 24;

export class Playground {
  runs: AqmRun[] = [];
  entries: AqmEntry[] = [];
  playing = false;
  speed = 1;
  now_ns = 0;
  end_ns = 0;
  over = false;
  error = "";
  /** Time of the last action, from which sojourn times count. */
  changed_s = 0;
  showPackets = false;
  /** Counts frames that were drawn, for measurements. */
  frames = 0;
  readonly views = new Set<() => void>();
  private listeners = new Set<() => void>();
  private actions: Action[] = [];
  private queue: Promise<unknown> = Promise.resolve();
  private busy = false;
  private last_ms = 0;
  private step_ns = STEP_NS;
  private told_ms = 0;
  private looks = 0;

  constructor(public settings: Settings) {
    requestAnimationFrame(this.frame);
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(): void {
    this.told_ms = performance.now();
    this.listeners.forEach((listener) => listener());
  }

  /** Does one thing after another: no action meets a run between two times. */
  private do<T>(work: () => Promise<T>): Promise<T> {
    const done = this.queue.then(work);
    this.queue = done.catch(() => undefined);
    return done;
  }

  /** Begins anew with the settings as they are. */
  reset(): Promise<void> {
    return this.do(async () => {
      this.actions = [];
      this.changed_s = 0;
      this.over = false;
      this.error = "";
      this.now_ns = 0;
      try {
        if (!this.entries.length) this.entries = await readAqms();
        while (this.runs.length > this.settings.aqms.length) this.runs.pop()?.engine.close();
        for (const [slot, spec] of this.settings.aqms.entries()) {
          const known = this.runs[slot];
          this.runs[slot] = { spec, slot, engine: known?.engine ?? new Engine(), trace: new Trace() };
        }
        await Promise.all(this.runs.map((run) => this.begin(run)));
      } catch (error) {
        this.refused(error);
      }
      this.redraw();
    });
  }

  private async begin(run: AqmRun): Promise<void> {
    const loaded = await run.engine.load(scenario(this.settings), run.spec, this.settings.seed, 0);
    this.end_ns = loaded.end_ns;
  }

  private refused(error: unknown): void {
    this.error = error instanceof Error ? error.message : String(error);
    this.playing = false;
    this.tell();
  }

  play(on: boolean): void {
    this.playing = on && !this.over;
    this.last_ms = performance.now();
    this.tell();
  }

  setSpeed(speed: number): void {
    this.speed = speed;
    this.step_ns = STEP_NS;
    this.tell();
  }

  /** Runs on by `by_ns`. */
  step(by_ns = STEP_NS): Promise<void> {
    return this.do(() => this.advance(this.now_ns + by_ns));
  }

  private async advance(until_ns: number): Promise<void> {
    const until = Math.min(Math.round(until_ns), this.end_ns);
    const nth = this.looks++;
    const want = { flows: nth % 3 === 0, packets: this.showPackets, sojourns: nth % 6 === 0 };
    try {
      const looks = await Promise.all(this.runs.map((run) => run.engine.advance(until, want)));
      looks.forEach((look, index) => {
        this.runs[index].trace.add(look, this.settings.target_pkts);
        this.over ||= look.over;
      });
      this.now_ns = until;
      if (this.over) this.playing = false;
    } catch (error) {
      this.refused(error);
    }
    this.redraw();
  }

  /** Changes a setting: at the start the scenario itself, later by an event. */
  change(key: LiveKey, value: number): Promise<void> {
    return this.do(async () => {
      const before = this.settings[key];
      if (before === value) return;
      const settings = { ...this.settings, [key]: value };
      const at = `at = "${this.now_ns}ns"`;
      const event = {
        rate_mbit: () => () => `{ ${at}, capacity = "${bits(value)}" }`,
        flows: () => () =>
          `{ ${at}, ${value > before ? "resume" : "stop"} = "flows", count = ${Math.abs(value - before)} }`,
        target_pkts: () => (spec: string) => this.targetEvent(spec, at, settings),
      }[key]();
      await this.act(event, settings);
    });
  }

  private targetEvent(spec: string, at: string, settings: Settings): string | null {
    const unit = targetUnit(this.entries, spec);
    const seconds = (settings.target_pkts * packetBytes(settings.transport) * 8) / (settings.rate_mbit * 1e6);
    const target = { pkt: `${settings.target_pkts}pkt`, s: `${Math.round(seconds * 1e6)}us` }[unit ?? ""];
    return target ? `{ ${at}, aqm = { target = "${target}" } }` : null;
  }

  private async act(event: Action["event"], settings: Settings): Promise<void> {
    try {
      const pushed = this.runs.map((run) => event(run.spec));
      await Promise.all(this.runs.map((run, i) => (pushed[i] === null ? undefined : run.engine.push(pushed[i]))));
      this.actions.push({ at_ns: this.now_ns, event });
      this.settings = settings;
      this.changed_s = this.now_ns / 1e9;
      this.error = "";
    } catch (error) {
      this.refused(error);
    }
    this.tell();
  }

  /** Scenario of a run with all actions so far as events. */
  exported(run: AqmRun): Promise<string> {
    return this.do(() => run.engine.scenario());
  }

  private redraw(): void {
    this.views.forEach((draw) => draw());
    if (performance.now() - this.told_ms > 250 || !this.playing) this.tell();
  }

  private frame = (now_ms: number): void => {
    requestAnimationFrame(this.frame);
    this.frames += 1;
    if (!this.playing || this.busy) return;
    const elapsed_ms = Math.min(now_ms - this.last_ms, 100);
    this.last_ms = now_ms;
    if (elapsed_ms <= 0) return;
    const by_ns = this.speed === FASTEST ? this.step_ns : elapsed_ms * 1e6 * this.speed;
    this.busy = true;
    const began = performance.now();
    void this.step(by_ns).finally(() => {
      const took_ms = performance.now() - began;
      this.step_ns = Math.min(Math.max(this.step_ns * Math.min(ROUND_MS / Math.max(took_ms, 1), 2), 1e6), 20e9);
      this.busy = false;
    });
  };
}
