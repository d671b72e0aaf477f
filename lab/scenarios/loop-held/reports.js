// SPDX-License-Identifier: Apache-2.0
// Answers at once, but now and then with a report that takes long to compute: in one go, or in pieces between which the
// others have their turn.
"use strict";
const http = require("node:http");

const [port, every, milliseconds] = process.argv.slice(2, 5).map(Number);
const inPieces = process.argv[5] === "pieces";
let asked = 0;

function compute(until, sum) {
  while (process.hrtime.bigint() < until) {
    for (let i = 0; i < 1000; i++) sum = (sum * 31 + i) >>> 0;
  }
  return sum;
}

function report(left, sum, done) {
  const piece = inPieces ? Math.min(left, 1) : left;
  sum = compute(process.hrtime.bigint() + BigInt(Math.round(piece * 1e6)), sum);
  if (left <= piece) done(sum);
  else setImmediate(report, left - piece, sum, done); // after a turn for the others
}

http
  .createServer((_, response) => {
    asked += 1;
    if (asked % every === 0) report(milliseconds, 7, (sum) => response.end(String(sum)));
    else response.end("nothing new");
  })
  .listen(port, "127.0.0.1");
