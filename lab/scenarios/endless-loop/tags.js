// SPDX-License-Identifier: Apache-2.0
// A service that checks what it is asked with a pattern of many ways to fail: text that does not match takes for ever.
//
//   tags.js PORT REQUESTS      after so many requests comes such a text; 0 = never
"use strict";
const http = require("node:http");

const [port, requests] = process.argv.slice(2).map(Number);
const TAGS = /^(\w+,?)+$/;
const good = "red,green,blue,cyan,black";
const bad = `${"a".repeat(64)}!`;
let asked = 0;

http
  .createServer((_, response) => {
    asked += 1;
    const text = asked === requests ? bad : good;
    response.end(TAGS.test(text) ? "taken\n" : "refused\n");
  })
  .listen(port, "127.0.0.1");
