// SPDX-License-Identifier: Apache-2.0
// Making elements. Text only ever goes in as text: names come from the observed target and may be markup.
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
