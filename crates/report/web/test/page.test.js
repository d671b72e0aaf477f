// SPDX-License-Identifier: Apache-2.0
// The page in a browser: it draws, its controls work, its numbers are those of its data, and it neither
// complains nor fetches nor runs what a hostile name holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { data, onSamplePages } from "./browser.js";

const { check, openSample } = onSamplePages();

const text = (page, selector) => page.locator(selector).first().innerText();
const flame = (section) => section.blocks.find((block) => block.kind === "flame");

check("shows the answer", "busy-poll", async (page) => {
  const { verdict } = await data(page);
  assert.equal(await text(page, "h1"), verdict.headline);
  assert.equal(await text(page, ".badge"), verdict.verdict);
  assert.equal(
    await text(page, ".figure strong"),
    `${(verdict.findings[0].explains.share * 100).toFixed(1)} %`,
  );
  assert.ok((await text(page, "#verdict dl")).includes(verdict.advice));
});

check("ledger bars are the ledger", "busy-poll", async (page) => {
  const { verdict } = await data(page);
  const rows = await page.locator("#ledger figure.bars tr").evaluateAll((rows) =>
    rows.map((row) => ({
      value: Number(row.querySelector("data").value),
      shown: row.querySelector("data").textContent,
      share: row.querySelector(".share").textContent,
      length: parseFloat(row.querySelectorAll("rect")[1].getAttribute("width")),
    })),
  );
  const { wall, ...lines } = verdict.ledger.threads;
  const values = rows.map((row) => row.value);
  for (const line of Object.values(lines)) assert.ok(values.includes(line), `${line} s is not shown`);
  assert.ok(Math.abs(values.reduce((a, b) => a + b) - wall) < 1e-9, "the bars add up to the whole");
  for (const row of rows) {
    assert.equal(row.shown, `${row.value.toFixed(2)} s`);
    assert.equal(row.share, `${((row.value / wall) * 100).toFixed(1)} %`);
    assert.ok(row.length >= (row.value / wall) * 100 - 0.01);
  }
});

check("evidence, ruled out and gaps are all there", "busy-poll", async (page) => {
  const { verdict } = await data(page);
  for (const { fact, expected, see_yourself } of verdict.findings[0].evidence) {
    for (const words of [fact, expected, see_yourself])
      assert.ok((await text(page, "#evidence")).includes(words), words);
  }
  // What hardly was there is folded.
  await page.locator("#ruled-out summary").click();
  for (const { cause, why } of verdict.ruled_out) {
    assert.ok(
      (await text(page, "#ruled-out")).includes(cause) && (await text(page, "#ruled-out")).includes(why),
    );
  }
  for (const { what, why } of verdict.gaps) {
    assert.ok((await text(page, "#gaps")).includes(what) && (await text(page, "#gaps")).includes(why));
  }
});

check("histograms show the counts of the data", "busy-poll", async (page) => {
  const { sections } = await data(page);
  const wanted = sections.flatMap(({ blocks }) => blocks.filter((block) => block.kind === "histogram"));
  const shown = await page
    .locator("figure.histogram")
    .evaluateAll((figures) =>
      figures.map((figure) => [...figure.querySelectorAll("data")].map((cell) => Number(cell.value))),
    );
  assert.deepEqual(
    shown,
    wanted.map(({ buckets }) => buckets.map((bucket) => bucket[1])),
  );
});

const frame = (page, name) => page.locator(`#profile g.frame[name="${name}"]`).first();
const width = async (locator) => (await locator.locator("rect").boundingBox()).width;

// Waits until a frame has stopped moving, and returns its width.
async function settled(locator) {
  let last = -1;
  for (let same = 0; same < 4;) {
    const now = await width(locator);
    same = now === last ? same + 1 : 0;
    last = now;
    await locator.page().waitForTimeout(50);
  }
  return last;
}

check("flame graph draws each frame as wide as its share", "busy-poll", async (page) => {
  const { sections } = await data(page);
  const { root, strings } = flame(sections.find(({ id }) => id === "profile"));
  const whole = await settled(frame(page, strings[root[0]]));
  for (const child of root[4]) {
    const part = await settled(frame(page, strings[child[0]]));
    assert.ok(Math.abs(part / whole - child[3] / root[3]) < 0.01, strings[child[0]]);
  }
  assert.match(
    await text(page, "#profile .legend"),
    /Width is the share.*Left-to-right order means nothing/s,
  );
});

check("flame graph zooms on click and goes back", "busy-poll", async (page) => {
  const reset = page.getByRole("button", { name: "Reset" });
  const whole = await settled(frame(page, "all on-CPU samples"));
  const before = await settled(frame(page, "do_epoll_wait"));
  assert.ok(before < whole / 2 && (await reset.isDisabled()));
  await frame(page, "do_epoll_wait").click();
  assert.ok(Math.abs((await settled(frame(page, "do_epoll_wait"))) - whole) < 2);
  await reset.click();
  assert.ok(Math.abs((await settled(frame(page, "do_epoll_wait"))) - before) < 2);
  assert.ok(await reset.isDisabled());
});

// The graph's height in rows, and the deepest frame that is drawn.
const rows = (page) =>
  page.locator("#profile svg.d3-flame-graph").evaluate((svg) => {
    const depths = [...svg.querySelectorAll("g.frame")].map((g) => g.__data__.depth);
    return { high: Number(svg.getAttribute("height")) / 20, deep: Math.max(...depths) };
  });

check("flame graph is as high as what can be seen, also after zooming", "hostile", async (page) => {
  const { sections } = await data(page);
  const { root } = flame(sections.find(({ id }) => id === "profile"));
  const depth = ([, , , , children]) => children.reduce((most, child) => Math.max(most, 1 + depth(child)), 0);
  const before = await rows(page);
  assert.equal(before.high, before.deep + 3, "as high as what is drawn, and a margin");
  assert.ok(before.deep < depth(root) / 2, "the deep sliver is not drawn");
  await frame(page, "rare_path").click();
  await page.waitForFunction(() => document.querySelectorAll('#profile g.frame[name="deep"]').length > 50);
  const zoomed = await rows(page);
  assert.ok(zoomed.deep === depth(root) && zoomed.high === zoomed.deep + 3, JSON.stringify(zoomed));
  await page.getByRole("button", { name: "Reset" }).click();
  await settled(frame(page, "rare_path"));
  assert.deepEqual(await rows(page), before);
});

check("search marks frames and says their share", "busy-poll", async (page) => {
  const { sections } = await data(page);
  const { root, strings } = flame(sections.find(({ id }) => id === "profile"));
  const covered = ([name, , , value, children]) =>
    strings[name].includes("epoll") ? value : children.reduce((sum, child) => sum + covered(child), 0);
  const marked = () =>
    page
      .locator("#profile g.frame rect")
      .evaluateAll((rects) => rects.filter((r) => r.getAttribute("fill").includes("match")).length);

  await page.getByRole("searchbox").fill("EPOLL");
  await page.waitForFunction(() => document.querySelector("#profile .status").textContent.includes("match"));
  assert.ok((await marked()) >= 3);
  const share = ((covered(root) / root[3]) * 100).toFixed(1);
  assert.match(await text(page, "#profile .status"), new RegExp(`match: ${share} % of all`));

  // A search is words, not a pattern: this must neither throw nor match everything.
  await page.getByRole("searchbox").fill("(*conn)");
  assert.equal(await marked(), 1);
  await page.getByRole("button", { name: "Reset" }).click();
  assert.equal(await marked(), 0);
  assert.equal(await page.getByRole("searchbox").inputValue(), "");
});

check("tooltip says name, share and unit", "busy-poll", async (page) => {
  await settled(frame(page, "sp_run"));
  await frame(page, "sp_run").hover();
  const words = await text(page, "#profile .tooltip");
  for (const part of ["sp_run", "95.9 % of all", "892 samples", "libsp.so"])
    assert.ok(words.includes(part), words);
});

check("flame graph can be walked with the keyboard", "busy-poll", async (page) => {
  await page.locator("#profile .flame-canvas").focus();
  for (const key of ["ArrowUp", "ArrowUp", "ArrowUp"]) await page.keyboard.press(key);
  assert.match(await text(page, "#profile .status"), /^main\.reactor/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.match(await text(page, "#profile .status"), /^streamd/);
  await page.keyboard.press("Enter");
  assert.ok((await settled(frame(page, "streamd"))) > 900);
  await page.keyboard.press("Escape");
  assert.ok((await settled(frame(page, "streamd"))) < 100);
});

check("series are drawn", "busy-poll", async (page) => {
  assert.equal(await page.locator("figure.series canvas").count(), 2);
  const inked = await page.locator("figure.series canvas").evaluateAll((canvases) =>
    canvases.map((canvas) =>
      canvas
        .getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height)
        .data.some((v) => v),
    ),
  );
  assert.deepEqual(inked, [true, true]);
});

check("theme follows the system, then the button", "busy-poll", async (page) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole("button", { name: "Switch to the dark theme" }).click();
  const dark = await ground();
  assert.notEqual(dark, light);
  await page.getByRole("button", { name: "Switch to the light theme" }).click();
  assert.equal(await ground(), light);
  await page.evaluate(() => delete document.documentElement.dataset.theme);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await ground(), dark);
});

for (const [device, viewport] of [
  ["a wide screen", { width: 1600, height: 900 }],
  ["a telephone", { width: 390, height: 800 }],
]) {
  for (const sample of ["busy-poll", "hostile", "healthy"]) {
    const steps = async (page) => {
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px too wide`);
    };
    check(`${sample} fits ${device}`, sample, steps, { viewport });
  }
}

check("hostile names are text and run nothing", "hostile", async (page) => {
  const shown = await page.evaluate(() => document.body.innerText);
  for (const name of [
    "<script>alert(1)</script>",
    "\\x1b[2J",
    '"><img src=x onerror=alert(2)>',
    "</script><!--",
  ]) {
    assert.ok(shown.includes(name), name);
    assert.ok((await text(page, "h1")).includes(name), name);
    assert.ok(
      (
        await page.locator("#profile g.frame").evaluateAll((all) => all.map((g) => g.getAttribute("name")))
      ).includes(name),
      name,
    );
  }
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  await page.getByRole("searchbox").fill("<script>");
  await frame(page, "</script><!--").hover();
  const raw = await page.evaluate(
    () => JSON.parse(document.getElementById("data").textContent).verdict.target.comm,
  );
  assert.ok(raw.includes("\u001b[2J"), "the data is exactly the contract");
});

test("even a script that got in could not run or fetch", async () => {
  const { page, seen, close } = await openSample("busy-poll");
  const refused = [];
  page.on("requestfailed", (request) => refused.push(`${request.url()} ${request.failure().errorText}`));
  await page.evaluate(() => {
    document.body.insertAdjacentHTML("beforeend", "<img src=https://example.invalid/x onerror=alert(1)>");
    document.body.append(Object.assign(document.createElement("script"), { textContent: "alert(2)" }));
  });
  await assert.rejects(page.evaluate(() => fetch("https://example.invalid/y")));
  assert.deepEqual(seen.dialogs, []);
  // The browser names a request that the page's policy stopped.
  const asked = seen.requests.filter((url) => url.startsWith("http"));
  assert.deepEqual(
    refused,
    asked.map((url) => `${url} csp`),
  );
  assert.ok(seen.console.some((line) => line.includes("Content Security Policy")));
  await close();
});

check("a healthy service accuses nobody", "healthy", async (page) => {
  assert.equal(await text(page, ".badge"), "healthy");
  assert.equal(await page.locator(".figure, #evidence").count(), 0);
});

check(
  "says everything without its script",
  "busy-poll",
  async (page) => {
    const shown = await page.locator("main").innerText();
    for (const words of [
      "Thread reactor asks epoll_wait",
      "Let epoll_wait block",
      "99.94 %",
      "Ruled out",
      "entry_SYSCALL_64_after_hwframe",
    ]) {
      assert.ok(shown.includes(words), words);
    }
  },
  { javaScriptEnabled: false },
);
