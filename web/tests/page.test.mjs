// The page in a real browser: runs, sliders, four AQMs on one traffic.

import assert from "node:assert/strict";
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

const queues = (page) => page.evaluate(() => window.playground.runs.map((run) => [...run.trace.queue.from(0)]));

test("the page loads, and plays four AQMs until it is paused", async () => {
  const { page, errors, context } = await open(browser, server.url, { reducedMotion: "no-preference" });
  await page.waitForFunction(() => window.playground.now_ns > 3e8);
  await page.getByRole("button", { name: "Pause" }).click();
  assert.equal(await page.locator("tbody tr").count(), 4);
  const at = await page.evaluate(() => window.playground.step(0).then(() => window.playground.now_ns));
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => window.playground.now_ns), at);
  assert.deepEqual(errors, []);
  await context.close();
});

test("with reduced motion the page waits, and the step button runs 20 ms", async () => {
  const { page, context } = await open(browser, server.url);
  assert.equal(await page.evaluate(() => window.playground.playing), false);
  await page.getByRole("button", { name: "Step" }).click();
  await page.waitForFunction(() => window.playground.now_ns === 20e6);
  await context.close();
});

test("two columns with one AQM have equal runs: traffic and seed are shared", async () => {
  const { page, context } = await open(browser, server.url);
  await page.evaluate(() => {
    window.playground.settings = { ...window.playground.settings, aqms: ["pi", "pi", "codel"] };
    return window.playground.reset();
  });
  await runTo(page, 4);
  const [first, second, third] = await queues(page);
  assert.equal(first.length, 199);
  assert.deepEqual(first, second);
  assert.notDeepEqual(first, third);
  await context.close();
});

test("a reset repeats the run, another seed gives another one", async () => {
  const { page, context } = await open(browser, server.url);
  await runTo(page, 3);
  const first = await queues(page);
  await page.getByRole("button", { name: "Reset" }).click();
  await runTo(page, 3);
  assert.deepEqual(await queues(page), first);
  await page.getByLabel("Seed").fill("2");
  await page.getByLabel("Seed").press("Enter");
  await page.waitForFunction(() => window.playground.settings.seed === 2);
  await runTo(page, 3);
  assert.notDeepEqual(await queues(page), first);
  await context.close();
});

for (const [name, key, event] of [
  ["Flows", "ArrowRight", /resume = "flows"/],
  ["Flows", "ArrowLeft", /stop = "flows"\ncount = 5/],
  ["Rate", "ArrowLeft", /capacity = "6Mbit"/],
  ["Target", "ArrowRight", /target = "40pkt"/],
]) {
  test(`the slider ${name} (${key}) acts while the run goes on, as an event`, async () => {
    const { page, errors, context } = await open(browser, server.url);
    await runTo(page, 2);
    await page.getByRole("slider", { name }).press(key);
    await page.waitForFunction(() => window.playground.changed_s === 2);
    await runTo(page, 3);
    assert.equal(await page.evaluate(() => window.playground.error), "");
    const text = await page.evaluate(() => window.playground.exported(window.playground.runs[1]));
    assert.match(text, event);
    assert.match(text, /aqm = "pi"/);
    assert.deepEqual(errors, []);
    await context.close();
  });
}

test("a slider of the network's shape begins anew", async () => {
  const { page, context } = await open(browser, server.url);
  await runTo(page, 2);
  await page.getByRole("slider", { name: "Buffer" }).press("ArrowRight");
  await page.waitForFunction(() => window.playground.now_ns === 0 && window.playground.settings.buffer_pkts === 300);
  await context.close();
});

test("traffic beside the flows is chosen in the form and kept in the link", async () => {
  const { page, errors, context } = await open(browser, server.url);
  for (const [beside, kind] of [["web", /traffic = "web"/], ["short", /kind = "transfers"[^}]*load = "2400kbit"/], ["calls", /traffic = "voip"/], ["film", /"video"[\s\S]*"2Mbit"/]]) {
    await page.getByLabel("Beside the flows").selectOption(beside);
    await page.waitForFunction((beside) => window.playground.now_ns === 0 && window.playground.settings.beside === beside && window.playground.end_ns > 0, beside);
    await runTo(page, 2);
    assert.equal(await page.evaluate(() => window.playground.error), "");
    assert.match(await page.evaluate(() => window.playground.exported(window.playground.runs[0])), kind);
  }
  const { page: other } = await open(browser, `${server.url}#beside=film`);
  assert.equal(await other.evaluate(() => window.playground.settings.beside), "film");
  assert.deepEqual(errors, []);
  await context.close();
});

for (const [topology, unit_s, sliders] of [
  ["home", 1, ["Rate", "Rate of downloads"]],
  ["port", 0.001, ["Rate"]],
  ["cell", 1, ["Channel quality", "Share of the cell"]],
]) {
  test(`the topology ${topology} is chosen in the form, its sliders act, and its link opens it again`, async () => {
    const { page, errors, context } = await open(browser, `${server.url}#aqm=droptail,codel&seed=4`);
    await page.getByLabel("Topology").selectOption(topology);
    await page.waitForFunction((topology) => window.playground.ready && window.playground.settings.topology === topology, topology);
    assert.deepEqual(await page.evaluate(() => [window.playground.settings.aqms, window.playground.settings.seed]), [["droptail", "codel"], 4]);
    await runTo(page, 2 * unit_s);
    for (const name of ["Flows", "Target"]) await page.getByRole("slider", { name }).press("ArrowRight");
    await page.waitForFunction((now_s) => window.playground.changed_s === now_s, 2 * unit_s);
    await runTo(page, 4 * unit_s);
    assert.ok(await page.evaluate(() => window.playground.runs.every(({ trace }) => trace.queue.from(0).some((queue) => queue > 0) && trace.points.length >= 1)));
    for (const name of sliders) await page.getByRole("slider", { name, exact: true }).press("ArrowRight");
    assert.equal(await page.getByRole("slider", { name: "Rate", exact: true }).count(), sliders.includes("Rate") ? 1 : 0);
    await page.getByRole("button", { name: "Copy link" }).click();
    const settings = await page.evaluate(() => window.playground.settings);
    const second = await open(browser, page.url());
    assert.deepEqual(await second.page.evaluate(() => window.playground.settings), settings);
    await second.context.close();
    assert.equal(await page.evaluate(() => window.playground.error), "");
    assert.deepEqual(errors, []);
    await context.close();
  });
}

test("from a preset that is a file, a topology of the form leads back to the forms", async () => {
  const { page, context } = await open(browser, `${server.url}#preset=cell`);
  assert.equal(await page.getByRole("slider", { name: "Buffer" }).count(), 0);
  await page.getByLabel("Topology").selectOption("parking-lot");
  await page.waitForFunction(() => window.playground.ready && !window.playground.file && window.playground.links.length === 3);
  assert.equal(await page.getByRole("slider", { name: "Buffer" }).count(), 1);
  await context.close();
});

test("a wrong seed is refused in one line, and an emptied AQM comes back", async () => {
  const { page, context } = await open(browser, server.url);
  await page.getByLabel("Seed").fill("-1");
  await page.getByLabel("Seed").press("Enter");
  await page.getByRole("alert").filter({ hasText: "seed = -1: must be a whole number from 0 to 4294967295" }).waitFor();
  assert.equal(await page.evaluate(() => window.playground.settings.seed), 1);
  await page.getByLabel("AQM 2").fill("");
  await page.getByLabel("AQM 2").blur();
  assert.equal(await page.getByLabel("AQM 2").inputValue(), "pi");
  await context.close();
});

test("an AQM that does not exist is refused in one line, and the next choice works", async () => {
  const { page, context } = await open(browser, server.url);
  await page.getByLabel("AQM 2").fill("nonsense");
  await page.getByLabel("AQM 2").press("Enter");
  await page.getByRole("alert").filter({ hasText: "nonsense" }).waitFor();
  await page.getByLabel("AQM 2").fill("pie:target=20ms");
  await page.getByLabel("AQM 2").press("Enter");
  await page.waitForFunction(() => window.playground.error === "");
  await runTo(page, 1);
  assert.equal(await page.evaluate(() => window.playground.now_ns), 1e9);
  await context.close();
});

const LOOKS = [[1280, "light", ""], [400, "dark", "#lesson=red"]];
if (full) LOOKS.push([1280, "dark", "#lesson=red"], [400, "light", "#topology=cell"]);
for (const [width, colorScheme, fragment] of LOOKS) {
  test(`at ${width} px, ${colorScheme}, axe finds nothing and nothing is wider than the window`, async () => {
    const { page, context } = await open(browser, server.url + fragment, { viewport: { width, height: 900 }, colorScheme });
    await runTo(page, 2);
    for (const summary of await page.locator("summary").all()) await summary.click();
    await page.getByLabel("Code of the law").waitFor();
    await page.addScriptTag({ path: new URL("../../python/tests/vendor/axe.min.js", import.meta.url).pathname });
    const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
    const found = await page.evaluate(async (runOnly) => (await axe.run(document, { runOnly })).violations.map((rule) => [rule.id, rule.nodes[0].html]), rules);
    assert.deepEqual(found, []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
    await context.close();
  });
}
