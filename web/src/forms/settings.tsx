// Forms of the AQMs and of the network. Sliders of what an event can change act while the runs go on; the others begin anew.

import { type LiveKey, LIVE_KEYS, type Playground } from "../playground";
import { BESIDE, FLOWS_MAX, type Settings, packetBytes } from "../settings";

/** A slider whose positions are the values of a list. */
interface Slider {
  key: keyof Settings;
  label: string;
  unit: string;
  values: number[];
}

const SLIDERS: Slider[] = [
  { key: "flows", label: "Flows", unit: "", values: [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, FLOWS_MAX] },
  { key: "rate_mbit", label: "Rate", unit: "Mbit/s", values: [0.25, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50, 80, 100] },
  { key: "target_pkts", label: "Target", unit: "packets", values: [1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300] },
  { key: "rtt_min_ms", label: "Shortest round trip", unit: "ms", values: [4, 8, 12, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500] },
  { key: "rtt_max_ms", label: "Longest round trip", unit: "ms", values: [4, 8, 12, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500] },
  { key: "buffer_pkts", label: "Buffer", unit: "packets", values: [5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000] },
];

const TRANSPORTS: [string, string][] = [
  ["modern", "Reno, today's TCP"],
  ["cubic", "CUBIC"],
  ["linux", "CUBIC as in Linux"],
  ["linux-bbr", "BBR as in Linux"],
  ["dctcp", "DCTCP"],
  ["prague", "Prague"],
  ["vegas", "Vegas"],
  ["ledbat", "LEDBAT"],
  ["ns2", "Reno as in ns-2"],
];

function nearest(values: number[], value: number): number {
  let best = 0;
  values.forEach((other, i) => {
    if (Math.abs(other - value) < Math.abs(values[best] - value)) best = i;
  });
  return best;
}

function change(playground: Playground, key: keyof Settings, value: Settings[keyof Settings]): void {
  if ((LIVE_KEYS as readonly string[]).includes(key) && playground.now_ns > 0) {
    void playground.change(key as LiveKey, value as number);
  } else {
    void playground.begin_with({ [key]: value });
  }
}

/** Values of a slider: those of its list that the scenario can have, and the present one. */
function positions(playground: Playground, { key, values }: Slider): number[] {
  const value = playground.settings[key] as number;
  const most = key === "flows" ? (playground.groups.find((group) => group.name === playground.settings.group)?.count ?? value) : Infinity;
  const near = key === "rate_mbit" && playground.file ? [0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3].map((x) => +(x * playground.rate0_mbit).toPrecision(3)) : values;
  return [...new Set([...near.filter((other) => other <= most), value])].sort((a, b) => a - b);
}

function note(key: keyof Settings, settings: Settings): string {
  if (key !== "target_pkts" && key !== "buffer_pkts") return "";
  const ms = (settings[key] * packetBytes(settings.transport) * 8) / (settings.rate_mbit * 1e3);
  return ` = ${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

function SliderRow({ playground, slider }: { playground: Playground; slider: Slider }) {
  const { key, label, unit } = slider;
  const values = positions(playground, slider);
  const value = playground.settings[key] as number;
  const live = (LIVE_KEYS as readonly string[]).includes(key);
  const shown = +value.toPrecision(4);
  const text = `${shown} ${unit}${note(key, playground.settings)}`;
  return (
    <div class="slider">
      <label for={key}>{label}</label>
      <output for={key}>{text}</output>
      <input
        id={key}
        name={key}
        type="range"
        min={0}
        max={values.length - 1}
        value={nearest(values, value)}
        aria-valuetext={text}
        title={live ? "Acts while the runs go on" : "Begins anew"}
        onInput={(event) => change(playground, key, values[Number(event.currentTarget.value)])}
      />
    </div>
  );
}

export function NetworkForm({ playground }: { playground: Playground }) {
  const { settings } = playground;
  const live = SLIDERS.filter((slider) => (LIVE_KEYS as readonly string[]).includes(slider.key));
  return (
    <>
      <fieldset>
        <legend>While it runs</legend>
        {playground.links.length > 1 && (
          <label class="row">
            <span>Link</span>
            <select name="link" onChange={(event) => void playground.show(event.currentTarget.value)}>
              {playground.links.map((link) => (
                <option selected={link === playground.shown}>{link}</option>
              ))}
            </select>
          </label>
        )}
        {live.map((slider) => (
          <SliderRow key={slider.key} playground={playground} slider={slider} />
        ))}
      </fieldset>
      {playground.file ? (
        <p class="soft">
          The network is that of the file: <em>{playground.file.name}</em>. The flows are those of the group {settings.group}.
        </p>
      ) : (
      <fieldset>
        <legend>From the start</legend>
        {SLIDERS.filter((slider) => !live.includes(slider)).map((slider) => (
          <SliderRow key={slider.key} playground={playground} slider={slider} />
        ))}
        <label class="row">
          <span>Topology</span>
          <select name="topology" onChange={(event) => change(playground, "topology", event.currentTarget.value as Settings["topology"])}>
            <option value="dumbbell" selected={settings.topology === "dumbbell"}>one bottleneck</option>
            <option value="parking-lot" selected={settings.topology === "parking-lot"}>three bottlenecks in a row</option>
          </select>
        </label>
        <label class="row">
          <span>Transport</span>
          <select name="transport" onChange={(event) => change(playground, "transport", event.currentTarget.value)}>
            {TRANSPORTS.map(([name, title]) => (
              <option value={name} selected={name === settings.transport}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label class="row">
          <span>Beside the flows</span>
          <select name="beside" onChange={(event) => change(playground, "beside", event.currentTarget.value)}>
            {Object.entries(BESIDE).map(([name, { title }]) => (
              <option value={name} selected={name === settings.beside}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label class="row check">
          <input name="ecn" type="checkbox" checked={settings.ecn} onChange={(event) => change(playground, "ecn", event.currentTarget.checked)} />
          <span>ECN: packets are marked, not dropped</span>
        </label>
      </fieldset>
      )}
    </>
  );
}

const AQMS_MAX = 4;

export function AqmForm({ playground }: { playground: Playground }) {
  const { settings, entries } = playground;
  const set = (aqms: string[]) => void playground.begin_with({ aqms });
  return (
    <fieldset>
      <legend>AQMs</legend>
      <datalist id="aqms">
        {entries.map((entry) => (
          <option value={entry.name}>{entry.title}</option>
        ))}
      </datalist>
      {settings.aqms.map((spec, slot) => (
        <div class="aqm" key={slot}>
          <i class={`swatch s${slot}`} aria-hidden="true" />
          <input
            name={`aqm-${slot}`}
            list="aqms"
            value={spec}
            aria-label={`AQM ${slot + 1}`}
            title={entries.find((entry) => entry.name === spec.split(":")[0])?.summary ?? ""}
            onChange={(event) => {
              const value = event.currentTarget.value.trim();
              if (value) set(settings.aqms.map((other, i) => (i === slot ? value : other)));
            }}
          />
          <button aria-label={`Remove ${spec}`} disabled={settings.aqms.length === 1} onClick={() => set(settings.aqms.filter((_, i) => i !== slot))}>
            ×
          </button>
        </div>
      ))}
      {settings.aqms.length < AQMS_MAX && (
        <button onClick={() => set([...settings.aqms, "red"])}>Add an AQM</button>
      )}
    </fieldset>
  );
}
