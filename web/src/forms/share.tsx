// Out and in: scenario files, samples, pictures, a link, a file.

import { useState } from "preact/hooks";
import { csv, download, fileName, png, svg } from "../files";
import { toFragment } from "../link";
import type { Playground } from "../playground";

/** Most bytes of a file that is read: those of a scenario. */
const FILE_BYTES_MAX = 16 * 2 ** 20;

/** Loads a scenario file or, as Markdown, a lesson. */
export async function take(playground: Playground, file: File): Promise<void> {
  if (file.size > FILE_BYTES_MAX) {
    playground.refused(new Error(`${file.name}: ${file.size} bytes; at most 16 MiB`));
    return;
  }
  if (file.name.endsWith(".md")) await playground.teach(await file.text());
  else await playground.open({ name: file.name, text: await file.text() });
}

export function ShareForm({ playground, span_s }: { playground: Playground; span_s: () => number }) {
  const [copied, setCopied] = useState("");
  const address = () => {
    const url = new URL(location.href);
    url.hash = toFragment(playground.settings);
    return url.href;
  };
  return (
    <fieldset>
      <legend>Out and in</legend>
      <p class="soft">Scenario with all changes as events, for aqumen run --seed {playground.settings.seed}:</p>
      <div class="buttons">
        {playground.active().map((run) => (
          <button key={run.slot} onClick={async () => download(`${fileName(run.spec)}.toml`, await playground.exported(run))}>
            {run.spec.split(":")[0]}.toml
          </button>
        ))}
      </div>
      <div class="buttons">
        <button onClick={() => download("samples.csv", csv(playground), "text/csv")}>CSV</button>
        <button onClick={() => download("queue.svg", svg(playground, span_s()), "image/svg+xml")}>SVG</button>
        <button onClick={async () => download("playground.png", await png())}>PNG</button>
        <button
          onClick={async () => {
            history.replaceState(null, "", address());
            await navigator.clipboard?.writeText(address()).catch(() => undefined);
            setCopied("The link is copied, and is the address of the page.");
          }}
        >
          Copy link
        </button>
      </div>
      <p class="soft" role="status">
        {copied}
      </p>
      <label class="row">
        <span>Open a scenario or a lesson</span>
        <input
          name="file"
          type="file"
          accept=".toml,.md"
          onChange={async (event) => {
            const input = event.currentTarget;
            if (input.files?.[0]) await take(playground, input.files[0]);
            input.value = "";
          }}
        />
      </label>
    </fieldset>
  );
}
