// SPDX-License-Identifier: Apache-2.0
// Lines over time, or areas stacked on each other. Drag zooms, a double click goes back.
import uPlot from "uplot";
import { element } from "./dom.js";
import { quantity } from "./numbers.js";
import { colour } from "./theme.js";

const HEIGHT_PX = 240;
const COLOURS = 6;

// Each line on top of the ones before it.
function stack(lines) {
  const base = new Array(lines[0]?.values.length ?? 0).fill(0);
  return lines.map(({ values }) => values.map((value, i) => (base[i] += value)));
}

// Drawn are the sums, shown in the legend is the line's own value.
function lineOptions(line, i, { unit, stacked }, place) {
  const stroke = colour(`--line-${i % COLOURS}`, place);
  return {
    label: line.label,
    stroke,
    width: 1.5,
    fill: stacked ? stroke : undefined,
    points: { show: false },
    value: (_plot, _drawn, _series, at) => (at == null ? "" : quantity(line.values[at], unit)),
  };
}

function options(place, block) {
  const axis = {
    stroke: colour("--dim", place),
    grid: { stroke: colour("--line", place), width: 1 },
    ticks: { show: false },
  };
  const lines = block.lines.map((line, i) => lineOptions(line, i, block, place));
  // The last of a stack is the highest: it is drawn first and the others cover it.
  if (block.stacked) lines.reverse();
  return {
    width: place.clientWidth,
    height: HEIGHT_PX,
    scales: { x: { time: false }, y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.05 : 1] } },
    axes: [
      { ...axis, size: 30, values: (_plot, ticks) => ticks.map((tick) => `${tick} s`) },
      { ...axis, size: 64, values: (_plot, ticks) => ticks.map((tick) => tick.toLocaleString("en-US")) },
    ],
    series: [{ label: "time", value: (_plot, at) => (at == null ? "" : `${at.toFixed(2)} s`) }, ...lines],
  };
}

export function series(place, block) {
  let plot;
  const values = block.stacked ? stack(block.lines).reverse() : block.lines.map((line) => line.values);
  const draw = () => {
    plot?.destroy();
    plot = new uPlot(options(place, block), [block.x, ...values], place);
  };
  draw();
  place.after(element("p", { className: "legend", textContent: "Drag to zoom, double-click to go back." }));
  document.addEventListener("themechange", draw);
  new ResizeObserver(() => {
    if (place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height: HEIGHT_PX });
  }).observe(place);
}
