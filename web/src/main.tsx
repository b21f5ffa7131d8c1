import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { Playground } from "./playground";
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
void playground.reset().then(() => {
  if (!still && !playground.error) playground.play(true);
});
