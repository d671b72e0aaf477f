// SPDX-License-Identifier: Apache-2.0
// Prices a basket: `checkout.js PORT BACKLOG ROUNDS [HOST]`. Each request costs so many rounds of synchronous work, in which the loop
// takes no connection.
"use strict";
const http = require("node:http");

const [port, backlog, rounds] = process.argv.slice(2, 5).map(Number);
const host = process.argv[5] ?? "127.0.0.1";

function price(rounds) {
  let sum = 0;
  for (let i = 0; i < rounds * 1e6; i++) sum = (sum * 31 + i) % 1000003;
  return sum;
}

http
  .createServer((_, response) => {
    response.setHeader("Connection", "close");
    response.end(`${price(rounds)}\n`);
  })
  .listen({ port, host, backlog });
