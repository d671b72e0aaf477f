// SPDX-License-Identifier: Apache-2.0
// Frames of a graph of differences: red grew, blue shrank, and the more of the whole a change is, the stronger.
import { quantity } from "./numbers.js";

// A change of this share of the whole has the full colour.
const FULL = 0.2;

export function fillChange(whole) {
  return (node) => {
    if (node.highlight) return "var(--flame-match)";
    const { before, after } = node.data;
    const strength = Math.min(1, Math.sqrt(Math.abs(after - before) / whole / FULL)) * 100;
    const colour = after > before ? "grew" : "shrank";
    return `color-mix(in oklab, var(--flame-${colour}) ${strength.toFixed(1)}%, var(--flame-same))`;
  };
}

export function describeChange({ before, after }, unit) {
  const change = after - before;
  const sign = change > 0 ? "+" : "";
  const part = before > 0 ? `${sign}${((change / before) * 100).toFixed(1)} %` : "new";
  const words = after > 0 ? part : "gone";
  return `before ${quantity(before, "")}, after ${quantity(after, unit)}: ${words}`;
}
