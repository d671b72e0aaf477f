// SPDX-License-Identifier: Apache-2.0
// The page's script: draws what needs a script and adds the controls that need one.
// Everything else is in the HTML already.
import { renderers } from "./blocks.js";
import { addThemeButton } from "./theme.js";
// Last, so that it overrides the style that the flame graph brings.
import "./page.css";

const { sections } = JSON.parse(document.getElementById("data").textContent);

addThemeButton(document.querySelector("header.top"));

for (const place of document.querySelectorAll("[data-kind]")) {
  const [section, block] = place.dataset.at.split(".");
  renderers[place.dataset.kind](place, sections[section].blocks[block]);
}
document.documentElement.dataset.drawn = "yes";
