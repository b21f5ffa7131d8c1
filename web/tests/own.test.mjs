// The law in the editor: it runs beside the others, errors point at their line, a loop without end is stopped.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, runTo, serve } from "./browser.mjs";

let browser, server;
before(async () => {
  [browser, server] = [await launch(), await serve()];
});
after(async () => {
  await browser?.close();
  server?.close();
});

/** Opens the editor with a code in place of the template, and starts it. */
async function start(page, code) {
  await page.getByText("Your own AQM in JavaScript").click();
  const text = page.getByLabel("Code of the law");
  await text.waitFor();
  if (code) await text.fill(code);
  await page.getByRole("button", { name: "Run it beside the others" }).click();
}

test("the template runs beside the others, regulates its queue, and survives a slider", async () => {
  const { page, errors, context } = await open(browser, `${server.url}#aqm=droptail&aqm=pi`);
  await start(page);
  await page.waitForFunction(() => window.playground.runs.length === 3 && window.playground.runs[2].spec === "own");
  await page.evaluate(() => window.playground.play(false));
  await runTo(page, 20);
  await page.evaluate(() => window.playground.change("flows", 30));
  await runTo(page, 30);
  assert.equal(await page.evaluate(() => window.playground.error), "");
  const mean = await page.evaluate(() => {
    const { trace } = window.playground.runs[2];
    return trace.mean(trace.queue, 10);
  });
  assert.ok(mean > 15 && mean < 50, `${mean}: the target is 30`);
  assert.deepEqual(errors, []);
  await context.close();
});

test("a law with a constant probability gives the bits of the AQM fixed with it", async () => {
  const { page, context } = await open(browser, `${server.url}#aqm=fixed:p%3D0.1`);
  await start(page, "class Law { period = 0.0001; step() { return 0.1; } }");
  await page.waitForFunction(() => window.playground.runs.length === 2 && window.playground.now_ns > 0);
  await page.evaluate(() => window.playground.play(false));
  await runTo(page, 3);
  const [fixed, own] = await page.evaluate(() => window.playground.runs.map((run) => [...run.trace.queue.from(0)]));
  assert.ok(fixed.length > 100);
  assert.deepEqual(own, fixed);
  await context.close();
});

for (const [name, code, message] of [
  ["an error in step", "class Law {\n  period = 0.01;\n  step(seen) {\n    return missing;\n  }\n}", "own law, line 4: missing is not defined"],
  ["a probability out of range", "class Law {\n  period = 0.01;\n  step(seen) { return 2; }\n}", "step() returned 2; a probability is a number from 0 to 1"],
  ["a missing class", "const law = 1;", "own law"],
  ["broken syntax", "class Law {\n  period = 0.01;\n  step(seen) { return (; }\n}", "own law"],
  ["a wrong period", "class Law { period = 0; step() { return 0; } }", "period is 0"],
]) {
  test(`${name} is told, and the others go on`, async () => {
    const { page, context } = await open(browser, `${server.url}#aqm=pi`);
    await start(page, code);
    await page.getByTestId("own-error").filter({ hasText: message }).waitFor();
    if (name === "broken syntax" || name === "an error in step") await page.locator(".wrong-line").waitFor();
    await page.evaluate(() => window.playground.play(false));
    const now = await page.evaluate(() => window.playground.step(0).then(() => window.playground.now_ns / 1e9));
    await runTo(page, now + 1);
    assert.ok(await page.evaluate(() => window.playground.runs[0].trace.now_s >= 1));
    await context.close();
  });
}

test("a step that never returns is stopped, and another law runs after it", async () => {
  const { page, context } = await open(browser, `${server.url}#aqm=pi`);
  await start(page, "class Law {\n  period = 0.01;\n  step(seen) {\n    for (;;) {}\n  }\n}");
  await page.getByTestId("own-error").filter({ hasText: "did not return within 2 s" }).waitFor();
  await page.getByLabel("Code of the law").fill("class Law { period = 0.01; step() { return 0; } }");
  await page.getByRole("button", { name: "Run it beside the others" }).click();
  await page.waitForFunction(() => window.playground.error === "" && window.playground.runs[1].trace.now_s > 0.1);
  await context.close();
});

test("the law is copied as a Python class that keeps its code as comments", async () => {
  const { page, context } = await open(browser, server.url, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.getByText("Your own AQM in JavaScript").click();
  await page.getByLabel("Code of the law").waitFor();
  await page.getByRole("button", { name: "Copy as Python" }).click();
  await page.getByText("Copied: a class").waitFor();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, /class Own\(aqumen\.SampledLaw\):/);
  assert.match(text, /self\.period = 0\.01\n/);
  assert.match(text, /# const error = seen\.queue_pkts - this\.target;/);
  await context.close();
});

test("the loop in theory shows margins, which move with the sliders; CoDel has none", async () => {
  const { page, errors, context } = await open(browser, `${server.url}#aqm=pi&aqm=codel`);
  await page.getByText("Loop in theory").click();
  const status = page.locator(".margins");
  await status.filter({ hasText: "Stable with 20 Reno flows" }).waitFor();
  await runTo(page, 1);
  await page.evaluate(() => window.playground.change("flows", 2));
  await status.filter({ hasText: "with 2 Reno flows" }).waitFor();
  await page.locator("section", { hasText: "Loop in theory" }).locator("select").last().selectOption("codel");
  await page.getByText("codel has no linear law").waitFor();
  assert.deepEqual(errors, []);
  await context.close();
});
