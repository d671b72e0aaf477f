// SPDX-License-Identifier: Apache-2.0
// A flame graph, of one profile or of the differences between two: click or Enter zooms, Reset or Escape goes back, search marks functions and says
// which share of the whole they cover.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { element } from "./dom.js";
import { addKeys } from "./flame-keys.js";
import { addSearch } from "./flame-search.js";
import { tooltip } from "./flame-tooltip.js";
import { unpack } from "./flame-tree.js";
import { describeChange, fillChange } from "./flame-change.js";
import { quantity, share } from "./numbers.js";

const ROW_PX = 20;
// Frames narrower than this cannot be told from each other: they are not drawn until they are zoomed into, and the
// graph is as high as what is drawn, not as its deepest sliver.
const NARROWEST_PX = 3;

const still = matchMedia("(prefers-reduced-motion: reduce)");

// The colour says where the code is; its shade tells neighbours apart and means nothing.
function fill(node) {
  if (node.highlight) return "var(--flame-match)";
  let hash = 0;
  for (const letter of node.data.name) hash = (hash * 31 + letter.charCodeAt(0)) % 997;
  return `color-mix(in oklab, var(--flame-${node.data.kind}) ${100 - (hash % 28)}%, var(--flame-shade))`;
}

export function flame(place, { unit, strings, root: packed }) {
  const root = unpack(packed, strings);
  const whole = root.value;
  const compares = root.before !== undefined;
  const cost = (data) => `${share(data.value / whole)} of all, ${quantity(data.value, unit)}`;
  const describe = ({ data }) => ({
    name: data.name,
    cost: compares ? describeChange(data, unit) : cost(data),
    where: [data.module, data.kind].filter(Boolean).join(" · "),
  });

  const status = element("output", { className: "status" });
  const reset = element("button", { type: "button", textContent: "Reset", disabled: true });
  const controls = element("div", { className: "controls" });
  const canvas = element("div", { className: "flame-canvas", tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "Flame graph. Arrow keys move, Enter zooms, Escape resets.");
  place.append(controls, canvas);

  const tip = tooltip(place, describe);
  const chart = flamegraph()
    .width(canvas.clientWidth)
    .cellHeight(ROW_PX)
    .resetHeightOnZoom(true)
    .minFrameSize(NARROWEST_PX)
    .transitionDuration(still.matches ? 0 : 180)
    .setColorMapper(compares ? fillChange(Math.max(root.before, root.after)) : fill)
    .setLabelHandler((node) => Object.values(describe(node)).join(", "))
    .tooltip(tip)
    .onClick((node) => (reset.disabled = !node.parent));
  select(canvas).datum(root).call(chart);

  reset.addEventListener("click", () => {
    chart.resetZoom();
    search.clear();
  });
  const search = addSearch(controls, chart, { root, status, reset });
  controls.append(reset, status);
  addKeys(canvas, chart, {
    moved: (node) => (status.textContent = Object.values(describe(node)).join(" · ")),
    escaped: () => reset.click(),
  });
  new ResizeObserver(() => {
    if (canvas.clientWidth !== chart.width()) chart.width(canvas.clientWidth).update();
  }).observe(canvas);
}
