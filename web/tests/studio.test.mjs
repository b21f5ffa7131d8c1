// `aqumen studio DIR`: its runs as points, and a chosen one repeated live with the bits of the native run.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
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
with studio.server(0, studio.read_results(Path(sys.argv[2]))) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
`;

let browser, studio, folder, url;
before(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "studio-")), "out");
  const line = ["-m", "aqumen", "compare", "arm-pfc/exp1", "--aqm", "pi,codel", "--seeds", "2", "--until", "4s", "--out", folder];
  execFileSync(PYTHON, line, { stdio: "ignore" });
  studio = spawn(PYTHON, ["-c", SERVE, PAGE, folder]);
  const port = await new Promise((resolve) => studio.stdout.once("data", (data) => resolve(String(data).trim())));
  url = `http://127.0.0.1:${port}/?results`;
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
  const again = `import json, sys, aqumen
run = aqumen.Session(sys.argv[1], aqm="codel", seed=2)
run.advance_to(4)
print(json.dumps(list(run.link().series()[1])))`;
  const native = JSON.parse(execFileSync(PYTHON, ["-c", again, join(folder, "scenario.toml")], { encoding: "utf8" }));
  assert.ok(native.length > 30);
  assert.deepEqual(queue, native);
  await page.locator(".studio select").first().selectOption("pi");
  assert.equal(await page.getByRole("button", { name: /^codel, seed/ }).count(), 0);
  assert.deepEqual(errors, []);
  await context.close();
});
