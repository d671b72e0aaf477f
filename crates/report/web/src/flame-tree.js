// SPDX-License-Identifier: Apache-2.0
// The tree as the page carries it, [name, kind, module, value, children] with indices into the strings; in a graph
// of differences the values before and after follow.
export function unpack([name, kind, module, value, children, before, after], strings) {
  return {
    name: strings[name],
    kind: strings[kind],
    module: strings[module],
    value,
    before,
    after,
    children: children.map((child) => unpack(child, strings)),
  };
}

// What the frames that satisfy `match` cover together: a match below another is part of it already.
export function covered(node, match) {
  if (match(node)) return node.value;
  return node.children.reduce((sum, child) => sum + covered(child, match), 0);
}
