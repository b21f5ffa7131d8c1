// Frames of the page for its animation: `node web/tests/film.mjs FOLDER`. scripts/animation makes one picture of them.

import { mkdir } from "node:fs/promises";
import { launch, open, runTo, serve } from "./browser.mjs";

const [folder] = process.argv.slice(2);
const FRAMES = 60;
const STEP_S = 0.5;

await mkdir(folder, { recursive: true });
const [browser, server] = [await launch(), await serve()];
const { page, errors } = await open(browser, `${server.url}#aqm=droptail&aqm=pi&aqm=codel&flows=30`, { viewport: { width: 1000, height: 640 } });
for (let frame = 1; frame <= FRAMES; frame += 1) {
  // Half of the flows leave, and come back.
  if (frame === FRAMES / 3) await page.evaluate(() => window.playground.change("flows", 5));
  if (frame === (2 * FRAMES) / 3) await page.evaluate(() => window.playground.change("flows", 30));
  await runTo(page, frame * STEP_S);
  await page.screenshot({ path: `${folder}/${String(frame).padStart(3, "0")}.png` });
}
if (errors.length) throw new Error(errors.join("\n"));
await browser.close();
server.close();
