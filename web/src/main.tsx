import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { Playground } from "./playground";
import { fromFragment } from "./link";
import { LESSONS } from "./lessons";
import { DEFAULTS } from "./settings";

declare global {
  interface Window {
    /** For tests and for the curious: the runs behind the page. */
    playground: Playground;
  }
}

const playground = new Playground(DEFAULTS);
window.playground = playground;
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
render(<App playground={playground} />, document.getElementById("app")!);
/** Text of the lesson that a fragment names or holds. */
function lessonOf(parts: URLSearchParams): string | null {
  const name = parts.get("lesson");
  if (name === null) return parts.get("lesson-text");
  const known = LESSONS.find((lesson) => lesson.name === name);
  if (!known) throw new Error(`link: no lesson "${name}"; choose from: ${LESSONS.map((lesson) => lesson.name).join(", ")}`);
  return known.text;
}

/** Begins with the settings of the address. */
async function begin(): Promise<void> {
  try {
    const lesson = lessonOf(new URLSearchParams(location.hash.slice(1)));
    const { preset, settings } = fromFragment(location.hash);
    await (lesson ? playground.teach(lesson) : playground.preset(preset, settings));
  } catch (error) {
    await playground.preset(DEFAULTS.preset);
    playground.refused(error);
  }
  if (!still && !playground.error) playground.play(true);
}

if (new URLSearchParams(location.search).has("embed")) document.documentElement.classList.add("embed");
addEventListener("hashchange", () => void begin());
void begin();

// The page of one file needs no service worker, and a page of `vite` has none.
if (import.meta.env.PROD && import.meta.env.MODE !== "single" && "serviceWorker" in navigator)
  void navigator.serviceWorker.register("service-worker.js").catch(() => undefined);
