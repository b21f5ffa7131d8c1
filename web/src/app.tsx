// The page: bar, forms, charts.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Bar } from "./forms/bar";
import { AqmForm, NetworkForm } from "./forms/settings";
import { ShareForm, take } from "./forms/share";
import { OwnPanel } from "./forms/own";
import { StudioPanel } from "./forms/results";
import { LessonPanel } from "./forms/lesson";
import { Numbers, time } from "./forms/numbers";
import type { Playground } from "./playground";
import { SojournChart, TimeChart, type View, WindowChart } from "./views/charts";
import { LoopPanel } from "./views/loop";
import { PacketView } from "./views/packets";
import { Scatter } from "./views/scatter";

/** Draws `make`'s view into an element whenever the runs have gone on. */
function Drawn(props: { playground: Playground; name: string; remake: string; make: (place: HTMLElement) => View }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = props.make(place.current!);
    const draw = () => view.draw();
    props.playground.views.add(draw);
    draw();
    return () => {
      props.playground.views.delete(draw);
      view.close();
    };
  }, [props.remake]);
  return <div ref={place} class="place" role="img" aria-label={props.name} />;
}

function canvasIn(place: HTMLElement): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  place.replaceChildren(canvas);
  return canvas;
}

/** Time that the charts show, in units of the settings. */
const SPANS = [10, 30, 120, 600];

/** A part of the page that is made when it is opened. */
function Folded(props: { title: string; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="wide" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{props.title}</summary>
      {open && props.children}
    </details>
  );
}

export function App({ playground }: { playground: Playground }) {
  const [, redraw] = useState(0);
  useEffect(() => playground.listen(() => redraw((n) => n + 1)), []);
  const span = useRef(30);
  const { unit_s } = playground.settings;
  const span_s = () => span.current * playground.settings.unit_s;
  const slot = useRef(0);
  const aqms = `${playground.runs.map((run) => run.spec).join(" ")} ${playground.shown}`;
  const windowsOf = playground.runs[Math.min(slot.current, playground.runs.length - 1)]?.spec ?? "";
  return (
    <>
      <Bar playground={playground} />
      <p class="error" role="alert">
        {playground.error}
      </p>
      <main
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          const file = event.dataTransfer?.files[0];
          if (file) void take(playground, file);
        }}
      >
        <aside aria-label="Settings">
          <AqmForm playground={playground} />
          <NetworkForm playground={playground} />
          <ShareForm playground={playground} span_s={span_s} />
        </aside>
        <div class="charts">
          <LessonPanel playground={playground} />
          <StudioPanel playground={playground} />
          <Numbers playground={playground} />
          <section class="wide">
            <header>
              <h2>Queue</h2>
              <label>
                show the last{" "}
                <select onChange={(event) => ((span.current = Number(event.currentTarget.value)), redraw((n) => n + 1))}>
                  {SPANS.map((n) => (
                    <option value={n} selected={n === span.current}>
                      {n} {unit_s < 1 ? "ms" : "s"}
                    </option>
                  ))}
                </select>
              </label>
            </header>
            <Drawn playground={playground} remake={aqms} name="Packets in the queue over time, with the target"
              make={(place) => new TimeChart(place, playground, "queue", span_s)} />
          </section>
          <section class="wide">
            <h2>Marking or dropping probability</h2>
            <Drawn playground={playground} remake={aqms} name="Marking or dropping probability over time"
              make={(place) => new TimeChart(place, playground, "probability", span_s)} />
          </section>
          <Folded title="Packets in the queue">
            <section class="wide">
              <p class="soft">Each bar is a packet, coloured by its flow; a line below is a congestion mark. Packets leave at the right.</p>
              <Drawn playground={playground} remake={aqms} name="Packets in the queue of each AQM"
                make={(place) => new PacketView(canvasIn(place), playground)} />
            </section>
          </Folded>
          <section>
            <h2>Delay against throughput</h2>
            <Drawn playground={playground} remake={aqms} name={`Mean delay against throughput, a point for each ${unit_s < 1 ? "millisecond" : "second"}`}
              make={(place) => new Scatter(canvasIn(place), playground)} />
          </section>
          <section>
            <h2>Time in the queue since {time(playground.changed_s, unit_s)}</h2>
            <Drawn playground={playground} remake={aqms} name="Cumulative distribution of the sojourn times"
              make={(place) => new SojournChart(place, playground)} />
          </section>
          <section class="wide">
            <header>
              <h2>Congestion windows</h2>
              <label>
                of{" "}
                <select value={windowsOf} onChange={(event) => ((slot.current = event.currentTarget.selectedIndex), playground.views.forEach((draw) => draw()))}>
                  {playground.runs.map((run) => (
                    <option value={run.spec}>{run.spec}</option>
                  ))}
                </select>
              </label>
            </header>
            <Drawn playground={playground} remake={aqms} name="Congestion windows of eight flows over time, and the mean over all flows"
              make={(place) => new WindowChart(place, playground, () => slot.current, span_s)} />
          </section>
          <Folded title="Loop in theory: Bode, Nyquist, stability map">
            <LoopPanel playground={playground} />
          </Folded>
          <Folded title="Your own AQM in JavaScript">
            <OwnPanel playground={playground} />
          </Folded>
        </div>
      </main>
    </>
  );
}
