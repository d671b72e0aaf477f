// SPDX-License-Identifier: Apache-2.0
// A page for so many connections at most: those beyond are closed as soon as they are made.
"use strict";

const http = require("http");

const [port, most] = process.argv.slice(2).map(Number);
const server = http.createServer((request, response) => response.end("in\n"));
server.keepAliveTimeout = 600000;
server.maxConnections = most;
server.listen(port, "127.0.0.1");
