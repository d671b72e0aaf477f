// SPDX-License-Identifier: Apache-2.0
// The Node.js program of the story: `hello.js PORT [HOST]` says hello, with a list of what there is.
"use strict";
const http = require("node:http");

const [port, host] = [Number(process.argv[2]), process.argv[3] ?? "127.0.0.1"];

function page() {
  const rows = Array.from({ length: 150 }, (_, nth) => `<li>${nth}: ${(nth * 7919).toString(36)}</li>`);
  return `<p>Hello World</p><ul>${rows.join("")}</ul>\n`;
}

http.createServer((_, response) => response.end(page())).listen({ port, host, backlog: 511 });
