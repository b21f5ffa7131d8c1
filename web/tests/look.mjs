// Pictures of the page at the widths and schemes that count: `node web/tests/look.mjs FOLDER [FRAGMENT] [SECONDS]`.

import { mkdir } from "node:fs/promises";
import { launch, open, runTo, serve } from "./browser.mjs";

const [folder, fragment = "", seconds = "20"] = process.argv.slice(2);
await mkdir(folder, { recursive: true });
const [browser, server] = [await launch(), await serve()];
for (const width of [1280, 400]) {
  for (const colorScheme of ["light", "dark"]) {
    const { page, errors } = await open(browser, server.url + fragment, { viewport: { width, height: 900 }, colorScheme });
    for (let t = 1; t <= Number(seconds) * 4; t += 1) await runTo(page, t / 4);
    await page.screenshot({ path: `${folder}/${width}-${colorScheme}.png`, fullPage: true });
    if (errors.length) console.log(errors);
  }
}
await browser.close();
server.close();
