// The bar: play, step, speed, reset, seed.

import { useEffect } from "preact/hooks";
import { FASTEST, type Playground } from "../playground";
import { PRESETS } from "../presets";
import { LessonChoice } from "./lesson";

const SPEEDS = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 20, 100, FASTEST];

const SEED_MAX = 4294967295;

const speedName = (speed: number) => (speed === FASTEST ? "as fast as possible" : `${speed} ×`);

export function Bar({ playground }: { playground: Playground }) {
  const { playing, over, ready, now_ns, settings } = playground;
  const { speed } = settings;
  const speeds = SPEEDS.includes(speed) ? SPEEDS : [speed, ...SPEEDS].sort((a, b) => a - b);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, button, [contenteditable]")) return;
      const act = { " ": () => playground.play(!playground.playing), ".": () => playground.step(), r: () => playground.reset() }[event.key];
      if (act) {
        event.preventDefault();
        void act();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <header class="bar">
      <h1>Aqumen playground</h1>
      <div role="group" aria-label="Run">
        <button class="main" onClick={() => playground.play(!playing)} disabled={over || !ready} title="Space">
          {playing ? "Pause" : "Play"}
        </button>
        <button onClick={() => void playground.step()} disabled={playing || over || !ready} title={`Runs 20 ${settings.unit_s < 1 ? "µs" : "ms"}; full stop`}>
          Step
        </button>
        <button onClick={() => void playground.reset()} title="Starts anew with the settings as they are; R">
          Reset
        </button>
      </div>
      <label>
        Preset{" "}
        <select name="preset" onChange={(event) => void playground.preset(event.currentTarget.value)}>
          {settings.preset === "" && <option selected>{playground.file?.name}</option>}
          {(["Networks", "Papers"] as const).map((group) => (
            <optgroup label={group}>
              {PRESETS.filter((preset) => preset.group === group).map((preset) => (
                <option value={preset.name} selected={preset.name === settings.preset}>
                  {preset.title}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      <LessonChoice playground={playground} />
      <label>
        Speed{" "}
        <select name="speed" onChange={(event) => playground.setSpeed(speeds[event.currentTarget.selectedIndex])}>
          {speeds.map((value) => (
            <option selected={value === speed}>{speedName(value)}</option>
          ))}
        </select>
      </label>
      <label>
        Seed{" "}
        <input
          name="seed"
          type="number"
          min={0}
          max={SEED_MAX}
          value={settings.seed}
          onChange={(event) => {
            const seed = Number(event.currentTarget.value);
            const text = event.currentTarget.value;
            if (text !== "" && Number.isInteger(seed) && seed >= 0 && seed <= SEED_MAX) void playground.begin_with({ seed });
            else playground.refused(new Error(`seed = ${text || "nothing"}: must be a whole number from 0 to ${SEED_MAX}`));
          }}
        />
      </label>
      <output class="clock" aria-label="Simulated time">
        {settings.unit_s < 1 ? `${(now_ns / 1e6).toFixed(2)} ms` : `${(now_ns / 1e9).toFixed(2)} s`}
      </output>
    </header>
  );
}
