// SPDX-License-Identifier: Apache-2.0
// Walking through a flame graph with the keyboard: up to what a frame called most, down to its caller,
// left and right among the callees of one caller.
import { selectAll } from "d3-selection";

const drawn = (node) => node.x1 > node.x0;

function step(node, key) {
  const siblings = node.parent?.children.filter(drawn) ?? [node];
  const at = siblings.indexOf(node);
  switch (key) {
    case "ArrowUp":
      return node.children?.find(drawn);
    case "ArrowDown":
      return node.parent;
    case "ArrowLeft":
      return siblings[at - 1];
    case "ArrowRight":
      return siblings[at + 1];
  }
}

export function addKeys(canvas, chart, { moved, escaped }) {
  let current = chart.findById(0);
  const mark = () => {
    selectAll(canvas.querySelectorAll("g.frame")).classed("current", (node) => node === current);
    moved(current);
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter") chart.zoomTo(current);
    else if (event.key === "Escape") escaped();
    else if (event.key.startsWith("Arrow")) current = step(current, event.key) ?? current;
    else return;
    event.preventDefault();
    mark();
  });
}
