// SPDX-License-Identifier: Apache-2.0
// Answers each request at once with a line that it has made up before.
"use strict";
const http = require("node:http");

const quotes = Array.from({ length: 100 }, (_, i) => `quote ${i}\n`);
let asked = 0;

http.createServer((_, response) => response.end(quotes[asked++ % quotes.length])).listen(Number(process.argv[2]), "127.0.0.1");
