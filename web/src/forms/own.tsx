// The user's own AQM: an editor, and the law as `own` among the AQMs.

import { useEffect, useRef, useState } from "preact/hooks";
import { download } from "../files";
import { AQMS_MAX } from "../link";
import { type Playground, isOwn } from "../playground";
import { asPython } from "../python";
import type { Editor } from "./editor";

export const TEMPLATE = `// A control law: step(seen) returns the probability until the next step.
// seen: now_s, interval_s, queue_pkts, queue_bytes, arrivals_pkts, accepted_pkts,
// departures_pkts, departures_bytes, busy_s, idle_s, sojourn_s, probability.
class Law {
  period = 0.01; // seconds between two steps

  // network: capacity_pps, flows, base_rtt_s, target_pkts
  constructor(network) {
    this.target = network.target_pkts;
    this.p = 0;
    this.before = 0;
  }

  step(seen) {
    const error = seen.queue_pkts - this.target;
    this.p += 0.0005 * error - 0.00049 * this.before;
    this.p = Math.min(Math.max(this.p, 0), 1);
    this.before = error;
    return this.p;
  }
}
`;

export function OwnPanel({ playground }: { playground: Playground }) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const code = useRef(playground.law || TEMPLATE);
  const [copied, setCopied] = useState("");
  useEffect(() => {
    let open = true;
    void import("./editor").then(({ Editor }) => {
      if (open) editor.current = new Editor(place.current!, code.current, (text) => ((code.current = text), editor.current?.mark(null)));
    });
    return () => {
      open = false;
      editor.current?.close();
    };
  }, []);
  const run = playground.runs.find((run) => isOwn(run.spec));
  const error = run?.failed ?? "";
  useEffect(() => {
    const line = /line (\d+)/.exec(error);
    editor.current?.mark(line ? Number(line[1]) : error ? editor.current.syntaxError() : null);
  }, [error]);
  const start = async () => {
    playground.law = code.current;
    const { aqms } = playground.settings;
    const others = aqms.some(isOwn) ? aqms : [...aqms.slice(0, AQMS_MAX - 1), "own"];
    await playground.begin_with({ aqms: others });
    if (!playground.error) playground.play(true);
  };
  return (
    <section class="wide">
      <h2>Your own AQM</h2>
      <div ref={place} class="editor" />
      <p class="error" role="status" data-testid="own-error">
        {error}
      </p>
      <div class="buttons">
        <button class="main" onClick={() => void start()}>
          Run it beside the others
        </button>
        <button
          onClick={async () => {
            const text = asPython(code.current);
            const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
            if (!done) download("law.py", text);
            setCopied(done ? "Copied: a class for aqumen run --aqm-from law.py:Own" : "Saved as law.py");
          }}
        >
          Copy as Python
        </button>
      </div>
      <p class="soft" role="status">
        {copied}
      </p>
    </section>
  );
}
