// Lessons: each is done by its solution and not before it; lecturers' own come from a link or a file; a broken one is refused.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
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

/** Solution of each step: what is changed before it, then the seconds to run. */
const begin = (settings) => [(playground, settings) => playground.begin_with(settings), settings];
const change = (key, value) => [(playground, [key, value]) => playground.change(key, value), [key, value]];
const look = [() => undefined, null];
const RED = "red:min_th=50pkt,max_th=150pkt";
const SOLUTIONS = {
  bufferbloat: [[look, 40], [begin({ aqms: ["codel"] }), 40]],
  buffer: [[look, 60], [begin({ buffer_pkts: 70 }), 60], [begin({ buffer_pkts: 100, rate_mbit: 40, flows: 20 }), 40]],
  red: [[look, 60], [begin({ aqms: [`${RED},max_p=0.5,weight=0.002`] }), 60], [begin({ aqms: [`${RED},max_p=0.5,weight=0.00002`] }), 60]],
  "codel-slow": [[look, 90], [begin({ aqms: ["codel:target=200ms,interval=2s"] }), 90]],
  "few-flows": [[look, 40], [change("flows", 5), 60], [begin({}), 90]],
  rate: [[look, 35], [change("rate_mbit", 5), 35], [change("target_pkts", 7), 35]],
  "square-root": [[look, 40], [begin({ aqms: ["fixed:p=0.0077"] }), 50], [begin({ flows: 10, aqms: ["fixed:p=0.025"] }), 50]],
  fairness: [[look, 60], [begin({ aqms: ["fq-codel"] }), 60]],
};

const done = (page) => page.evaluate(() => window.playground.done);

/** Runs on by some seconds in steps of one. */
const goOn = (page, seconds) =>
  page.evaluate(async (seconds) => {
    for (let i = 0; i < seconds; i += 1) await window.playground.step(1e9);
  }, seconds);

test("each lesson of the folder has a solution here", () => {
  const names = readdirSync(new URL("../lessons", import.meta.url)).map((name) => /^\d-(.*)\.md$/.exec(name)[1]);
  assert.deepEqual(names.sort(), Object.keys(SOLUTIONS).sort());
});

for (const [name, steps] of Object.entries(SOLUTIONS).filter(([name]) => full || ["bufferbloat", "codel-slow"].includes(name))) {
  test(`the lesson ${name} is done by its solution, and not before`, async () => {
    const { page, errors, context } = await open(browser, `${server.url}#lesson=${name}`);
    assert.equal(await done(page), 0);
    for (const [number, [[act, value], seconds]] of steps.entries()) {
      if (number > 0) {
        // Without the action the step stays open.
        await goOn(page, 20);
        assert.equal(await done(page), number);
      }
      await page.evaluate(([act, value]) => new Function(`return ${act}`)()(window.playground, value), [String(act), value]);
      await goOn(page, seconds);
      assert.equal(await done(page), number + 1, await page.locator(".lesson").innerText());
    }
    await page.getByText("All steps are done.").waitFor();
    assert.equal(await page.evaluate(() => window.playground.error), "");
    assert.deepEqual(errors, []);
    await context.close();
  });
}

const OWN = "# A lesson of mine\n\n[The network](#flows=3&aqm=pi)\n\nText with <b>no HTML</b> and `code`.\n\n1. Raise it: `flows >= 5`.\n";

test("a lecturer's lesson comes from a link and from a file, and its link opens it again", async () => {
  const { page, errors, context } = await open(browser, `${server.url}#${new URLSearchParams({ "lesson-text": OWN })}`);
  await page.getByRole("heading", { name: "A lesson of mine" }).waitFor();
  await page.getByText("Text with <b>no HTML</b>").waitFor();
  assert.equal(await page.evaluate(() => window.playground.settings.flows), 3);
  await runTo(page, 1);
  await page.evaluate(() => window.playground.change("flows", 6));
  await runTo(page, 2);
  await page.getByText("All steps are done.").waitFor();
  await page.getByLabel("Open a scenario or a lesson").setInputFiles({ name: "mine.md", mimeType: "text/markdown", buffer: Buffer.from(OWN.replace("of mine", "from a file")) });
  await page.getByRole("heading", { name: "A lesson from a file" }).waitFor();
  assert.equal(await done(page), 0);
  await page.getByRole("button", { name: "Link to this lesson" }).click();
  await page.waitForFunction(() => location.hash.includes("lesson-text"));
  const again = await open(browser, page.url());
  await again.page.getByRole("heading", { name: "A lesson from a file" }).waitFor();
  await again.context.close();
  assert.deepEqual(errors, []);
  await context.close();
});

test("a broken lesson is refused in one line that says what is wrong", async () => {
  const { page, context } = await open(browser, server.url);
  for (const [text, message] of [
    [OWN.replace("# A", "A"), "no title"],
    [OWN.replace("(#flows=3&aqm=pi)", ""), "no network"],
    [OWN.replace("1. ", ""), "no steps"],
    [OWN.replace("`flows", "`flow"), 'step 1: no value "flow"'],
    [OWN.replace(">= 5", ">= five"), "five is not a number"],
    [OWN.replace("`flows >= 5`", "five flows"), "step 1: no condition"],
    [OWN.replace("flows=3", "flows=many"), "flows = many: must be a whole number from 1 to 200"],
  ]) {
    await page.evaluate((text) => window.playground.teach(text), text);
    await page.getByRole("alert").filter({ hasText: message }).waitFor();
  }
  await context.close();
});
