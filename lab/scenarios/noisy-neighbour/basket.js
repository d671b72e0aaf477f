// SPDX-License-Identifier: Apache-2.0
// A shopping basket: parses the stored one, prices it, renders it. Moderate, spread-out work.
"use strict";
const crypto = require("node:crypto");
const http = require("node:http");

const stored = JSON.stringify(
  Array.from({ length: 600 }, (_, i) => ({
    article: crypto.createHash("md5").update(String(i)).digest("hex"),
    pieces: 1 + (i % 7),
    cents: 100 + ((i * 37) % 9900),
  })),
);

function render() {
  const lines = JSON.parse(stored).sort((a, b) => a.article.localeCompare(b.article));
  const total = lines.reduce((sum, line) => sum + line.pieces * line.cents, 0);
  const body = JSON.stringify({ lines, total });
  return JSON.stringify({ body, etag: crypto.createHash("sha256").update(body).digest("hex") });
}

http
  .createServer((_, response) => {
    response.setHeader("Content-Type", "application/json");
    response.end(render());
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
