// SPDX-License-Identifier: Apache-2.0
// Reads what is posted, and answers with it in capitals once all of it is there.
"use strict";
const http = require("node:http");

http
  .createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => response.end(Buffer.concat(parts).toString().toUpperCase()));
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
