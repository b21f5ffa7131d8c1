// A server of web/test-dist, and pages in a headless Chromium.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
const ROOT = new URL("../test-dist/", import.meta.url).pathname;

export const full = process.env.PLAYGROUND_TESTS === "test-full";

/** Serves a folder; returns its address and a way to end it. */
export async function serve(root = ROOT) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
    try {
      const file = join(root, path.endsWith("/") ? path + "index.html" : path);
      const data = await readFile(file);
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(data);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

/** A page whose console errors are kept in `errors`. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const errors = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(url);
  await page.waitForFunction(() => window.playground?.end_ns > 0 || window.playground?.error);
  return { page, errors, context };
}

/** Runs the page on to a simulated time. */
export const runTo = (page, seconds) =>
  page.evaluate((seconds) => window.playground.step(seconds * 1e9 - window.playground.now_ns), seconds);
