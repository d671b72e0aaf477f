// SPDX-License-Identifier: Apache-2.0
// Numbers as the rest of the page prints them: a share is never rounded to all or nothing.
export function share(value) {
  const percent = value * 100;
  if (percent === 0) return "0 %";
  if (percent < 0.05) return "<0.1 %";
  if (percent < 99) return `${percent.toFixed(1)} %`;
  if (percent < 99.995) return `${percent.toFixed(2)} %`;
  return percent < 100 ? ">99.99 %" : `${percent.toFixed(0)} %`;
}

export function quantity(value, unit) {
  const digits = Number.isInteger(value) ? 0 : 2;
  const number = value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${number} ${unit}`.trim();
}

// A length of time with three digits, in the unit that fits it.
export function duration(seconds) {
  const units = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ];
  const [size, unit] = units.find(([size]) => seconds >= size * 0.9995) ?? units[3];
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}
