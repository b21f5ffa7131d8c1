// Figures of the built page: bytes in brotli, time to the first picture, frames a second, dropped frames and CPU time of a frame
// at 100 flows with software rendering. `node web/tests/measure.mjs` after `make playground`, on an idle machine.

import { readFileSync, readdirSync } from "node:fs";
import { brotliCompressSync } from "node:zlib";
import { launch, open, serve } from "./browser.mjs";

const DIST = new URL("../dist/", import.meta.url).pathname;
const PLAY_S = 10;

/** Bytes of files in brotli, kB. */
function brotli_kB(files) {
  return files.reduce((sum, file) => sum + brotliCompressSync(readFileSync(DIST + file)).length, 0) / 1000;
}

const assets = readdirSync(`${DIST}assets`).map((name) => `assets/${name}`);
const theory = assets.filter((name) => name.includes("theory"));
const editor = assets.filter((name) => name.includes("editor"));
const first = ["index.html", ...assets.filter((name) => /\/(index|aqumen_web_bg)/.test(name))];
for (const [name, files] of Object.entries({ "first visit": first, theory, editor })) console.log(`${name}: ${brotli_kB(files).toFixed(0)} kB in brotli`);

const [browser, server] = [await launch(), await serve(DIST)];
const { page } = await open(browser, `${server.url}#flows=100`, { reducedMotion: "no-preference" });
await page.waitForFunction(() => window.playground.now_ns > 0);
const { painted, samples } = await page.evaluate(() => ({ painted: performance.getEntriesByName("first-contentful-paint")[0].startTime, samples: performance.now() }));
console.log(`first picture: ${painted.toFixed(0)} ms; first samples before ${samples.toFixed(0)} ms`);

await page.waitForTimeout(2000);
await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline.frame", "devtools.timeline.frame"] });
await page.waitForTimeout(PLAY_S * 1000);
const { traceEvents } = JSON.parse(await browser.stopTracing());
const count = (name) => traceEvents.filter((event) => event.name === name).length;
console.log(`100 flows, four AQMs: ${(count("DrawFrame") / PLAY_S).toFixed(1)} frames/s drawn, ${count("DroppedFrame")} of ${count("BeginFrame")} dropped in ${PLAY_S} s`);
/** CPU time of the tasks of threads whose names begin so, for each frame drawn, milliseconds. */
function cpu_ms(names) {
  const threads = traceEvents.filter((event) => event.name === "thread_name" && names.some((name) => event.args.name.startsWith(name))).map(({ pid, tid }) => `${pid} ${tid}`);
  const tasks = traceEvents.filter((event) => event.name.endsWith("RunTask") && event.tdur && threads.includes(`${event.pid} ${event.tid}`));
  return tasks.reduce((sum, task) => sum + task.tdur, 0) / 1e3 / count("DrawFrame");
}

for (const name of ["CrRendererMain", "Compositor", "CompositorTileWorker", "VizCompositorThread", "DedicatedWorker thread"]) console.log(`CPU of ${name}: ${cpu_ms([name]).toFixed(2)} ms a frame`);
await browser.close();
server.close();
