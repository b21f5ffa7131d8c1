// Runs of a comparison or a study that `aqumen studio DIR` serves: filter, brush, and repeat one live.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Playground } from "../playground";
import { type Brush, Points } from "../views/points";

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

/** Most runs that the table lists. */
const LISTED_MAX = 20;
/** Most values of a factor that a list offers. */
const VALUES_MAX = 60;
/** AQMs with a colour of their own; the others are grey. */
const COLOURS = 8;

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

/** Value of a run on an axis: a metric, or a factor that is a number. */
function valueOf(run: StudioRun, key: string): number | null {
  const value = run.metrics[key] ?? run.labels?.[key];
  return typeof value === "number" ? value : null;
}

/** Name of a metric for people. */
const title = (key: string): string => key.replaceAll("_", " ");

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
  const keys = useMemo(() => [...Object.keys(runs[0].metrics), ...factors.map(({ name }) => name)].filter((key) => runs.some((run) => valueOf(run, key) !== null)), [runs]);
  const colours = useMemo(() => new Map(factors[0].values.map((aqm, i) => [aqm, i < COLOURS ? `flow-${i}` : "target"])), [runs]);
  const shown = useMemo(() => {
    const filters = Object.entries(wanted).filter(([, value]) => value);
    const points = runs.map((run) => ({ run, x: valueOf(run, x)!, y: valueOf(run, y)!, colour: colours.get(run.aqm)! }));
    return points.filter((point) => point.x !== null && point.y !== null && filters.every(([name, value]) => factorOf(point.run, name) === value));
  }, [runs, x, y, wanted]);
  const chosen = useMemo(() => (brush ? shown.filter((point) => point.x >= brush[0] && point.x <= brush[1] && point.y >= brush[2] && point.y <= brush[3]) : shown), [shown, brush]);
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
          <option value={value}>{title(value) || "all"}</option>
        ))}
      </select>
    </label>
  );
  const axis = (set: (value: string) => void) => (value: string) => (setBrush(null), set(value));
  const swatch = (aqm: string) => <i class="swatch" style={{ background: `var(--${colours.get(aqm)})` }} aria-hidden="true" />;
  return (
    <section class="wide studio">
      <header>
        <h2>Runs of {results.name}</h2>
        {factors.filter(({ values }) => values.length <= VALUES_MAX).map(({ name, values }) => choice(name === "aqm" ? "AQM" : name, wanted[name] ?? "", ["", ...values], (value) => setWanted({ ...wanted, [name]: value })))}
        {choice("x", x, keys, axis(setX))}
        {choice("y", y, keys, axis(setY))}
      </header>
      <p class="soft">
        {chosen.length} of {runs.length} runs. Drag over the points to choose some; click one, or its row, to repeat that run live with the same bits.{" "}
        {brush && <button onClick={() => setBrush(null)}>Choose all</button>}
      </p>
      <p class="legend">
        {[...colours.keys()].slice(0, COLOURS).map((aqm) => (
          <span key={aqm}>
            {swatch(aqm)} {aqm}
          </span>
        ))}
        {colours.size > COLOURS && <span>grey: {colours.size - COLOURS} others</span>}
      </p>
      <Points points={shown} brush={brush} x={title(x)} y={title(y)} repeat={({ run }) => void repeat(run)} brushed={setBrush} />
      <RunsTable chosen={chosen} factors={factors.slice(1).map(({ name }) => name)} x={x} y={y} swatch={swatch} repeat={repeat} />
    </section>
  );
}

interface TableProps {
  chosen: { run: StudioRun; x: number; y: number }[];
  factors: string[];
  x: string;
  y: string;
  swatch: (aqm: string) => ComponentChildren;
  repeat: (run: StudioRun) => Promise<void>;
}

/** The first chosen runs, with a button for each. */
function RunsTable({ chosen, factors, ...props }: TableProps) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Chosen runs">
        <table>
          <thead>
            <tr>
              <th scope="col">run</th>
              {factors.map((name) => (
                <th scope="col">{name}</th>
              ))}
              <th scope="col">{title(props.x)}</th>
              <th scope="col">{title(props.y)}</th>
            </tr>
          </thead>
          <tbody>
            {chosen.slice(0, LISTED_MAX).map(({ run, ...point }) => (
              <tr key={`${run.case} ${run.aqm} ${run.seed}`}>
                <th scope="row">
                  {props.swatch(run.aqm)}{" "}
                  <button onClick={() => void props.repeat(run)}>
                    {run.aqm}, seed {run.seed}
                  </button>
                </th>
                {factors.map((name) => (
                  <td>{factorOf(run, name)}</td>
                ))}
                <td>{+point.x.toPrecision(4)}</td>
                <td>{+point.y.toPrecision(4)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chosen.length > LISTED_MAX && <p class="soft">and {chosen.length - LISTED_MAX} more</p>}
    </>
  );
}
