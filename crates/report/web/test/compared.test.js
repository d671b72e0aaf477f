// SPDX-License-Identifier: Apache-2.0
// The page of a comparison in a browser: its sentences, its numbers, and the differential flame graph.
import assert from "node:assert/strict";
import { data, onSamplePages } from "./browser.js";

const { check } = onSamplePages();

const text = (page, selector) => page.locator(selector).first().innerText();
const frame = (page, name) => page.locator(`#compared-flame g.frame[name="${name}"]`).first();

async function settledWidth(locator) {
  let last = -1;
  for (let same = 0; same < 4;) {
    const { width } = await locator.locator("rect").boundingBox();
    same = width === last ? same + 1 : 0;
    last = width;
    await locator.page().waitForTimeout(50);
  }
  return last;
}

check("a comparison says what changed, the load, and what else", "compared", async (page) => {
  const { comparison } = await data(page);
  assert.equal(comparison.verdict, "changed");
  assert.equal(await text(page, "h1"), comparison.headline);
  const answer = await text(page, "#verdict");
  for (const words of [comparison.verdict, comparison.load, comparison.besides])
    assert.ok(answer.includes(words), words);
});

check("changes and intervals are those of the data", "compared", async (page) => {
  const { comparison } = await data(page);
  const few = comparison.measures.filter(({ group }) => group === "headline");
  const rows = page.locator("#compared tbody tr");
  assert.equal(await rows.count(), few.length);
  for (const [at, { a, low, high, change, changed }] of few.entries()) {
    const words = await rows.nth(at).innerText();
    const percent = (share) => `${share > 0 ? "+" : ""}${(share * 100).toFixed(1)} %`;
    // What is next to nothing has no sign.
    if (Math.abs(change) > 0.0005) assert.ok(words.includes(percent(change)), `${words}: ${percent(change)}`);
    assert.ok(words.includes(`${percent(low / a)} to ${percent(high / a)}`), words);
    assert.equal(words.trim().endsWith("yes"), changed, words);
  }
});

check("red grew, blue shrank, and what has gone is still there", "compared", async (page) => {
  const colour = async (name) => (await frame(page, name).locator("rect").getAttribute("fill")) ?? "";
  for (const [name, kind] of [
    ["score", "grew"],
    ["fresh", "grew"],
    ["parse", "shrank"],
    ["old", "shrank"],
  ]) {
    assert.match(await colour(name), new RegExp(`--flame-${kind}\\) [1-9]`), name);
  }
  const strength = async (name) => Number((await colour(name)).match(/([\d.]+)%/)[1]);
  assert.ok(
    (await strength("score")) > (await strength("fresh")),
    "the larger change is the stronger colour",
  );
  assert.ok((await strength("usual")) < 20, "what hardly changed has hardly a colour");
  const [grew, shrank] = [".key.grew", ".key.shrank"].map((key) =>
    page.locator(`#compared-flame ${key}`).evaluate((e) => getComputedStyle(e).backgroundColor),
  );
  assert.notEqual(await grew, await shrank);
});

check("frames are as wide as their larger side", "compared", async (page) => {
  const { sections } = await data(page);
  const { root, strings } = sections.find(({ id }) => id === "compared-flame").blocks[0];
  const whole = await settledWidth(frame(page, strings[root[0]]));
  const main = root[4][0][4][0];
  for (const [name, , , value, , a, b] of main[4]) {
    assert.ok(Math.abs(value - Math.max(a, b)) < 1e-9, "a leaf's width is its larger side");
    const part = await settledWidth(frame(page, strings[name]));
    assert.ok(Math.abs(part / whole - value / root[3]) < 0.01, strings[name]);
  }
});

check("the tooltip says before, after and the change", "compared", async (page) => {
  await settledWidth(frame(page, "score"));
  await frame(page, "score").hover();
  const words = await text(page, "#compared-flame .tooltip");
  assert.match(words, /score/);
  assert.match(words, /before 5\d\.\d\d, after 15\d\.\d\d µs of CPU time per write call: \+\d+\.\d %/);
  await frame(page, "old").hover();
  assert.match(await text(page, "#compared-flame .tooltip"), /after 0 .*: gone/);
});

check("the graph of differences zooms and searches like the other", "compared", async (page) => {
  const whole = await settledWidth(frame(page, "main"));
  await frame(page, "parse").click();
  assert.ok(Math.abs((await settledWidth(frame(page, "parse"))) - whole) < 2);
  await page.getByRole("button", { name: "Reset" }).click();
  await page.getByRole("searchbox").fill("SCORE");
  await page.waitForFunction(() =>
    document.querySelector("#compared-flame .status").textContent.includes("match"),
  );
});

for (const [device, viewport] of [
  ["a wide screen", { width: 1600, height: 900 }],
  ["a telephone", { width: 390, height: 800 }],
]) {
  for (const sample of ["compared", "compared-hostile"]) {
    const steps = async (page) => {
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px too wide`);
    };
    check(`${sample} fits ${device}`, sample, steps, { viewport });
  }
}

check("hostile names of a comparison are text", "compared-hostile", async (page) => {
  const shown = await page.evaluate(() => document.body.innerText);
  assert.ok(shown.includes("<script>alert(1)</script>") && shown.includes("\\x1b[2J"));
  assert.equal(await page.locator("script").count(), 2);
});

check(
  "a comparison says everything without its script",
  "compared",
  async (page) => {
    const shown = await page.locator("main").innerText();
    for (const words of ["CPU time", "score", "build of svc", "Intervals by a bootstrap"])
      assert.ok(shown.includes(words), words);
  },
  { javaScriptEnabled: false },
);
