// `aqumen studio DIR`: its runs as points, and a chosen one repeated live with the bits of the native run.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, runTo } from "./browser.mjs";

const PYTHON = process.env.PLAYGROUND_PYTHON ?? "python3";
const PAGE = new URL("../test-dist/", import.meta.url).pathname;
const SERVE = `
import sys
from pathlib import Path
from aqumen import studio
studio.page_folder = lambda: Path(sys.argv[1])
with studio.server(0, *studio.open_folder(Path(sys.argv[2]))) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
`;

/** Serves a folder; returns the process and the address of the page with its runs. */
async function serve(folder) {
  const process = spawn(PYTHON, ["-c", SERVE, PAGE, folder]);
  const port = await new Promise((resolve) => process.stdout.once("data", (data) => resolve(String(data).trim())));
  return { process, url: `http://127.0.0.1:${port}/?results` };
}

/** Queue of the native engine at 4 s, sample by sample. */
function nativeQueue(scenario, aqm, seed) {
  const again = `import json, sys, aqumen
run = aqumen.Session(sys.argv[1], aqm=sys.argv[2], seed=int(sys.argv[3]))
run.advance_to(4)
print(json.dumps(list(run.link().series()[1])))`;
  return JSON.parse(execFileSync(PYTHON, ["-c", again, scenario, aqm, String(seed)], { encoding: "utf8" }));
}

let browser, studio, folder, url;
before(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "studio-")), "out");
  const line = ["-m", "aqumen", "compare", "arm-pfc/exp1", "--aqm", "pi,codel", "--seeds", "2", "--until", "4s", "--out", folder];
  execFileSync(PYTHON, line, { stdio: "ignore" });
  ({ process: studio, url } = await serve(folder));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  studio?.kill();
});

test("the runs are points; a chosen one is repeated live with the bits of the comparison", async () => {
  const { page, errors, context } = await open(browser, url);
  await page.getByRole("button", { name: /seed/ }).first().waitFor();
  assert.equal(await page.getByRole("button", { name: /^codel, seed/ }).count(), 2);
  await page.getByRole("button", { name: /^codel, seed 2/ }).press("Enter");
  await page.waitForFunction(() => window.playground.settings.seed === 2 && window.playground.runs.length === 1);
  await page.evaluate(() => window.playground.play(false));
  await runTo(page, 4);
  const queue = await page.evaluate(() => [...window.playground.runs[0].trace.queue.from(0)]);
  const native = nativeQueue(join(folder, "scenario.toml"), "codel", 2);
  assert.ok(native.length > 30);
  assert.deepEqual(queue, native);
  await page.locator(".studio select").first().selectOption("pi");
  assert.equal(await page.getByRole("button", { name: /^codel, seed/ }).count(), 0);
  assert.deepEqual(errors, []);
  await context.close();
});

test("a study: filtered by a factor, brushed, and a clicked point repeated live with its scenario, AQM and seed", async () => {
  const work = mkdtempSync(join(tmpdir(), "study-"));
  const study = 'title = "rates"\nscenarios = ["arm-pfc/exp1"]\naqms = ["pi", "codel"]\nuntil = "4s"\nseeds = 2\n[factors]\n"bottleneck.rate" = ["8Mbit", "4Mbit"]\n';
  writeFileSync(join(work, "study.toml"), study);
  execFileSync(PYTHON, ["-m", "aqumen", "study", "run", join(work, "study.toml"), "--out", join(work, "out")], { stdio: "ignore" });
  const { process, url } = await serve(join(work, "out"));
  try {
    const { page, errors, context } = await open(browser, url);
    await page.getByText("8 of 8 runs").waitFor();
    assert.match(await page.locator(".studio .legend").innerText(), /pi\s+codel/);
    assert.match(await page.locator(".studio thead").innerText(), /bottleneck\.rate/);
    await page.addScriptTag({ path: new URL("../../python/tests/vendor/axe.min.js", import.meta.url).pathname });
    assert.deepEqual(await page.evaluate(async () => (await axe.run(document.querySelector(".studio"))).violations.map((rule) => [rule.id, rule.nodes[0].html])), []);
    await page.getByLabel("bottleneck.rate").selectOption("4Mbit");
    await page.getByText("4 of 8 runs").waitFor();
    const canvas = page.locator(".studio canvas");
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + 2, box.y + 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, box.y + box.height - 2);
    await page.mouse.up();
    await page.getByRole("button", { name: "Choose all" }).click();
    // The right-most point of a chart is 20 px from its edge.
    await page.locator(".studio select").first().selectOption("codel");
    await page.getByText("2 of 8 runs").waitFor();
    const seed = await page.evaluate(async () => {
      const { runs } = await (await fetch("studio.json")).json();
      const here = runs.filter((run) => run.aqm === "codel" && run.labels["bottleneck.rate"] === "4Mbit");
      return here.reduce((best, run) => (run.metrics.sojourn_p99_s > best.metrics.sojourn_p99_s ? run : best)).seed;
    });
    const values = await page.locator(".studio tbody tr", { hasText: `seed ${seed}` }).innerText();
    assert.match(values, /4Mbit/);
    await page.getByRole("button", { name: `codel, seed ${seed}` }).click();
    await page.waitForFunction((seed) => window.playground.settings.seed === seed && window.playground.runs.length === 1 && window.playground.end_ns === 4e9, seed);
    await page.evaluate(() => window.playground.play(false));
    assert.equal(await page.evaluate(() => window.playground.rate0_mbit), 4);
    await runTo(page, 4);
    const queue = await page.evaluate(() => [...window.playground.runs[0].trace.queue.from(0)]);
    const text = join(work, "case.toml");
    writeFileSync(text, await page.evaluate(() => window.playground.text()));
    assert.deepEqual(queue, nativeQueue(text, "codel", seed));
    // A click on the canvas finds the point below it.
    await page.evaluate(() => (window.playground.settings = { ...window.playground.settings, seed: 0 }));
    const y = await page.evaluate(async (seed) => {
      const { runs } = await (await fetch("studio.json")).json();
      const here = runs.filter((run) => run.aqm === "codel" && run.labels["bottleneck.rate"] === "4Mbit").map((run) => [run.seed, run.metrics.utilization]);
      const most = Math.max(...here.map(([, value]) => value));
      return here.find(([number]) => number === seed)[1] === most ? "top" : "bottom";
    }, seed);
    const now = await canvas.boundingBox();
    await page.mouse.click(now.x + now.width - 20, now.y + (y === "top" ? 12 : 260 - 44));
    await page.waitForFunction((seed) => window.playground.settings.seed === seed, seed);
    assert.deepEqual(errors, []);
    await context.close();
  } finally {
    process.kill();
  }
});
