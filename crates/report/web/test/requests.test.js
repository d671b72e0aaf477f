// SPDX-License-Identifier: Apache-2.0
// Requests on the page in a browser: distributions answer the pointer, requests open into their steps, and the table of sockets
// sorts, with the keyboard too.
import assert from "node:assert/strict";
import { data, onSamplePages } from "./browser.js";

const { check } = onSamplePages();

const block = async (page, id, kind) => {
  const { sections } = await data(page);
  return sections.find((section) => section.id === id).blocks.find((block) => block.kind === kind);
};

check("stage bars are as long as their stages", "requests", async (page) => {
  const { bars } = await block(page, "stages", "stacked");
  const whole = (bar) => bar.parts.reduce((sum, part) => sum + part.value, 0);
  const longest = Math.max(...bars.map(whole));
  const shown = await page.locator("figure.stacked tr").evaluateAll((rows) =>
    rows.map((row) => ({
      name: row.querySelector("th").textContent,
      widths: [...row.querySelectorAll("rect.hue")].map((rect) => parseFloat(rect.getAttribute("width"))),
      values: [...row.querySelectorAll(".parts data")].map((data) => Number(data.value)),
    })),
  );
  assert.deepEqual(
    shown.map(({ name, values }) => [name, values]),
    bars.map((bar) => [bar.label, bar.parts.map((part) => part.value)]),
  );
  bars.forEach((bar, i) => {
    const wanted = bar.parts.filter((part) => part.value > 0).map((part) => (part.value / longest) * 100);
    shown[i].widths.forEach((width, j) => assert.ok(Math.abs(width - wanted[j]) < 0.01, bar.label));
  });
});

check("a distribution says what stands under the pointer", "requests", async (page) => {
  const figure = page.locator("figure.distribution").first();
  const { curves } = await block(page, "stages", "distribution");
  assert.deepEqual(
    curves.map(({ label }) => label),
    ["response", "read wait", "service"],
  );
  const area = figure.locator(".u-over");
  await area.scrollIntoViewIfNeeded();
  const { width, height } = await area.boundingBox();
  await area.hover({ position: { x: width - 2, y: height / 2 } });
  assert.match(await figure.locator(".u-legend").innerText(), /at most\s*100 ms[^]*response\s*100 %/);
  // Half way on a logarithmic axis: of 3.9 to 100 ms, below all answers and above all reads.
  await area.hover({ position: { x: width / 2, y: height / 2 } });
  assert.match(await figure.locator(".u-legend").innerText(), /response\s*0 %[^]*read wait\s*100 %/);
});

check("a request opens into its steps, and those into stacks", "requests", async (page) => {
  const rows = page.locator("details.exemplar");
  assert.equal(await rows.count(), 8);
  const first = rows.first();
  assert.match(await first.locator("summary").first().innerText(), /slowest\s+100 ms/);
  assert.ok(!(await first.locator("table").isVisible()));
  await first.locator("summary").first().focus();
  await page.keyboard.press("Enter");
  const steps = await first.locator("tbody > tr").allInnerTexts();
  const at = (words) => steps.findIndex((step) => step.includes(words));
  const order = ["it arrives", "reads it", "recvfrom (10.0.0.9:5432)", "writes the answer", "on average"].map(
    at,
  );
  assert.ok(order[0] === 0 && order.every((step, i) => step >= 0 && (i === 0 || step > order[i - 1])), steps);
  assert.match(steps[at("recvfrom")], /^7\.00 ms\s+90\.0 ms/);
  const stack = first.locator("details.stack").filter({ hasText: "shop/1 in recvfrom" });
  await stack.locator("summary").click();
  assert.ok(await stack.getByText("tcp_recvmsg").isVisible());
  // Its spans lie within the bar.
  const spans = await first
    .locator("svg.whole rect")
    .evaluateAll((rects) => rects.map((r) => ["x", "width"].map((name) => parseFloat(r.getAttribute(name)))));
  for (const [x, width] of spans) assert.ok(x >= 0 && x + width <= 100.01, `${x} ${width}`);
});

const column = (page, nth) => page.locator(`#sockets tbody tr > :nth-child(${nth})`).allInnerTexts();

check("sockets are sorted by a press on a head, and with the keyboard", "requests", async (page) => {
  assert.deepEqual(await column(page, 3), ["8", "12", "3"]);
  const open = page.locator("#sockets").getByRole("button", { name: "open", exact: true });
  await open.click();
  assert.deepEqual(await column(page, 3), ["12", "8", "3"]);
  const head = page.locator("#sockets th[aria-sort]");
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  await page.keyboard.press("Enter");
  assert.deepEqual(await column(page, 3), ["3", "8", "12"]);
  const where = page.locator("#sockets").getByRole("button", { name: "where" });
  await where.focus();
  await page.keyboard.press("Space");
  assert.deepEqual(await column(page, 1), ["0.0.0.0:8080", "10.0.0.9:5432", "10.0.0.10:6379"]);
  assert.equal(await head.count(), 1);
  // What is unknown stays at the end, whichever way.
  const backlog = page.locator("#sockets").getByRole("button", { name: "accept queue" });
  for (let press = 0; press < 2; press++) {
    await backlog.click();
    assert.equal((await column(page, 1))[0], "0.0.0.0:8080");
  }
});

for (const [device, viewport] of [
  ["a wide screen", { width: 1280, height: 900 }],
  ["a telephone", { width: 400, height: 800 }],
]) {
  for (const sample of ["requests", "requests-hostile"]) {
    const steps = async (page) => {
      for (const details of await page.locator("details.exemplar > summary").all()) await details.click();
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px too wide`);
    };
    check(`${sample} with all open fits ${device}`, sample, steps, { viewport });
  }
}

check("hostile names of threads and functions are text", "requests-hostile", async (page) => {
  for (const details of await page.locator("details.exemplar summary").all())
    await details.evaluate((d) => (d.parentElement.open = true));
  const shown = await page.locator("#exemplars").innerText();
  assert.ok(shown.includes("<script>alert(1)</script>") && shown.includes("\\x1b[2J"), shown);
  assert.equal(await page.locator("script").count(), 2);
});

check(
  "requests are told without the script",
  "requests",
  async (page) => {
    for (const [id, words] of [
      ["stages", "p99.9"],
      ["stages", "10.0.0.9:5432"],
      ["hops", "guilty"],
      ["sockets", "10.0.0.10:6379"],
    ]) {
      assert.ok((await page.locator(`#${id}`).innerText()).includes(words), words);
    }
    await page.locator("details.exemplar > summary").first().click();
    assert.ok((await page.locator("details.exemplar").first().innerText()).includes("it arrives"));
  },
  { javaScriptEnabled: false },
);
