// SPDX-License-Identifier: Apache-2.0
// Answers with what the store says, over connections that it keeps.
"use strict";
const http = require("node:http");

const [port, store] = process.argv.slice(2, 4).map(Number);
const host = process.argv[4] ?? "127.0.0.1";
const agent = new http.Agent({ keepAlive: true });

http
  .createServer((_, response) => {
    http.get({ host, port: store, agent }, (answer) => answer.pipe(response));
  })
  .listen(port, "127.0.0.1");
