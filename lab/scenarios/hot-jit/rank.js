// SPDX-License-Identifier: Apache-2.0
// Ranks articles for a reader, at full speed. "naive" hashes every article's text again for each request in one
// function of its own; "cached" has the hashes, and what is left is ordinary work of many functions.
"use strict";
const http = require("node:http");

const [port, way] = process.argv.slice(2);
const WORDS = ["river", "stone", "market", "winter", "engine", "garden", "letter", "orbit", "copper", "island"];
const articles = Array.from({ length: 300 }, (_, i) => ({
  id: i,
  title: `${WORDS[i % 10]} ${WORDS[(i * 7) % 10]}`,
  text: Array.from({ length: 60 }, (_, k) => WORDS[(i * 3 + k * k) % 10]).join(" "),
}));

// Plain JavaScript, which the engine compiles at run time: no name of it is known outside.
function hash(text, seed) {
  let h = seed;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
    h ^= h >>> 13;
  }
  return h >>> 0;
}

const hashes = articles.map(({ text }) => hash(text, 1));

function vocabulary(text) {
  const counts = new Map();
  for (const word of text.split(" ")) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, change));
    }
    row = next;
  }
  return row[b.length];
}

function page(list) {
  return list.map(({ id, title }) => `<li id="${id}">${title.toUpperCase().replaceAll(" ", "&nbsp;")}</li>`).join("");
}

function rank(reader) {
  const order = way === "naive" ? articles.map(({ text }) => hash(text, reader)) : hashes.map((h) => h ^ reader);
  const best = articles.slice(0, 40).sort((a, b) => order[a.id] - order[b.id] || a.id - b.id);
  const words = vocabulary(best[0].text);
  const near = best.slice(0, 12).map(({ title }) => distance(title, "winter garden"));
  const stored = JSON.parse(JSON.stringify(best.slice(0, 10)));
  return { page: page(best), words, near, stored };
}

http
  .createServer((_, response) => {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(rank(7)));
  })
  .listen(Number(port), "127.0.0.1");
