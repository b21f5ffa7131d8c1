// Table of numbers of each AQM over the last seconds.

import type { Playground } from "../playground";
import { quantile } from "../trace";

/** Time over which means are taken, in units of the settings. */
const OVER = 5;

/** A moment or a time of the run. */
export const time = (seconds: number, unit_s: number): string => (unit_s < 1 ? `${(seconds * 1e3).toFixed(2)} ms` : `${seconds.toFixed(1)} s`);

const rate = (bps: number) => (Number.isNaN(bps) ? "–" : bps < 1e9 ? `${(bps / 1e6).toPrecision(3)} Mbit/s` : `${(bps / 1e9).toPrecision(3)} Gbit/s`);

const ms = (seconds: number) => (Number.isNaN(seconds) ? "–" : `${(seconds * 1e3).toFixed(seconds < 1e-3 ? 3 : seconds < 0.1 ? 1 : 0)} ms`);

export function Numbers({ playground }: { playground: Playground }) {
  const { unit_s } = playground.settings;
  const since_s = playground.now_ns / 1e9 - OVER * unit_s;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Numbers">
      <table>
        <caption>
          Mean over the last {OVER} {unit_s < 1 ? "ms" : "s"}; 99th percentile since {time(playground.changed_s, unit_s)}
        </caption>
        <thead>
          <tr>
            <th scope="col">AQM</th>
            <th scope="col">queue</th>
            <th scope="col">delay</th>
            <th scope="col">99 % below</th>
            <th scope="col">throughput</th>
            <th scope="col">probability</th>
          </tr>
        </thead>
        <tbody>
          {playground.runs.map(({ spec, slot, trace }) => {
            const points = trace.points.slice(-OVER);
            const mean = (value: (point: (typeof points)[0]) => number) =>
              points.length ? points.reduce((sum, point) => sum + value(point), 0) / points.length : NaN;
            const throughput = mean((point) => point.throughput_bps);
            const queue = trace.mean(trace.queue, since_s);
            const probability = trace.mean(trace.probability, since_s);
            return (
              <tr key={slot}>
                <th scope="row">
                  <i class={`swatch s${slot}`} aria-hidden="true" /> {spec}
                </th>
                <td>{Number.isNaN(queue) ? "–" : `${queue.toFixed(1)} pkt`}</td>
                <td>{ms(mean((point) => point.delay_s))}</td>
                <td>{ms(quantile(trace.sojourns, 0.99))}</td>
                <td>{rate(throughput)}</td>
                <td>{Number.isNaN(probability) ? "–" : probability.toPrecision(2)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
