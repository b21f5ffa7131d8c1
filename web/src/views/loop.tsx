// Linear analysis of the loop as the sliders stand: Bode and Nyquist plots with margins, and a stability map. The module is
// loaded when the view is first opened.

import { useEffect, useRef, useState } from "preact/hooks";
import theoryUrl from "../wasm/aqumen_web_theory_bg.wasm?url";
import { aqmColour, colour } from "../colours";
import { targetUnit } from "../catalogue";
import { type Playground, isOwn } from "../playground";
import { fit, steps } from "./scatter";

type Theory = typeof import("../wasm/aqumen_web_theory.js");

interface Margins {
  margins: { stable: boolean; phase_margin_deg: number | null; gain_margin: number | null; modulus_margin: number; crossover_rad_s: number | null };
  rtt_s: number;
  queue_pkts: number;
}

interface LoopData extends Margins {
  w: Float64Array;
  re: Float64Array;
  im: Float64Array;
  map: Uint8Array;
  flows: number[];
  rtt_s_axis: number[];
  here: [number, number];
}

const POINTS = 240;
const MAP_SIDE = 24;

const spread = (middle: number, factor: number, n: number) =>
  Array.from({ length: n }, (_, i) => middle * factor ** ((2 * i) / (n - 1) - 1));

let loaded: Promise<Theory> | undefined;
function theory(): Promise<Theory> {
  loaded ??= import("../wasm/aqumen_web_theory.js").then(async (module) => {
    await module.default({ module_or_path: theoryUrl });
    return module;
  });
  return loaded;
}

function analyse(module: Theory, playground: Playground, spec: string): LoopData {
  const { settings, entries, moved } = playground;
  const target = moved.target && targetUnit(entries, spec) === "pkt";
  const aqm = target ? `${spec}${spec.includes(":") ? "," : ":"}target=${settings.target_pkts}pkt` : spec;
  const analysis = new module.Analysis(playground.text(), aqm, settings.flows, settings.rate_mbit * 1e6);
  try {
    const found = JSON.parse(analysis.margins()) as Margins;
    const w = Float64Array.from(spread(1 / found.rtt_s, 300, POINTS));
    const response = analysis.response(w);
    const flows = spread(settings.flows, 8, MAP_SIDE);
    const rtt_s_axis = spread(analysis.base_rtt_s(), 8, MAP_SIDE);
    const map = analysis.map(Float64Array.from(flows), Float64Array.from(rtt_s_axis));
    const here: [number, number] = [settings.flows, analysis.base_rtt_s()];
    return { ...found, w, re: response.slice(0, POINTS), im: response.slice(POINTS), map, flows, rtt_s_axis, here };
  } finally {
    analysis.free();
  }
}

function bode(canvas: HTMLCanvasElement, data: LoopData, slot: number): void {
  const { context, width, height } = fit(canvas);
  const gain = data.re.map((re, i) => 20 * Math.log10(Math.hypot(re, data.im[i])));
  let turns = 0;
  const phase = data.re.map((re, i) => {
    const angle = (Math.atan2(data.im[i], re) * 180) / Math.PI;
    const before = i ? (Math.atan2(data.im[i - 1], data.re[i - 1]) * 180) / Math.PI : angle;
    if (angle - before > 180) turns -= 360;
    if (angle - before < -180) turns += 360;
    return angle + turns;
  });
  const middle = height / 2;
  const x = (i: number) => 50 + (i / (POINTS - 1)) * (width - 62);
  const panel = (values: Float64Array, low: number, high: number, top: number, bottom: number, zero: number, unit: string, title: string) => {
    const y = (value: number) => bottom - ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (bottom - top);
    context.strokeStyle = colour("grid");
    context.fillStyle = colour("text");
    context.textAlign = "right";
    for (const step of steps(high - low, 4)) {
      const value = low + step;
      context.beginPath();
      context.moveTo(50, y(value));
      context.lineTo(width - 12, y(value));
      context.stroke();
      context.fillText(`${value}${unit}`, 46, y(value) + 4);
    }
    context.textAlign = "left";
    context.fillText(title, 56, top + 12);
    context.strokeStyle = colour("target");
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(50, y(zero));
    context.lineTo(width - 12, y(zero));
    context.stroke();
    context.setLineDash([]);
    context.strokeStyle = aqmColour(slot);
    context.lineWidth = 2;
    context.beginPath();
    values.forEach((value, i) => (value < low ? undefined : context.lineTo(x(i), y(value))));
    context.stroke();
    context.lineWidth = 1;
  };
  panel(gain, -40, 40, 6, middle - 14, 0, "", "gain (dB)");
  panel(phase, -360, 0, middle, height - 28, -180, "°", "phase");
  context.fillStyle = colour("text");
  context.textAlign = "center";
  const decade = (w: number) => x((Math.log(w / data.w[0]) / Math.log(data.w[POINTS - 1] / data.w[0])) * (POINTS - 1));
  for (let w = 10 ** Math.ceil(Math.log10(data.w[0])); w < data.w[POINTS - 1]; w *= 10) context.fillText(`${+w.toPrecision(1)}`, decade(w), height - 14);
  context.fillText("rad/s", width / 2, height - 2);
}

function nyquist(canvas: HTMLCanvasElement, data: LoopData, slot: number): void {
  const { context, width, height } = fit(canvas);
  const scale = Math.min(width, height) / 5;
  const x = (re: number) => width * 0.6 + re * scale;
  const y = (im: number) => height / 2 - im * scale;
  context.strokeStyle = colour("grid");
  context.beginPath();
  context.moveTo(0, y(0));
  context.lineTo(width, y(0));
  context.moveTo(x(0), 0);
  context.lineTo(x(0), height);
  context.stroke();
  context.strokeStyle = colour("target");
  context.setLineDash([4, 4]);
  context.beginPath();
  context.arc(x(0), y(0), scale, 0, 2 * Math.PI);
  context.stroke();
  context.setLineDash([]);
  context.strokeStyle = aqmColour(slot);
  context.lineWidth = 2;
  context.beginPath();
  data.re.forEach((re, i) => (Math.hypot(re, data.im[i]) < 20 ? context.lineTo(x(re), y(data.im[i])) : undefined));
  context.stroke();
  context.lineWidth = 1;
  context.fillStyle = colour("bad");
  context.beginPath();
  context.arc(x(-1), y(0), 4, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = colour("text");
  context.textAlign = "right";
  context.fillText("-1", x(-1) - 7, y(0) - 6);
}

function stabilityMap(canvas: HTMLCanvasElement, data: LoopData): void {
  const { context, width, height } = fit(canvas);
  const [left, bottom, top] = [56, height - 36, 8];
  const [across, down] = [(width - left - 12) / MAP_SIDE, (bottom - top) / MAP_SIDE];
  data.map.forEach((state, k) => {
    context.fillStyle = colour(["unstable", "stable", "grid"][state]);
    context.fillRect(left + (k % MAP_SIDE) * across, bottom - (Math.floor(k / MAP_SIDE) + 1) * down, across + 0.5, down + 0.5);
  });
  const at = (axis: number[], value: number) => ((Math.log(value / axis[0]) / Math.log(axis[MAP_SIDE - 1] / axis[0])) * (MAP_SIDE - 1) + 0.5);
  context.fillStyle = colour("text");
  context.textAlign = "center";
  for (const n of [0, 0.5, 1]) {
    const i = Math.round(n * (MAP_SIDE - 1));
    context.fillText(`${+data.flows[i].toPrecision(2)}`, left + (i + 0.5) * across, bottom + 15);
  }
  context.fillText("flows", left + (width - left) / 2, height - 5);
  context.textAlign = "right";
  for (const n of [0, 0.5, 1]) {
    const i = Math.round(n * (MAP_SIDE - 1));
    context.fillText(`${(data.rtt_s_axis[i] * 1e3).toPrecision(2)} ms`.replace("e+3", "000"), left - 4, bottom - (i + 0.5) * down + 4);
  }
  const [x, y] = [left + at(data.flows, data.here[0]) * across, bottom - at(data.rtt_s_axis, data.here[1]) * down];
  context.strokeStyle = colour("text");
  context.lineWidth = 2;
  context.beginPath();
  context.arc(x, y, 6, 0, 2 * Math.PI);
  context.stroke();
  context.lineWidth = 1;
  context.textAlign = "left";
  context.fillText("you are here", x + 10, y + 4);
}

export function LoopPanel({ playground }: { playground: Playground }) {
  const [slot, setSlot] = useState(() => Math.max(playground.runs.findIndex((run) => run.spec !== "droptail"), 0));
  const [data, setData] = useState<LoopData | string>("");
  const canvases = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  const run = playground.runs[Math.min(slot, playground.runs.length - 1)];
  const { flows, rate_mbit, target_pkts } = playground.settings;
  const asked = `${run?.spec} ${flows} ${rate_mbit} ${target_pkts} ${playground.text()}`;
  useEffect(() => {
    if (!run) return undefined;
    let current = true;
    theory().then(
      (module) => {
        if (!current) return;
        try {
          if (isOwn(run.spec)) throw new Error("the law in the editor has no known transfer function");
          setData(analyse(module, playground, run.spec));
        } catch (error) {
          setData(error instanceof Error ? error.message : String(error));
        }
      },
      (error) => current && setData(String(error)),
    );
    return () => {
      current = false;
    };
  }, [asked]);
  useEffect(() => {
    if (typeof data === "string") return;
    bode(canvases[0].current!, data, run.slot);
    nyquist(canvases[1].current!, data, run.slot);
    stabilityMap(canvases[2].current!, data);
  });
  const number = (value: number | null, digits: number, unit: string) => (value === null ? "none" : `${value.toPrecision(digits)}${unit}`);
  return (
    <section class="wide">
      <header>
        <h2>Loop in theory</h2>
        <label>
          of{" "}
          <select onChange={(event) => setSlot(event.currentTarget.selectedIndex)}>
            {playground.runs.map((other) => (
              <option selected={other === run}>{other.spec}</option>
            ))}
          </select>
        </label>
      </header>
      {typeof data === "string" ? (
        <p role="status">{data || "Loading the theory …"}</p>
      ) : (
        <>
          <p role="status" class="margins">
            <strong>{data.margins.stable ? "Stable" : "Unstable"}</strong> with {flows} Reno flows: phase margin {number(data.margins.phase_margin_deg, 3, "°")}, gain
            margin {number(data.margins.gain_margin, 3, "")}, distance from −1 {number(data.margins.modulus_margin, 2, "")}; round trip{" "}
            {(data.rtt_s * 1e3).toFixed(0)} ms at a queue of {data.queue_pkts.toFixed(0)} packets.
          </p>
          <div class="three">
            <figure>
              <figcaption>Bode</figcaption>
              <div class="place"><canvas ref={canvases[0]} role="img" aria-label="Gain and phase of the open loop over frequency" /></div>
            </figure>
            <figure>
              <figcaption>Nyquist</figcaption>
              <div class="place"><canvas ref={canvases[1]} role="img" aria-label="Open loop in the complex plane, with the point -1" /></div>
            </figure>
            <figure>
              <figcaption>Stable (light) and unstable (dark) over flows and base round trip</figcaption>
              <div class="place"><canvas ref={canvases[2]} role="img" aria-label="Stability map over flows and base round-trip time" /></div>
            </figure>
          </div>
        </>
      )}
    </section>
  );
}
