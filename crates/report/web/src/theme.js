// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system asks, until the button is pressed. Charts on a canvas are told of the change.
import { element } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

export function addThemeButton(bar) {
  const button = element("button", { type: "button", className: "theme" });
  const label = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`);
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    announce();
  });
  const announce = () => {
    label();
    document.dispatchEvent(new Event("themechange"));
  };
  system.addEventListener("change", announce);
  label();
  bar.append(button);
}

// The value that a CSS colour has now: a canvas does not know variables.
export function colour(name, within) {
  return resolved(`var(${name})`, within);
}

// A colour between those of the least and of the most, 0 to 1.
export function grade(part, within) {
  return resolved(`color-mix(in oklab, var(--grade-most) ${part * 100}%, var(--grade-least))`, within);
}

function resolved(colour, within) {
  const probe = element("span");
  probe.style.color = colour;
  within.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
