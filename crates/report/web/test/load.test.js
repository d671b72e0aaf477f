// SPDX-License-Identifier: Apache-2.0
// Pages of loads in a browser: points stand where their numbers are, the curves of a sweep are told apart by colour, and all of
// it fits a telephone.
import assert from "node:assert/strict";
import { data, onSamplePages } from "./browser.js";

const { check } = onSamplePages();

const text = (page, selector) => page.locator(selector).first().innerText();

check("a sweep begins with its limit and what nobody would expect", "sweep", async (page) => {
  const { sweep } = await data(page);
  const answer = await text(page, "#verdict");
  assert.ok(answer.includes(`${Math.round(sweep.knee.sustained)}`), answer);
  assert.ok(answer.includes("slower at lower load"), answer);
});

check("each load is a point of each picture, higher where it is more", "sweep", async (page) => {
  const { sweep } = await data(page);
  const picture = page.locator("#curves figure.plotted").first();
  const points = await picture.locator("circle").evaluateAll((circles) =>
    circles.map((circle) => ({
      words: circle.textContent,
      top: circle.getBoundingClientRect().top,
      left: circle.getBoundingClientRect().left,
    })),
  );
  assert.equal(points.length, sweep.steps.length);
  const at = (words) => points.find((point) => point.words === words);
  const [low, high] = [at("answered: 20 at 20"), at("answered: 640 at 640")];
  assert.ok(low.left < high.left && low.top > high.top, JSON.stringify(points));
});

check("curves go from one colour to the other, and the slow one lies to the right", "sweep", async (page) => {
  const figure = page.locator("#distribution figure");
  const markers = await figure
    .locator(".u-legend .u-marker")
    .evaluateAll((markers) => markers.map((marker) => getComputedStyle(marker).borderTopColor));
  const { sections } = await data(page);
  const { curves } = sections.find(({ id }) => id === "distribution").blocks[0];
  const drawn = markers.slice(-curves.length);
  assert.equal(new Set(drawn).size, curves.length, drawn.join());
  const half = ({ points }) => points.find(([, share]) => share >= 0.5)[0];
  assert.ok(half(curves[0]) > 10 * half(curves[3]));
});

check("a load shows its seconds", "load", async (page) => {
  const { load } = await data(page);
  await page.locator("#course summary").click();
  assert.equal(await page.locator("#course details tbody tr").count(), load.by_second.length);
  assert.equal(await page.locator("#course line.mark").count(), load.phases.length - 1);
});

for (const sample of ["load", "sweep", "load-hostile", "sweep-hostile"]) {
  for (const width of [1280, 420]) {
    const steps = async (page) => {
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px too wide`);
      assert.equal(await page.locator("script").count(), 2);
    };
    check(`${sample} fits ${width} px`, sample, steps, { viewport: { width, height: 900 } });
  }
}

check(
  "curves and numbers are told without the script",
  "sweep",
  async (page) => {
    assert.ok((await page.locator("#curves circle").count()) > 20);
    assert.ok((await text(page, "#loads")).includes("waits for its store"));
    assert.ok((await text(page, "#distribution")).includes("20/s"));
  },
  { javaScriptEnabled: false },
);
