// SPDX-License-Identifier: Apache-2.0
// Sample pages and a browser to open them in.
import { chromium } from "playwright-core";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

// Writes the sample pages with the crate's example; `remove` deletes them.
export function samplePages() {
  const folder = mkdtempSync(join(tmpdir(), "wakewalk-pages-"));
  const options = { stdio: ["ignore", "inherit", "inherit"] };
  if (process.env.SAMPLE_PAGE) {
    execFileSync(process.env.SAMPLE_PAGE, [folder], options); // built already
  } else {
    const example = ["run", "--release", "--quiet", "-p", "wakewalk-report", "--example", "sample_page"];
    execFileSync("cargo", [...example, "--", folder], options);
  }
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { folder, url: (name) => pathToFileURL(join(folder, `${name}.html`)).href, remove };
}

export function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: ARGS });
}

// Opens a page and notes all that a report must never do: complain, fetch, ask.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const seen = { console: [], errors: [], requests: [], dialogs: [] };
  page.on("console", (message) => seen.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("dialog", async (dialog) => {
    seen.dialogs.push(dialog.message());
    await dialog.dismiss();
  });
  await page.goto(url);
  if (options.javaScriptEnabled !== false) await page.waitForSelector("html[data-drawn=yes]");
  return { page, seen, close: () => context.close() };
}

// The data that the page carries.
export function data(page) {
  return page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
}

// Writes the sample pages before the tests of a file, and removes them after. `check` runs a check on an opened page, then asserts
// that the page stayed silent; `openSample` opens one.
export function onSamplePages() {
  let pages, browser;
  before(async () => {
    pages = samplePages();
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    pages?.remove();
  });
  const openSample = (sample, options) => open(browser, pages.url(sample), options);
  const check = (name, sample, steps, options) =>
    test(name, async () => {
      const { page, seen, close } = await openSample(sample, options);
      await steps(page);
      assert.deepEqual(seen, { console: [], errors: [], requests: [pages.url(sample)], dialogs: [] });
      await close();
    });
  return { check, openSample };
}
