// SPDX-License-Identifier: Apache-2.0
// A button that copies a command, where the browser allows it.
import { element } from "./dom.js";

export function command(place, { text }) {
  if (!navigator.clipboard) return;
  const button = element("button", { type: "button", textContent: "Copy" });
  button.setAttribute("aria-label", `Copy the command ${text}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  place.append(button);
}
