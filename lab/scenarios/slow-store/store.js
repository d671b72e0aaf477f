// SPDX-License-Identifier: Apache-2.0
// A store that answers after so many milliseconds: it waits for its own timer.
"use strict";
const http = require("node:http");

const [port, delay] = process.argv.slice(2, 4).map(Number);
const host = process.argv[4] ?? "127.0.0.1";
const value = JSON.stringify({ name: "basket", items: Array.from({ length: 20 }, (_, i) => `article ${i}`) });

function answer(response) {
  response.setHeader("Content-Type", "application/json");
  response.end(value);
}

http
  .createServer((_, response) => {
    if (delay > 0) setTimeout(answer, delay, response);
    else answer(response);
  })
  .listen(port, host);
