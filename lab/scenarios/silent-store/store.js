// SPDX-License-Identifier: Apache-2.0
// A store that answers at once for so many seconds, and then takes questions and says nothing any more.
"use strict";
const http = require("node:http");

const [port, seconds] = process.argv.slice(2).map(Number);
const silentFrom = Date.now() + seconds * 1000;

http
  .createServer((_, response) => {
    if (Date.now() < silentFrom) response.end("4711\n");
  })
  .listen(port, "127.0.0.1");
