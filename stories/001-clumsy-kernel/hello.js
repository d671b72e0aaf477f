// SPDX-License-Identifier: Apache-2.0
// The Node.js program of the story: `hello.js PORT [HOST]` says hello.
"use strict";
const http = require("node:http");

const [port, host] = [Number(process.argv[2]), process.argv[3] ?? "127.0.0.1"];

http.createServer((_, response) => response.end("Hello World\n")).listen({ port, host, backlog: 511 });
