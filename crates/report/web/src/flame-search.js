// SPDX-License-Identifier: Apache-2.0
// The search field of a flame graph: any part of a function's name, upper or lower case.
import { element } from "./dom.js";
import { covered } from "./flame-tree.js";
import { share } from "./numbers.js";

export function addSearch(controls, chart, { root, status, reset }) {
  const field = element("input", { type: "search", placeholder: "Search functions", spellcheck: false });
  field.setAttribute("aria-label", "Search functions");
  controls.append(field);

  const matcher = (term) => (name) => name.toLowerCase().includes(term.toLowerCase());
  chart.setSearchMatch((node, term) => term !== "" && matcher(term)(node.data.name));
  chart.setSearchHandler((found) => {
    const match = matcher(field.value.trim());
    const part = covered(root, (node) => match(node.name)) / root.value;
    status.textContent = `${found.length} frames match: ${share(part)} of all`;
    reset.disabled = false;
  });

  const run = () => {
    if (field.value.trim()) chart.search(field.value.trim());
    else clear();
  };
  const clear = () => {
    field.value = "";
    chart.clear();
    status.textContent = "";
  };
  field.addEventListener("input", run);
  return { clear };
}
