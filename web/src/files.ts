// Files that leave the page: scenario, samples, pictures.

import { aqmColour, colour } from "./colours";
import type { Playground } from "./playground";
import { steps } from "./views/scatter";

export function download(name: string, content: Blob | string, type = "text/plain"): void {
  const link = document.createElement("a");
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Name of a SPEC in a file name. */
export const fileName = (spec: string): string => spec.replace(/[^A-Za-z0-9-]+/g, "-");

/** Samples of all AQMs: a row for each time. */
export function csv({ runs }: Playground): string {
  const quoted = (text: string): string => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const names: string[] = runs.flatMap(({ spec }) => [`${spec} queue_pkts`, `${spec} probability`]);
  const rows = [["t_s", ...names].map(quoted).join(",")];
  const n = Math.max(0, ...runs.map((run) => run.trace.t_s.length));
  const longest = runs.find((run) => run.trace.t_s.length === n);
  for (let i = 0; i < n; i += 1) {
    const cells: (number | string)[] = runs.flatMap(({ trace }): (number | string)[] => (i < trace.t_s.length ? [trace.queue.get(i), trace.probability.get(i)] : ["", ""]));
    rows.push([longest!.trace.t_s.get(i), ...cells].join(","));
  }
  return rows.join("\n") + "\n";
}

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** Queue and probability over time as one SVG. */
export function svg(playground: Playground, span_s: number): string {
  const [width, height, left, top] = [900, 240, 60, 30];
  const end_s = Math.max(playground.now_ns / 1e9, 1e-6);
  const begin_s = Math.max(end_s - span_s, 0);
  const panel = (what: "queue" | "probability", title: string, y0: number): string => {
    const columns = playground.runs.map(({ trace }) => {
      const first = trace.firstAt(begin_s);
      return { t: trace.t_s.from(first), y: trace[what].from(first) };
    });
    const most = columns.reduce((most, { y }) => y.reduce((a, b) => Math.max(a, b), most), what === "queue" ? 10 : 0.01);
    const x = (t: number) => left + ((t - begin_s) / (end_s - begin_s)) * (width - left - 20);
    const y = (value: number) => y0 + height - 40 - (value / (most * 1.05)) * (height - 40 - top);
    const across = steps(end_s - begin_s, 6).map((t) => `<text x="${x(begin_s + t)}" y="${y0 + height - 22}" text-anchor="middle">${+(begin_s + t).toFixed(3)}</text>`);
    const up = steps(most, 4).map((value) => `<path d="M${left} ${y(value)}H${width - 20}" stroke="${colour("grid")}"/><text x="${left - 6}" y="${y(value) + 4}" text-anchor="end">${+value.toPrecision(6)}</text>`);
    const lines = columns.map(({ t, y: values }, slot) => {
      const points = Array.from(t, (t_s, i) => `${x(t_s).toFixed(1)},${y(values[i]).toFixed(1)}`);
      return `<polyline points="${points.join(" ")}" fill="none" stroke="${aqmColour(playground.runs[slot].slot)}" stroke-width="1.4"/>`;
    });
    return `<text x="${left}" y="${y0 + 18}" font-weight="bold">${title}</text>${up.join("")}${across.join("")}${lines.join("")}`;
  };
  const legend = playground.runs.map(
    ({ spec, slot }, i) => `<rect x="${left + i * 200}" y="492" width="12" height="12" fill="${aqmColour(slot)}"/><text x="${left + 18 + i * 200}" y="503">${escaped(spec.slice(0, 28))}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} 515" font-family="sans-serif" font-size="12" fill="${colour("text")}">
<rect width="${width}" height="515" fill="${colour("back")}"/>${panel("queue", "Queue (packets) over time (s)", 0)}${panel("probability", "Marking or dropping probability over time (s)", height)}${legend.join("")}</svg>\n`;
}

/** All charts of the page in one picture. */
export async function png(): Promise<Blob> {
  const places = [...document.querySelectorAll<HTMLCanvasElement>(".charts .place canvas")].map((canvas) => ({
    canvas,
    box: canvas.getBoundingClientRect(),
  }));
  const left = Math.min(...places.map(({ box }) => box.left));
  const top = Math.min(...places.map(({ box }) => box.top));
  const all = document.createElement("canvas");
  const ratio = devicePixelRatio;
  all.width = (Math.max(...places.map(({ box }) => box.right)) - left) * ratio;
  all.height = (Math.max(...places.map(({ box }) => box.bottom)) - top) * ratio;
  const context = all.getContext("2d")!;
  context.fillStyle = colour("back");
  context.fillRect(0, 0, all.width, all.height);
  for (const { canvas, box } of places) context.drawImage(canvas, (box.left - left) * ratio, (box.top - top) * ratio);
  return new Promise((resolve, reject) => all.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"));
}
