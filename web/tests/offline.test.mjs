// Without a network: after one visit the page loads again, with engines, theory and presets, from its service worker.

import assert from "node:assert/strict";
import { test } from "node:test";
import { launch, open, runTo, serve } from "./browser.mjs";

test("after one visit the page runs without a network", async () => {
  const [browser, server] = [await launch(), await serve()];
  try {
    const { page, context } = await open(browser, server.url);
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.waitForFunction(() => navigator.serviceWorker.controller);
    // Theory and editor are kept once they were opened.
    await page.getByText("Loop in theory").click();
    await page.locator(".margins").filter({ hasText: "Reno flows" }).first().waitFor();
    await page.getByText("Your own AQM in JavaScript").click();
    await page.getByLabel("Code of the law").waitFor();
    server.close();
    await context.setOffline(true);
    await page.goto(`${server.url}?offline#preset=home&aqm=codel`);
    await page.waitForFunction(() => window.playground?.end_ns > 0);
    await runTo(page, 2);
    assert.ok(await page.evaluate(() => window.playground.runs[0].trace.t_s.length > 10));
    await page.getByText("Your own AQM in JavaScript").click();
    await page.getByLabel("Code of the law").waitFor();
    await page.evaluate(() => window.playground.preset("dumbbell"));
    await page.getByText("Loop in theory").click();
    await page.locator(".margins").filter({ hasText: "Reno flows" }).first().waitFor();
    await context.close();
  } finally {
    await browser.close();
    server.close();
  }
});
