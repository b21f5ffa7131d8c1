// Runs of a comparison that `aqumen studio DIR` serves: filter by AQM and by two ranges, and repeat one live.

import { useEffect, useState } from "preact/hooks";
import { aqmColour } from "../colours";
import type { Playground } from "../playground";
import { steps } from "../views/scatter";

interface StudioRun {
  aqm: string;
  seed: number;
  metrics: Record<string, number | null>;
}

interface Results {
  name: string;
  scenario: string;
  runs: StudioRun[];
}

async function fetchResults(): Promise<Results | null> {
  if (!new URLSearchParams(location.search).has("results")) return null;
  const response = await fetch("studio.json");
  return response.ok ? ((await response.json()) as Results) : null;
}

export function StudioPanel({ playground }: { playground: Playground }) {
  const [results, setResults] = useState<Results | null>(null);
  const [x, setX] = useState("sojourn_p99_s");
  const [y, setY] = useState("utilization");
  const [aqm, setAqm] = useState("");
  useEffect(() => {
    void fetchResults().then(setResults, () => undefined);
  }, []);
  if (!results) return null;
  const aqms = [...new Set(results.runs.map((run) => run.aqm))];
  const keys = Object.keys(results.runs[0].metrics);
  const points = results.runs.filter((run) => (!aqm || run.aqm === aqm) && run.metrics[x] !== null && run.metrics[y] !== null);
  const repeat = async (run: StudioRun) => {
    playground.file = { name: `${results.name}, ${run.aqm}, seed ${run.seed}`, text: results.scenario };
    await playground.begin_with({ topology: "file", preset: "", interval: "", aqms: [run.aqm], seed: run.seed });
    playground.play(true);
  };
  const choice = (label: string, value: string, set: (value: string) => void) => (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {keys.map((key) => (
          <option value={key}>{key}</option>
        ))}
      </select>
    </label>
  );
  return (
    <section class="wide studio">
      <header>
        <h2>Runs of {results.name}</h2>
        <label>
          AQM{" "}
          <select value={aqm} onChange={(event) => setAqm(event.currentTarget.value)}>
            <option value="">all</option>
            {aqms.map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </label>
        {choice("x", x, setX)}
        {choice("y", y, setY)}
      </header>
      <p class="soft">Choose a point: its run is repeated live, with the same bits.</p>
      <Points points={points} x={x} y={y} slot={(run) => aqms.indexOf(run.aqm) % 4} repeat={repeat} />
    </section>
  );
}

const WIDTH = 900;
const HEIGHT = 260;

function Points(props: { points: StudioRun[]; x: string; y: string; slot: (run: StudioRun) => number; repeat: (run: StudioRun) => void }) {
  const { points, x, y, slot, repeat } = props;
  const span = (key: string): [number, number] => {
    const values = points.map((run) => run.metrics[key]!);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return high > low ? [low, high] : [low - 0.5, high + 0.5];
  };
  if (!points.length) return <p>No run has both metrics.</p>;
  const [[x0, x1], [y0, y1]] = [span(x), span(y)];
  const left = (value: number) => 70 + ((value - x0) / (x1 - x0)) * (WIDTH - 90);
  const top = (value: number) => HEIGHT - 40 - ((value - y0) / (y1 - y0)) * (HEIGHT - 60);
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={`${y} over ${x}`}>
      {steps(x1 - x0, 5).map((step) => (
        <text x={left(x0 + step)} y={HEIGHT - 20} text-anchor="middle">
          {+(x0 + step).toPrecision(4)}
        </text>
      ))}
      {steps(y1 - y0, 4).map((step) => (
        <text x={62} y={top(y0 + step) + 4} text-anchor="end">
          {+(y0 + step).toPrecision(4)}
        </text>
      ))}
      <text x={WIDTH / 2} y={HEIGHT - 3} text-anchor="middle">
        {x}
      </text>
      {points.map((run) => (
        <circle
          key={`${run.aqm} ${run.seed}`}
          cx={left(run.metrics[x]!)}
          cy={top(run.metrics[y]!)}
          r={7}
          fill={aqmColour(slot(run))}
          tabindex={0}
          role="button"
          aria-label={`${run.aqm}, seed ${run.seed}: ${x} ${run.metrics[x]!.toPrecision(4)}, ${y} ${run.metrics[y]!.toPrecision(4)}`}
          onClick={() => repeat(run)}
          onKeyDown={(event) => event.key === "Enter" && repeat(run)}
        >
          <title>{`${run.aqm}, seed ${run.seed}`}</title>
        </circle>
      ))}
    </svg>
  );
}
