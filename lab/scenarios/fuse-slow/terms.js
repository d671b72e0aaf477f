// SPDX-License-Identifier: Apache-2.0
// Answers each request with the beginning of a file, which it reads anew in one of the pool's threads.
"use strict";
const fs = require("node:fs");
const http = require("node:http");

const [port, name] = process.argv.slice(2);
const file = fs.openSync(name, "r");

http
  .createServer((_, response) => {
    fs.read(file, Buffer.alloc(512), 0, 512, 0, (error, length, bytes) => {
      response.statusCode = error ? 500 : 200;
      response.end(bytes.subarray(0, length));
    });
  })
  .listen(Number(port), "127.0.0.1");
