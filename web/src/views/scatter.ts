// Delay against throughput: where each AQM is, with the trail of the last seconds.

import { aqmColour, colour } from "../colours";
import type { Playground } from "../playground";
import type { View } from "./charts";

const TRAIL = 30;
const LEFT = 58;
const BOTTOM = 40;
const MARGIN = 12;

/** A canvas as large as its place, in device pixels. */
export function fit(canvas: HTMLCanvasElement): { context: CanvasRenderingContext2D; width: number; height: number } {
  const ratio = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui";
  return { context, width, height };
}

/** Round steps of an axis from 0 to `high`. */
export function steps(high: number, count: number): number[] {
  const rough = high / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => step >= rough)!;
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => i * step);
}

export class Scatter implements View {
  private drawn = NaN;

  constructor(
    private canvas: HTMLCanvasElement,
    private playground: Playground,
  ) {}

  draw(): void {
    const { runs, settings } = this.playground;
    const count = runs.reduce((sum, run) => sum + run.trace.points.length, 0) + this.canvas.clientWidth / 1e6;
    if (count === this.drawn) return;
    this.drawn = count;
    const { context, width, height } = fit(this.canvas);
    const trails = runs.map((run) => run.trace.points.slice(-TRAIL));
    const all = trails.flat();
    const right_ms = Math.max(10, ...all.map((point) => point.delay_s * 1e3)) * 1.1;
    const top_mbit = Math.max(settings.rate_mbit, ...all.map((point) => point.throughput_bps / 1e6)) * 1.08;
    const x = (ms: number) => LEFT + (ms / right_ms) * (width - LEFT - MARGIN);
    const y = (mbit: number) => height - BOTTOM - (mbit / top_mbit) * (height - BOTTOM - MARGIN);
    this.axes(context, width, height, steps(right_ms, 5), steps(top_mbit, 5), x, y);
    context.strokeStyle = colour("target");
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(LEFT, y(settings.rate_mbit));
    context.lineTo(width - MARGIN, y(settings.rate_mbit));
    context.stroke();
    context.setLineDash([]);
    trails.forEach((trail, slot) => {
      context.fillStyle = context.strokeStyle = aqmColour(slot);
      trail.forEach((point, i) => {
        const last = i === trail.length - 1;
        context.globalAlpha = last ? 1 : 0.12 + (0.5 * i) / trail.length;
        context.beginPath();
        context.arc(x(point.delay_s * 1e3), y(point.throughput_bps / 1e6), last ? 6 : 3, 0, 2 * Math.PI);
        context.fill();
      });
      context.globalAlpha = 1;
      const end = trail.at(-1);
      if (!end) return;
      context.fillStyle = colour("text");
      context.textAlign = x(end.delay_s * 1e3) > width / 2 ? "right" : "left";
      const beside = context.textAlign === "left" ? 9 : -9;
      context.fillText(runs[slot].spec, x(end.delay_s * 1e3) + beside, y(end.throughput_bps / 1e6) + 18 + 13 * slot);
    });
  }

  private axes(
    context: CanvasRenderingContext2D,
    width: number,
    height: number,
    across: number[],
    up: number[],
    x: (ms: number) => number,
    y: (mbit: number) => number,
  ): void {
    context.fillStyle = colour("text");
    context.strokeStyle = colour("grid");
    context.lineWidth = 1;
    context.beginPath();
    context.textAlign = "center";
    for (const ms of across) {
      context.moveTo(x(ms), MARGIN);
      context.lineTo(x(ms), height - BOTTOM);
      context.fillText(`${+ms.toPrecision(6)}`, x(ms), height - BOTTOM + 16);
    }
    context.fillText("mean delay in the queue (ms)", (LEFT + width) / 2, height - 6);
    context.textAlign = "right";
    for (const mbit of up) {
      context.moveTo(LEFT, y(mbit));
      context.lineTo(width - MARGIN, y(mbit));
      context.fillText(`${+mbit.toPrecision(6)}`, LEFT - 6, y(mbit) + 4);
    }
    context.stroke();
    context.save();
    context.translate(14, (height - BOTTOM) / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText("throughput (Mbit/s)", 0, 0);
    context.restore();
  }

  close(): void {}
}
