// Charts over uPlot: queue and probability over time, distribution of the sojourn times, windows of flows.

import uPlot from "uplot";
import { aqmColour, aqmDash, colour } from "../colours";
import type { Playground } from "../playground";

export interface View {
  draw(): void;
  close(): void;
}

/** Most samples that a line shows; beyond, every n-th. */
const SAMPLES_MAX = 2000;

function axis(label: string, side?: number): uPlot.Axis {
  return {
    label,
    side: side ?? 2,
    labelSize: 22,
    size: side === 2 || side === undefined ? 34 : 56,
    font: "12px system-ui",
    labelFont: "12px system-ui",
    stroke: () => colour("text"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1 },
  };
}

/** A chart that is as wide as its place. */
class Chart {
  protected plot: uPlot;
  private watch: ResizeObserver;

  constructor(place: HTMLElement, options: Omit<uPlot.Options, "width" | "height">, data: uPlot.AlignedData) {
    const size = () => ({ width: Math.max(place.clientWidth, 120), height: Math.max(place.clientHeight, 120) });
    const common = { legend: { show: false }, cursor: { drag: { x: false, y: false } }, padding: [8, 16, 0, 0] };
    this.plot = new uPlot({ ...common, ...options, ...size() } as uPlot.Options, data, place);
    this.watch = new ResizeObserver(() => this.plot.setSize(size()));
    this.watch.observe(place);
  }

  close(): void {
    this.watch.disconnect();
    this.plot.destroy();
  }
}

const aqmSeries = (names: string[]): uPlot.Series[] =>
  names.map((label, slot) => ({
    label,
    stroke: () => aqmColour(slot),
    width: 1.6,
    dash: aqmDash(slot),
    points: { show: false },
  }));

/** Queue or probability of all AQMs over the last seconds. */
export class TimeChart extends Chart implements View {
  constructor(
    place: HTMLElement,
    private playground: Playground,
    private what: "queue" | "probability",
    private span_s: () => number,
  ) {
    const target: uPlot.Series = { label: "target", stroke: () => colour("target"), width: 1.5, dash: [4, 4], points: { show: false } };
    const names = playground.runs.map((run) => run.spec);
    const top = what === "queue" ? 10 : 0.01;
    super(
      place,
      {
        scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(low, 0), Math.max(high * 1.05, top)] } },
        series: [{ label: "time" }, ...aqmSeries(names), ...(what === "queue" ? [target] : [])],
        axes: [axis("time (s)"), axis(what === "queue" ? "queue (packets)" : "probability", 3)],
      },
      [[]],
    );
  }

  draw(): void {
    const { runs, now_ns } = this.playground;
    if (!runs.length) return;
    const begin_s = Math.max(now_ns / 1e9 - this.span_s(), 0);
    const first = runs[0].trace.firstAt(begin_s);
    const every = Math.max(1, Math.ceil((runs[0].trace.t_s.length - first) / SAMPLES_MAX));
    const thin = (values: Float64Array) =>
      every === 1 ? values : Float64Array.from({ length: Math.floor(values.length / every) }, (_, i) => values[i * every]);
    const columns = runs.map((run) => thin(run.trace[this.what].from(first)));
    const target = this.what === "queue" ? [thin(runs[0].trace.target.from(first))] : [];
    const data = [thin(runs[0].trace.t_s.from(first)), ...columns, ...target];
    const end_s = Math.max(now_ns / 1e9, begin_s + this.span_s() / 6);
    this.plot.batch(() => {
      this.plot.setData(data as unknown as uPlot.AlignedData, false);
      this.plot.setScale("x", { min: begin_s, max: end_s });
    });
  }
}

const CDF_POINTS = 160;

/** Distribution of the sojourn times of all AQMs, over a logarithmic axis. */
export class SojournChart extends Chart implements View {
  constructor(
    place: HTMLElement,
    private playground: Playground,
  ) {
    super(
      place,
      {
        scales: { x: { time: false, distr: 3, log: 10 }, y: { range: [0, 1] } },
        series: [{ label: "sojourn time" }, ...aqmSeries(playground.runs.map((run) => run.spec))],
        axes: [axis("sojourn time (ms)"), axis("fraction of packets", 3)],
      },
      [[]],
    );
  }

  draw(): void {
    const all = this.playground.runs.map((run) => run.trace.sojourns);
    const ends = all.filter((cdf) => cdf.length).map((cdf) => [cdf[0], cdf[cdf.length / 2 - 1]]);
    if (!ends.length) return;
    const low = Math.max(Math.min(...ends.map((end) => end[0])), 1e-4);
    const high = Math.max(...ends.map((end) => end[1]), low * 10);
    const grid = Float64Array.from({ length: CDF_POINTS }, (_, i) => low * (high / low) ** (i / (CDF_POINTS - 1)));
    const columns = all.map((cdf) => {
      const n = cdf.length / 2;
      let at = 0;
      return Float64Array.from(grid, (t) => {
        while (at < n && cdf[at] <= t) at += 1;
        return at > 0 ? cdf[n + at - 1] : 0;
      });
    });
    this.plot.setData([grid.map((t) => t * 1e3), ...columns] as unknown as uPlot.AlignedData);
  }
}

/** Flows whose windows are drawn. */
const FLOWS_SHOWN = 8;

/** Congestion windows of the first flows of one AQM. */
export class WindowChart extends Chart implements View {
  constructor(
    place: HTMLElement,
    private playground: Playground,
    private slot: () => number,
    private span_s: () => number,
  ) {
    const flows = Array.from({ length: FLOWS_SHOWN }, (_, flow) => ({
      label: `flow ${flow + 1}`,
      stroke: () => colour(`flow-${flow}`),
      width: 1.2,
      points: { show: false },
    }));
    const mean = { label: "mean", stroke: () => colour("text"), width: 2, points: { show: false } };
    super(
      place,
      {
        scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(low, 0), Math.max(high * 1.05, 4)] } },
        series: [{ label: "time" }, ...flows, mean],
        axes: [axis("time (s)"), axis("window (segments)", 3)],
      },
      [[]],
    );
  }

  draw(): void {
    const { runs, now_ns, settings } = this.playground;
    const run = runs[Math.min(this.slot(), runs.length - 1)];
    if (!run) return;
    const begin_s = Math.max(now_ns / 1e9 - this.span_s(), 0);
    const seen = run.trace.windows.filter((look) => look.t_s >= begin_s);
    const every = Math.max(1, Math.ceil(seen.length / 400));
    const looks = seen.filter((_, i) => i % every === 0);
    // Flows stop from the first one on: the last ones run.
    const all = this.playground.sliderFlows();
    const count = this.playground.groups.find((group) => group.name === settings.group)?.count ?? all.length;
    // A flow of several connections has a window for each.
    const flows = all.slice(-settings.flows * (all.length / count)).reverse();
    const shown = Array.from({ length: FLOWS_SHOWN }, (_, i) => flows[i]);
    const finite = (x: number | undefined) => (x === undefined || Number.isNaN(x) ? null : x);
    const columns: (number | null)[][] = shown.map((flow) => looks.map(({ windows }) => finite(windows[flow])));
    const mean = looks.map(({ windows }) => finite(flows.reduce((sum, flow) => sum + windows[flow], 0) / flows.length));
    const data = [looks.map((look) => look.t_s), ...columns, mean];
    this.plot.batch(() => {
      this.plot.setData(data as uPlot.AlignedData, false);
      this.plot.setScale("x", { min: begin_s, max: Math.max(now_ns / 1e9, begin_s + this.span_s() / 6) });
    });
  }
}
