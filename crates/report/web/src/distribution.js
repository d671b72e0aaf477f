// SPDX-License-Identifier: Apache-2.0
// Shares of all that take at most so long, by length on a logarithmic axis. What stands under the pointer is in the legend.
import uPlot from "uplot";
import { element } from "./dom.js";
import { duration, share } from "./numbers.js";
import { colour, grade } from "./theme.js";

const HEIGHT_PX = 240;

// All curves at all lengths: between two points a curve stays as high as at the first of them.
export function joined(curves) {
  const lengths = [...new Set(curves.flatMap(({ points }) => points.map(([x]) => x)))].filter((x) => x > 0);
  lengths.sort((a, b) => a - b);
  const at = ({ points }) => {
    let next = 0;
    let value = 0;
    return lengths.map((x) => {
      while (next < points.length && points[next][0] <= x) value = points[next++][1];
      return value;
    });
  };
  return [lengths, ...curves.map(at)];
}

// Room for the words of a tick.
const TICK_PX = 56;

// Whole powers of ten; where there are few of them, and room, also twos and fives.
function ticks(least, most, room) {
  const powers = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
    powers.push(10 ** power);
  }
  const within = (all) => all.filter((tick) => tick >= least * 0.999 && tick <= most * 1.001);
  const tens = within(powers);
  const all = within(powers.flatMap((ten) => [ten, 2 * ten, 5 * ten]));
  return tens.length > 2 || (tens.length > 1 && all.length * TICK_PX > room) ? tens : all;
}

function options(place, { curves, graded }) {
  const axis = {
    stroke: colour("--dim", place),
    grid: { stroke: colour("--line", place), width: 1 },
    ticks: { show: false },
  };
  const series = curves.map(({ label }, i) => ({
    label,
    stroke: graded ? grade(i / Math.max(1, curves.length - 1), place) : colour(`--line-${i}`, place),
    // Where one stage is all of it, both are seen.
    width: i === 0 ? 3.5 : 1.5,
    points: { show: false },
    paths: uPlot.paths.stepped({ align: 1 }),
    value: (_plot, value) => (value == null ? "" : share(value)),
  }));
  return {
    width: place.clientWidth,
    height: HEIGHT_PX,
    scales: {
      x: { time: false, distr: 3, log: 10, range: (_plot, least, most) => [least, most] },
      y: { range: [0, 1.02] },
    },
    axes: [
      {
        ...axis,
        size: 30,
        splits: (plot, _axis, least, most) => ticks(least, most, plot.width),
        filter: (_plot, splits) => splits,
        values: (_plot, splits) => splits.map((split) => duration(split)),
      },
      { ...axis, size: 56, values: (_plot, splits) => splits.map((split) => `${Math.round(split * 100)} %`) },
    ],
    series: [{ label: "at most", value: (_plot, at) => (at == null ? "" : duration(at)) }, ...series],
  };
}

export function distribution(place, block) {
  const data = joined(block.curves);
  let plot;
  const draw = () => {
    plot?.destroy();
    plot = new uPlot(options(place, block), data, place);
  };
  draw();
  const hint = "Point at a length to read the shares. Drag to zoom, double-click to go back.";
  place.after(element("p", { className: "legend", textContent: hint }));
  document.addEventListener("themechange", draw);
  new ResizeObserver(() => {
    if (place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height: HEIGHT_PX });
  }).observe(place);
}
