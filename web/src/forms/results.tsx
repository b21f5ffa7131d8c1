// Runs of a comparison or a study that `aqumen studio DIR` serves: filter, brush, and repeat one live.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { aqmColour, colour } from "../colours";
import type { Playground } from "../playground";
import { steps } from "../views/scatter";

interface StudioRun {
  aqm: string;
  seed: number;
  metrics: Record<string, number | null>;
  /** Number of the case of a study. */
  case?: number;
  /** Factors of a study. */
  labels?: Record<string, string | number | null>;
}

interface Results {
  name: string;
  /** Scenario of a comparison; a study has one for each case. */
  scenario?: string;
  runs: StudioRun[];
}

/** Ranges of the two shown metrics. */
type Brush = [number, number, number, number];

/** Most runs that the table lists. */
const LISTED_MAX = 20;

async function fetchResults(): Promise<Results | null> {
  if (!new URLSearchParams(location.search).has("results")) return null;
  const response = await fetch("studio.json");
  return response.ok ? ((await response.json()) as Results) : null;
}

async function scenarioOf(results: Results, run: StudioRun): Promise<string> {
  if (results.scenario !== undefined) return results.scenario;
  const response = await fetch(`scenario.toml?case=${run.case}`);
  if (!response.ok) throw new Error(`no scenario of case ${run.case}: aqumen studio has ended, or the folder has changed`);
  return response.text();
}

const factorOf = (run: StudioRun, name: string): string => (name === "aqm" ? run.aqm : String(run.labels?.[name] ?? ""));

export function StudioPanel({ playground }: { playground: Playground }) {
  const [results, setResults] = useState<Results | null>(null);
  useEffect(() => {
    void fetchResults().then(setResults, () => undefined);
  }, []);
  // The panel changes with its own choices alone, not with the runs.
  return useMemo(() => results && <Runs results={results} playground={playground} />, [results]);
}

function Runs({ results, playground }: { results: Results; playground: Playground }) {
  const [x, setX] = useState("sojourn_p99_s");
  const [y, setY] = useState("utilization");
  const [wanted, setWanted] = useState<Record<string, string>>({});
  const [brush, setBrush] = useState<Brush | null>(null);
  const { runs } = results;
  const factors = useMemo(() => {
    const names = ["aqm", ...new Set(runs.flatMap((run) => Object.keys(run.labels ?? {})))];
    return names.map((name) => ({ name, values: [...new Set(runs.map((run) => factorOf(run, name)))] })).filter(({ name, values }) => name === "aqm" || values.length > 1);
  }, [runs]);
  const aqms = factors[0].values;
  const shown = useMemo(
    () => runs.filter((run) => run.metrics[x] !== null && run.metrics[y] !== null && Object.entries(wanted).every(([name, value]) => !value || factorOf(run, name) === value)),
    [runs, x, y, wanted],
  );
  const chosen = brush ? shown.filter(({ metrics }) => metrics[x]! >= brush[0] && metrics[x]! <= brush[1] && metrics[y]! >= brush[2] && metrics[y]! <= brush[3]) : shown;
  const repeat = async (run: StudioRun) => {
    try {
      playground.file = { name: `${results.name}, ${run.aqm}, seed ${run.seed}`, text: await scenarioOf(results, run) };
      await playground.begin_with({ topology: "file", preset: "", interval: "", aqms: [run.aqm], seed: run.seed });
      if (!playground.error) playground.play(true);
    } catch (error) {
      playground.refused(error);
    }
  };
  const choice = (label: string, value: string, values: string[], set: (value: string) => void) => (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {values.map((value) => (
          <option value={value}>{value || "all"}</option>
        ))}
      </select>
    </label>
  );
  const axis = (set: (value: string) => void) => (value: string) => (setBrush(null), set(value));
  const keys = Object.keys(runs[0].metrics);
  return (
    <section class="wide studio">
      <header>
        <h2>Runs of {results.name}</h2>
        {factors.map(({ name, values }) => choice(name === "aqm" ? "AQM" : name, wanted[name] ?? "", ["", ...values], (value) => setWanted({ ...wanted, [name]: value })))}
        {choice("x", x, keys, axis(setX))}
        {choice("y", y, keys, axis(setY))}
      </header>
      <p class="soft">
        {chosen.length} of {runs.length} runs. Drag over the points to choose some; click one, or its row, to repeat that run live with the same bits.{" "}
        {brush && <button onClick={() => setBrush(null)}>Choose all</button>}
      </p>
      <Points points={shown} chosen={new Set(chosen)} x={x} y={y} slot={(run) => aqms.indexOf(run.aqm) % 4} repeat={repeat} brushed={setBrush} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Chosen runs">
        <table>
          <tbody>
            {chosen.slice(0, LISTED_MAX).map((run) => (
              <tr key={`${run.case} ${run.aqm} ${run.seed}`}>
                <th scope="row">
                  <i class={`swatch s${aqms.indexOf(run.aqm) % 4}`} aria-hidden="true" />{" "}
                  <button onClick={() => void repeat(run)}>
                    {run.aqm}, seed {run.seed}
                  </button>
                </th>
                {factors.slice(1).map(({ name }) => (
                  <td>{factorOf(run, name)}</td>
                ))}
                <td>{`${x} ${+run.metrics[x]!.toPrecision(4)}`}</td>
                <td>{`${y} ${+run.metrics[y]!.toPrecision(4)}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chosen.length > LISTED_MAX && <p class="soft">and {chosen.length - LISTED_MAX} more</p>}
    </section>
  );
}

const HEIGHT = 260;
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 20, 12, 44];
/** Largest distance of a click from its point, pixels. */
const NEAR = 14;

interface PointsProps {
  points: StudioRun[];
  chosen: Set<StudioRun>;
  x: string;
  y: string;
  slot: (run: StudioRun) => number;
  repeat: (run: StudioRun) => void;
  brushed: (brush: Brush | null) => void;
}

/** Places of values on a canvas of a width, and back. */
function scales({ points, x, y }: PointsProps, width: number) {
  const span = (key: string): [number, number] => {
    const [low, high] = points.reduce(([low, high], run) => [Math.min(low, run.metrics[key]!), Math.max(high, run.metrics[key]!)], [Infinity, -Infinity]);
    return high > low ? [low, high] : [low - 0.5, high + 0.5];
  };
  const [[x0, x1], [y0, y1]] = [span(x), span(y)];
  const [across, up] = [width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM];
  return {
    x0, x1, y0, y1,
    left: (value: number) => LEFT + ((value - x0) / (x1 - x0)) * across,
    top: (value: number) => TOP + (1 - (value - y0) / (y1 - y0)) * up,
    valueX: (left: number) => x0 + ((left - LEFT) / across) * (x1 - x0),
    valueY: (top: number) => y0 + (1 - (top - TOP) / up) * (y1 - y0),
  };
}

function paint(canvas: HTMLCanvasElement, props: PointsProps, drag: [number, number, number, number] | null): void {
  const width = canvas.clientWidth;
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [width * ratio, HEIGHT * ratio];
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  const { x0, x1, y0, y1, left, top } = scales(props, width);
  context.font = "13px system-ui, sans-serif";
  context.fillStyle = colour("text");
  context.textAlign = "center";
  for (const step of steps(x1 - x0, 5)) context.fillText(String(+(x0 + step).toPrecision(4)), left(x0 + step), HEIGHT - 24);
  context.fillText(props.x, width / 2, HEIGHT - 5);
  context.textAlign = "right";
  for (const step of steps(y1 - y0, 4)) context.fillText(String(+(y0 + step).toPrecision(4)), LEFT - 10, top(y0 + step) + 4);
  for (const run of props.points) {
    context.globalAlpha = props.chosen.has(run) ? 0.8 : 0.15;
    context.fillStyle = aqmColour(props.slot(run));
    context.beginPath();
    context.arc(left(run.metrics[props.x]!), top(run.metrics[props.y]!), props.points.length > 300 ? 3 : 6, 0, 7);
    context.fill();
  }
  context.globalAlpha = 1;
  if (drag) {
    context.strokeStyle = colour("accent");
    context.strokeRect(drag[0], drag[1], drag[2] - drag[0], drag[3] - drag[1]);
  }
}

function Points(props: PointsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const from = useRef<[number, number] | null>(null);
  useEffect(() => {
    if (!canvas.current) return;
    const draw = () => canvas.current && paint(canvas.current, props, null);
    const observer = new ResizeObserver(draw);
    observer.observe(canvas.current);
    return () => observer.disconnect();
  });
  if (!props.points.length) return <p>No run has both metrics.</p>;
  const at = (event: PointerEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const released = (event: PointerEvent) => {
    if (!from.current) return;
    const [[ax, ay], [bx, by]] = [from.current, at(event)];
    from.current = null;
    const scale = scales(props, canvas.current!.clientWidth);
    if (Math.abs(bx - ax) > 4 || Math.abs(by - ay) > 4) {
      props.brushed([scale.valueX(Math.min(ax, bx)), scale.valueX(Math.max(ax, bx)), scale.valueY(Math.max(ay, by)), scale.valueY(Math.min(ay, by))]);
      return;
    }
    const distance = (run: StudioRun) => Math.hypot(scale.left(run.metrics[props.x]!) - bx, scale.top(run.metrics[props.y]!) - by);
    const nearest = props.points.reduce((best, run) => (distance(run) < distance(best) ? run : best));
    if (distance(nearest) <= NEAR) props.repeat(nearest);
  };
  return (
    <canvas
      ref={canvas}
      style={{ width: "100%", height: `${HEIGHT}px`, touchAction: "none" }}
      role="img"
      aria-label={`${props.y} over ${props.x}, a point for each run; the table below lists the chosen runs`}
      onPointerDown={(event) => {
        from.current = at(event);
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => from.current && paint(canvas.current!, props, [...from.current, ...at(event)])}
      onPointerUp={released}
    />
  );
}
