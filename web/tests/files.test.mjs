// Presets, links, and files out and in. An exported scenario must give the bits of the page in the native engine.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { full, launch, open, runTo, serve } from "./browser.mjs";

let browser, server;
before(async () => {
  [browser, server] = [await launch(), await serve()];
});
after(async () => {
  await browser?.close();
  server?.close();
});

/** Samples of each run: times, queues, probabilities. */
const samples = (page) =>
  page.evaluate(() => window.playground.runs.map(({ trace }) => [trace.t_s, trace.queue, trace.probability].map((column) => [...column.from(0)])));

/** Samples of the native engine for a scenario file. */
const NATIVE = `
import json, sys, aqumen
run = aqumen.Session(sys.argv[1], seed=int(sys.argv[2]))
run.advance_to(float(sys.argv[3]))
print(json.dumps([list(column) for column in run.link().series()]))
`;

function native(text, seed, until_s) {
  const file = join(mkdtempSync(join(tmpdir(), "playground-")), "scenario.toml");
  writeFileSync(file, text);
  const python = process.env.PLAYGROUND_PYTHON ?? "python3";
  return JSON.parse(execFileSync(python, ["-c", NATIVE, file, String(seed), String(until_s)], { encoding: "utf8", maxBuffer: 2 ** 28 }));
}

test("an exported scenario with all actions gives the same bits in the native engine", async () => {
  const { page, context } = await open(browser, `${server.url}#seed=7&aqm=pi&aqm=codel&aqm=red&aqm=fq-codel`);
  await runTo(page, 2.5);
  await page.evaluate(() => window.playground.change("flows", 35));
  await runTo(page, 4);
  await page.evaluate(() => window.playground.change("rate_mbit", 3));
  await page.evaluate(() => window.playground.change("target_pkts", 10));
  await runTo(page, 6);
  await page.evaluate(() => window.playground.change("flows", 5));
  await runTo(page, 8);
  assert.equal(await page.evaluate(() => window.playground.error), "");
  const runs = await samples(page);
  for (const [slot, run] of runs.entries()) {
    const text = await page.evaluate((slot) => window.playground.exported(window.playground.runs[slot]), slot);
    assert.deepEqual(native(text, 7, 8), run);
  }
  await context.close();
});

test("a downloaded scenario can be opened again, and repeats the run with its actions", async () => {
  const { page, context } = await open(browser, `${server.url}#aqm=pi`);
  await runTo(page, 2);
  await page.evaluate(() => window.playground.change("rate_mbit", 4));
  await runTo(page, 4);
  const [before] = await samples(page);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "pi.toml" }).click();
  await page.getByLabel("Open a scenario or a lesson").setInputFiles(await (await download).path().then(async (path) => {
    const named = `${path}.toml`;
    (await import("node:fs")).copyFileSync(path, named);
    return named;
  }));
  await page.waitForFunction(() => window.playground.file && window.playground.now_ns === 0);
  await runTo(page, 4);
  assert.deepEqual((await samples(page))[0], before);
  await context.close();
});

test("a broken file is refused in one line with its place, and the page goes on", async () => {
  const { page, errors, context } = await open(browser, server.url);
  await page.getByLabel("Open a scenario or a lesson").setInputFiles({ name: "broken.toml", mimeType: "text/plain", buffer: Buffer.from('name = "x"\nduration = "10"\n') });
  await page.getByRole("alert").filter({ hasText: "duration" }).waitFor();
  assert.ok(!(await page.getByRole("alert").innerText()).trim().includes("\n"));
  await page.getByLabel("Preset").selectOption("red");
  await page.waitForFunction(() => window.playground.error === "" && window.playground.settings.preset === "red");
  await runTo(page, 1);
  assert.deepEqual(errors, []);
  await context.close();
});

test("a link carries the settings, and a wrong one is refused", async () => {
  const { page, context } = await open(browser, `${server.url}#rate=4&flows=7&aqm=pie&aqm=red&seed=9&ecn=no`);
  const settings = await page.evaluate(() => window.playground.settings);
  assert.deepEqual([settings.rate_mbit, settings.flows, settings.aqms, settings.seed, settings.ecn], [4, 7, ["pie", "red"], 9, false]);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.waitForFunction(() => location.hash.length > 1);
  const second = await open(browser, page.url());
  assert.deepEqual(await second.page.evaluate(() => window.playground.settings), settings);
  await second.context.close();
  for (const [fragment, message] of [
    ["flows=many", "flows = many: must be a whole number from 1 to 200"],
    ["flows=2.5", "flows = 2.5: must be a whole number from 1 to 200"],
    ["floows=2", 'no key "floows"; choose from: preset, aqm,'],
    ["topology=ring", "topology = ring: choose from: dumbbell, parking-lot, home, port, cell"],
    ["ecn=maybe", "ecn = maybe: choose from: yes, no"],
    ["preset=home&rate=4", "rate: the network of the preset home is a file"],
    ["aqm=a,b,c,d,e", "5 AQMs: at most 4"],
  ]) {
    await page.evaluate((fragment) => (location.hash = fragment), fragment);
    await page.getByRole("alert").filter({ hasText: message }).waitFor();
  }
  await context.close();
});

test("AQMs behind one comma are several, in a link and in the form", async () => {
  const { page, context } = await open(browser, `${server.url}#aqm=pi,red:min_th=20pkt,max_th=60pkt,codel`);
  assert.deepEqual(await page.evaluate(() => window.playground.settings.aqms), ["pi", "red:min_th=20pkt,max_th=60pkt", "codel"]);
  await runTo(page, 1);
  assert.equal(await page.evaluate(() => window.playground.error), "");
  await page.getByLabel("AQM 3").fill("pie,droptail");
  await page.getByLabel("AQM 3").press("Enter");
  await page.waitForFunction(() => window.playground.settings.aqms.length === 4 && window.playground.ready);
  assert.deepEqual(await page.evaluate(() => window.playground.settings.aqms.slice(2)), ["pie", "droptail"]);
  await context.close();
});

test("what is refused cannot be played, and its message stays", async () => {
  const { page, context } = await open(browser, `${server.url}#aqm=nonsense`);
  await page.getByRole("alert").filter({ hasText: 'no AQM "nonsense"' }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Play" }).isDisabled());
  await runTo(page, 1);
  assert.match(await page.getByRole("alert").innerText(), /no AQM "nonsense"/);
  assert.equal(await page.evaluate(() => window.playground.now_ns), 0);
  await context.close();
});

test("embedded, the page shows charts without forms", async () => {
  const { page, context } = await open(browser, `${server.url}?embed#aqm=pi`);
  assert.equal(await page.getByLabel("AQM 1").isVisible(), false);
  assert.equal(await page.getByRole("button", { name: "Play" }).isVisible(), true);
  await context.close();
});

test("CSV, SVG and PNG hold what the charts show", async () => {
  const { page, context } = await open(browser, `${server.url}#aqm=pi&aqm=codel`);
  await runTo(page, 3);
  const { readFileSync } = await import("node:fs");
  const saved = async (name) => {
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name, exact: true }).click();
    return readFileSync(await (await download).path());
  };
  const rows = (await saved("CSV")).toString().trim().split("\n");
  assert.equal(rows[0], "t_s,pi queue_pkts,pi probability,codel queue_pkts,codel probability");
  assert.equal(rows.length, 150);
  const [[t, queue, probability]] = await samples(page);
  assert.deepEqual(rows[100].split(",").slice(0, 3).map(Number), [t[99], queue[99], probability[99]]);
  assert.match((await saved("SVG")).toString(), /^<svg .*<polyline/s);
  assert.deepEqual([...(await saved("PNG")).subarray(1, 4)], [...Buffer.from("PNG")]);
  await context.close();
});

const PRESETS = full
  ? ["home", "data-centre", "l4s", "cell", "red", "parking-lot", "load-step", "arm-pfc", "paqm", "aqm-mo", "aaqm", "self-tuning"]
  : ["home", "parking-lot"];

for (const preset of PRESETS) {
  test(`the preset ${preset} runs, and its sliders act`, async () => {
    const { page, errors, context } = await open(browser, `${server.url}#preset=${preset}`);
    const half_s = preset === "data-centre" ? 0.01 : 1;
    await runTo(page, half_s);
    for (const key of ["rate_mbit", "flows", "target_pkts"]) {
      const changed = await page.evaluate(async (key) => {
        const { settings } = window.playground;
        const fixed = key === "rate_mbit" && window.playground.medium;
        if (!fixed) await window.playground.change(key, Math.max(1, Math.floor(settings[key] / 2)));
        return window.playground.error;
      }, key);
      assert.equal(changed, "");
    }
    await runTo(page, 2 * half_s);
    assert.equal(await page.evaluate(() => window.playground.error), "");
    assert.ok(await page.evaluate(() => window.playground.runs.every((run) => run.trace.t_s.length > 10)));
    assert.deepEqual(errors, []);
    await context.close();
  });
}
