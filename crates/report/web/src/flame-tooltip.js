// SPDX-License-Identifier: Apache-2.0
// What a frame is and costs, beside the pointer.
import { element } from "./dom.js";

export function tooltip(place, describe) {
  const [name, cost, where] = ["strong", "span", "span"].map((tag) => element(tag));
  const box = element("div", { className: "tooltip", hidden: true }, name, cost, where);
  box.setAttribute("role", "tooltip");
  place.append(box);

  const tip = () => {};
  tip.show = (event, node) => {
    const words = describe(node);
    [name.textContent, cost.textContent, where.textContent] = [words.name, words.cost, words.where];
    box.hidden = false;
    const { left, top, width } = place.getBoundingClientRect();
    const x = Math.min(event.clientX - left + 14, width - box.offsetWidth);
    box.style.left = `${Math.max(0, x)}px`;
    box.style.top = `${event.clientY - top + 18}px`;
  };
  tip.hide = () => (box.hidden = true);
  return tip;
}
