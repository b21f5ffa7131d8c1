// Forms of the AQMs and of the network. Sliders of what an event can change act while the runs go on; the others begin anew.

import { type LiveKey, LIVE_KEYS, type Playground } from "../playground";
import { specList } from "../catalogue";
import { AQMS_MAX } from "../link";
import { BESIDE, TRANSPORTS } from "../scenario";
import { type Settings, packetBytes } from "../settings";
import { type SliderKey, TOPOLOGIES, type TopologyName, VALUES } from "../topologies";

/** A slider whose positions are the values of a list. */
interface Slider {
  key: SliderKey;
  label: string;
  unit: string;
}

const SLIDERS: Slider[] = [
  { key: "flows", label: "Flows", unit: "" },
  { key: "rate_mbit", label: "Rate", unit: "Mbit/s" },
  { key: "target_pkts", label: "Target", unit: "packets" },
  { key: "down_mbit", label: "Rate of downloads", unit: "Mbit/s" },
  { key: "cqi", label: "Channel quality", unit: "of 15" },
  { key: "share", label: "Share of the cell", unit: "%" },
  { key: "rtt_min_ms", label: "Shortest round trip", unit: "ms" },
  { key: "rtt_max_ms", label: "Longest round trip", unit: "ms" },
  { key: "buffer_pkts", label: "Buffer", unit: "packets" },
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

/** Factors of the rate of a file's link that its slider offers. */
const RATE_FACTORS = [0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3];

/** Values of a slider: those that the scenario can have, and the present one; none without a slider. */
function positions({ settings, groups, medium, rate0_mbit }: Playground, key: SliderKey): number[] {
  const { topology } = settings;
  const file = topology === "file";
  const live = (LIVE_KEYS as readonly string[]).includes(key);
  let values = (file ? undefined : TOPOLOGIES[topology].values[key]) ?? VALUES[key];
  if (file && key === "rate_mbit") values = RATE_FACTORS.map((x) => +(x * rate0_mbit).toPrecision(3));
  if ((file && !live) || (medium && key === "rate_mbit") || !values.length) return [];
  const most = key === "flows" ? (groups.find((group) => group.name === settings.group)?.count ?? settings.flows) : Infinity;
  return [...new Set([...values.filter((other) => other <= most), settings[key]])].sort((a, b) => a - b);
}

function note(key: keyof Settings, settings: Settings): string {
  if (key !== "target_pkts" && key !== "buffer_pkts") return "";
  const ms = (settings[key] * packetBytes(settings.transport) * 8) / (settings.rate_mbit * 1e3);
  return ` = ${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

function SliderRow({ playground, slider }: { playground: Playground; slider: Slider }) {
  const { key, label, unit } = slider;
  const values = positions(playground, key);
  const value = playground.settings[key];
  if (!values.length) return null;
  const live = (LIVE_KEYS as readonly string[]).includes(key);
  const shown = +value.toPrecision(4);
  const text = key === "target_pkts" && value === 0 ? "none" : `${shown} ${unit}${note(key, playground.settings)}`;
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

/** A list of values, of which one is chosen. */
function Choice(props: { label: string; name: string; value: string; values: [string, string][]; set: (value: string) => void }) {
  return (
    <label class="stack">
      <span>{props.label}</span>
      <select name={props.name} onChange={(event) => props.set(event.currentTarget.value)}>
        {props.values.map(([value, title]) => (
          <option value={value} selected={value === props.value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

export function NetworkForm({ playground }: { playground: Playground }) {
  const { settings, file, links } = playground;
  const rows = (live: boolean) =>
    SLIDERS.filter(({ key }) => (LIVE_KEYS as readonly string[]).includes(key) === live).map((slider) => (
      <SliderRow key={slider.key} playground={playground} slider={slider} />
    ));
  const topologies = Object.entries(TOPOLOGIES).map(([name, { title }]): [string, string] => [name, title]);
  return (
    <>
      <fieldset>
        <legend>While it runs</legend>
        {links.length > 1 && (
          <Choice label="Link" name="link" value={playground.shown} values={links.map((link) => [link, link])} set={(link) => void playground.show(link)} />
        )}
        {rows(true)}
        {playground.medium && <p class="soft">The medium decides the rate: {+settings.rate_mbit.toPrecision(3)} Mbit/s in the mean.</p>}
      </fieldset>
      <fieldset>
        <legend>From the start</legend>
        <Choice
          label="Topology"
          name="topology"
          value={settings.topology}
          values={file ? [["file", "that of a file"], ...topologies] : topologies}
          set={(topology) => void playground.topology(topology as TopologyName)}
        />
        {file ? (
          <p class="soft">
            The network is that of the file: <em>{file.name}</em>. The flows are those of the group {settings.group}.
          </p>
        ) : (
          <>
            {rows(false)}
            <Choice label="Transport" name="transport" value={settings.transport} values={Object.entries(TRANSPORTS)} set={(value) => change(playground, "transport", value)} />
            <Choice
              label="Beside the flows"
              name="beside"
              value={settings.beside}
              values={Object.entries(BESIDE).map(([name, { title }]) => [name, title])}
              set={(value) => change(playground, "beside", value)}
            />
            <label class="row check">
              <input name="ecn" type="checkbox" checked={settings.ecn} onChange={(event) => change(playground, "ecn", event.currentTarget.checked)} />
              <span>ECN: packets are marked, not dropped</span>
            </label>
          </>
        )}
      </fieldset>
    </>
  );
}

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
              const aqms = settings.aqms.flatMap((other, i) => (i === slot ? specList([event.currentTarget.value]) : [other]));
              if (aqms.length > AQMS_MAX) playground.refused(new Error(`${aqms.length} AQMs: at most ${AQMS_MAX}`));
              else if (aqms.length < settings.aqms.length) event.currentTarget.value = spec;
              else set(aqms);
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
