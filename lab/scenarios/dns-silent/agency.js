// SPDX-License-Identifier: Apache-2.0
// A web service that looks up who sells what is asked for, each time, before it answers.
"use strict";
const dns = require("node:dns");
const http = require("node:http");

const port = Number(process.argv[2]);

http
  .createServer((_, response) => {
    dns.lookup("shop.example.test", (error, address) => {
      response.statusCode = error ? 502 : 200;
      response.end(error ? "nobody" : address);
    });
  })
  .listen(port, "127.0.0.1");
