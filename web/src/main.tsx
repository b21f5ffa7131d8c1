import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { Playground } from "./playground";
import { fromFragment } from "./link";
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
/** Begins with the settings of the address. */
async function begin(): Promise<void> {
  try {
    const { preset, settings } = fromFragment(location.hash);
    await playground.preset(preset, settings);
  } catch (error) {
    await playground.preset(DEFAULTS.preset);
    playground.refused(error);
  }
  if (!still && !playground.error) playground.play(true);
}

if (new URLSearchParams(location.search).has("embed")) document.documentElement.classList.add("embed");
addEventListener("hashchange", () => void begin());
void begin();
