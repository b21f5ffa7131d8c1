// The runs of the page: one engine for each AQM, all at the same simulated time. Views read `runs`; forms act through the
// methods, and each action becomes an event of the scenario.

import { Engine } from "./engine/client";
import { type AqmEntry, readAqms, targetUnit } from "./catalogue";
import { PRESETS } from "./presets";
import { scenario } from "./scenario";
import { DEFAULTS, type Settings, bits, packetBytes } from "./settings";
import type { TopologyName } from "./topologies";
import type { Loaded, ShownLink } from "./engine/protocol";
import { type Lesson, parseLesson, stepDone } from "./lesson";
import { base, fromFragment } from "./link";
import { Trace } from "./trace";

export interface AqmRun {
  spec: string;
  /** Place among the four, which decides the colour. */
  slot: number;
  engine: Engine;
  trace: Trace;
  /** Why it ended before the others: an error of the law in the editor. */
  failed: string;
}

/** A scenario file in place of the one that the forms make. */
export interface ScenarioFile {
  name: string;
  text: string;
}

/** Keys of the settings that an event can change while the runs go on. */
export const LIVE_KEYS = ["rate_mbit", "flows", "target_pkts"] as const;
export type LiveKey = (typeof LIVE_KEYS)[number];

/** Whether a SPEC is that of the law in the editor. */
export const isOwn = (spec: string): boolean => spec.split(":")[0].trim() === "own";

/** Speed that stands for as fast as possible. */
export const FASTEST = Infinity;
/** Length of a step in units of the settings, nanoseconds. */
const STEP_NS = 20e6;
/** Real time that one advance should take, milliseconds. */
const ROUND_MS = 24;

export class Playground {
  runs: AqmRun[] = [];
  entries: AqmEntry[] = [];
  playing = false;
  now_ns = 0;
  end_ns = 0;
  over = false;
  error = "";
  /** Time of the last action, from which sojourn times count. */
  changed_s = 0;
  showPackets = false;
  file: ScenarioFile | null = null;
  /** Code of the law `own`. */
  law = "";
  lesson: Lesson | null = null;
  /** Steps of the lesson that are done, from the first on. */
  done = 0;
  /** Settings that an event changed since the start. */
  moved = { target: false };
  /** Recorded links, and the one that is shown. */
  links: string[] = [];
  shown = "";
  /** Flow groups: how many flows they have, and how many of them run at the start. */
  groups: { name: string; count: number; running: number }[] = [];
  /** Rate of the shown link at the start. */
  rate0_mbit = 0;
  /** Whether a medium decides the rate of the shown link. */
  medium = false;
  /** Whether the engines hold the scenario: not while it is refused. */
  ready = false;
  private groupsOfFlows: Uint32Array = new Uint32Array();
  /** Counts frames that were drawn, for measurements. */
  frames = 0;
  readonly views = new Set<() => void>();
  private listeners = new Set<() => void>();
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
      this.changed_s = 0;
      this.moved = { target: false };
      this.over = false;
      this.error = "";
      this.now_ns = 0;
      this.ready = false;
      this.step_ns = STEP_NS * this.settings.unit_s;
      try {
        if (!this.entries.length) this.entries = await readAqms();
        while (this.runs.length > this.settings.aqms.length) this.runs.pop()?.engine.close();
        for (const [slot, spec] of this.settings.aqms.entries()) {
          const known = this.runs[slot];
          if (known?.failed) known.engine.close();
          const engine = known && !known.failed ? known.engine : new Engine();
          this.runs[slot] = { spec, slot, engine, trace: new Trace(this.settings.unit_s), failed: "" };
        }
        const loaded = (await Promise.all(this.runs.map((run) => this.begin(run)))).find(Boolean);
        if (loaded) this.learn(loaded);
        if (loaded && this.shown !== loaded.links[0]) await this.showEach();
        this.ready = loaded !== undefined;
      } catch (error) {
        this.refused(error);
      }
      this.redraw();
    });
  }

  private async begin(run: AqmRun): Promise<Loaded | undefined> {
    const { seed, interval } = this.settings;
    const changes = this.file && interval ? ["record.interval", interval] : [];
    const setup = { scenario: this.text(), changes, aqm: run.spec, seed, law: isOwn(run.spec) ? this.law : "" };
    try {
      return await run.engine.load(setup);
    } catch (error) {
      if (!isOwn(run.spec)) throw error;
      this.fail(run, error);
      return undefined;
    }
  }

  /** Takes over what the engine knows of the scenario. */
  private learn(loaded: Loaded): void {
    this.end_ns = loaded.end_ns;
    this.links = loaded.links;
    if (!this.links.includes(this.shown)) this.shown = this.links[0];
    this.groupsOfFlows = loaded.groupsOfFlows;
    this.groups = loaded.groups.map((name, number) => ({
      name,
      count: loaded.counts[2 * number],
      running: loaded.counts[2 * number + 1],
    }));
    this.learnLink(loaded);
    if (!this.file) return;
    const largest = this.groups.reduce((best, group) => (group.count > best.count ? group : best));
    this.settings = { ...this.settings, group: largest.name, flows: largest.running };
  }

  /** Takes over what the engine knows of the shown link. */
  private learnLink({ rate_bps, target_pkts, medium }: ShownLink): void {
    this.medium = medium;
    this.rate0_mbit = rate_bps / 1e6;
    if (this.file) this.settings = { ...this.settings, target_pkts: target_pkts ?? 0 };
    if (this.file || medium) this.settings = { ...this.settings, rate_mbit: this.rate0_mbit };
  }

  /** Shows the link `shown` in each run. */
  private async showEach(): Promise<void> {
    const [link] = await Promise.all(this.active().map((run) => run.engine.show(this.shown)));
    this.learnLink(link);
  }

  /** Text of the scenario at the start. */
  text(): string {
    return this.file?.text ?? scenario(this.settings);
  }

  private fail(run: AqmRun, error: unknown): void {
    run.failed = error instanceof Error ? error.message : String(error);
    this.refused(error);
  }

  /** Takes other settings and begins anew. */
  begin_with(settings: Partial<Settings>): Promise<void> {
    this.settings = { ...this.settings, ...settings };
    return this.reset();
  }

  /** Takes a topology of the forms with the settings that it begins with, the seed, and the AQMs that were chosen. */
  topology(topology: TopologyName): Promise<void> {
    const { settings } = this;
    const { seed } = settings;
    const given = base(settings.preset, settings.topology === "file" ? undefined : settings.topology).aqms;
    const aqms = settings.aqms.join() === given.join() ? {} : { aqms: settings.aqms };
    this.file = null;
    return this.begin_with({ ...base(DEFAULTS.preset, topology), ...aqms, seed });
  }

  /** Takes a preset, changed by `settings`, and begins anew. */
  async preset(name: string, settings: Partial<Settings> = {}): Promise<void> {
    const preset = PRESETS.find((preset) => preset.name === name) ?? PRESETS[0];
    this.file = preset.file && !settings.topology ? { name: preset.title, text: await preset.file() } : null;
    const topology = this.file ? { topology: "file" as const } : {};
    await this.begin_with({ ...DEFAULTS, ...preset.settings, preset: preset.name, ...topology, ...settings });
  }

  /** Takes a scenario file and begins anew with the AQMs as they are. */
  open(file: ScenarioFile): Promise<void> {
    this.file = file;
    return this.begin_with({ topology: "file", preset: "", interval: "" });
  }

  /** Takes the text of a lesson, sets its network up and begins it. */
  async teach(text: string): Promise<void> {
    try {
      const lesson = parseLesson(text);
      const { preset, settings } = fromFragment(lesson.start);
      this.lesson = lesson;
      this.done = 0;
      await this.preset(preset, { speed: 5, ...settings });
    } catch (error) {
      this.refused(error);
    }
  }

  /** Leaves the lesson; the runs go on. */
  leaveLesson(): void {
    this.lesson = null;
    this.tell();
  }

  /** Counts the steps of the lesson that the runs fulfil now. */
  private examine(): void {
    const steps = this.lesson?.steps ?? [];
    while (this.done < steps.length && stepDone(steps[this.done], this)) this.done += 1;
  }

  /** Shows another recorded link from its start. */
  show(link: string): Promise<void> {
    return this.do(async () => {
      this.shown = link;
      await this.showEach();
      for (const run of this.active()) run.trace = new Trace(this.settings.unit_s);
      await this.advance(this.now_ns);
      this.tell();
    });
  }

  /** Runs that go on. */
  active(): AqmRun[] {
    return this.runs.filter((run) => !run.failed);
  }

  /** Numbers of the flows that the slider stops and resumes. */
  sliderFlows(): number[] {
    const group = this.groups.findIndex((group) => group.name === this.settings.group);
    return [...this.groupsOfFlows.keys()].filter((flow) => this.groupsOfFlows[flow] === group);
  }

  /** Shows an error. */
  refused(error: unknown): void {
    this.error = error instanceof Error ? error.message : String(error);
    this.playing = false;
    this.tell();
  }

  play(on: boolean): void {
    this.playing = on && this.ready && !this.over;
    this.last_ms = performance.now();
    this.tell();
  }

  setSpeed(speed: number): void {
    this.settings = { ...this.settings, speed };
    this.step_ns = STEP_NS * this.settings.unit_s;
    this.tell();
  }

  /** Runs on by `by_ns`; does nothing while no scenario is loaded. */
  step(by_ns = STEP_NS * this.settings.unit_s): Promise<void> {
    return this.do(() => (this.ready ? this.advance(this.now_ns + by_ns) : Promise.resolve()));
  }

  private async advance(until_ns: number): Promise<void> {
    const until = Math.min(Math.round(until_ns), this.end_ns);
    const nth = this.looks++;
    const want = { flows: this.lesson !== null || nth % 3 === 0, packets: this.showPackets, sojourns: nth % 6 === 0 };
    await Promise.all(
      this.active().map(async (run) => {
        try {
          const look = await run.engine.advance(until, want);
          run.trace.add(look, this.settings.target_pkts);
          this.over ||= look.over;
        } catch (error) {
          this.fail(run, error);
        }
      }),
    );
    this.now_ns = until;
    if (this.over) this.playing = false;
    this.examine();
    this.redraw();
  }

  /** Changes a setting: at the start the scenario itself, later by an event. */
  change(key: LiveKey, value: number): Promise<void> {
    return this.do(async () => {
      const before = this.settings[key];
      if (before === value) return;
      const settings = { ...this.settings, [key]: value };
      const at = `at = "${this.now_ns}ns"`;
      const flows = `${value > before ? "resume" : "stop"} = "${settings.group}", count = ${Math.abs(value - before)}`;
      const event = {
        rate_mbit: () => `{ ${at}, link = "${this.shown}", capacity = "${bits(value)}" }`,
        flows: () => `{ ${at}, ${flows} }`,
        target_pkts: (spec: string) => this.targetEvent(spec, at, settings),
      }[key];
      await this.act(event, settings);
    });
  }

  private targetEvent(spec: string, at: string, settings: Settings): string | null {
    const unit = targetUnit(this.entries, spec);
    const seconds = (settings.target_pkts * packetBytes(settings.transport) * 8) / (settings.rate_mbit * 1e6);
    const target = { pkt: `${settings.target_pkts}pkt`, s: `${Math.round(seconds * 1e6)}us` }[unit ?? ""];
    return target ? `{ ${at}, link = "${this.shown}", aqm = { target = "${target}" } }` : null;
  }

  /** Adds an event for each AQM; `null` where an AQM has nothing to change. */
  private async act(event: (spec: string) => string | null, settings: Settings): Promise<void> {
    try {
      const pushes = this.active().map(async (run) => {
        const pushed = event(run.spec);
        if (pushed !== null) await run.engine.push(pushed);
        run.trace.cut();
      });
      await Promise.all(pushes);
      if (settings.target_pkts !== this.settings.target_pkts) this.moved.target = true;
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
    const { speed } = this.settings;
    const by_ns = speed === FASTEST ? this.step_ns : elapsed_ms * 1e6 * speed;
    this.busy = true;
    const began = performance.now();
    void this.step(by_ns).finally(() => {
      const took_ms = performance.now() - began;
      this.step_ns = Math.min(Math.max(this.step_ns * Math.min(ROUND_MS / Math.max(took_ms, 1), 2), 1e6 * this.settings.unit_s), 20e9 * this.settings.unit_s);
      this.busy = false;
    });
  };
}
