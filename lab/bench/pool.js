// SPDX-License-Identifier: Apache-2.0
// A service whose limit is a pool: `pool.js PORT HELD MS`, each request holds one of HELD for MS.
'use strict';

const http = require('http');
const [port, held, ms] = process.argv.slice(2).map(Number);
const waiting = [];
let free = held;

function take(response) {
  free--;
  setTimeout(() => {
    response.end('done\n');
    free++;
    if (waiting.length > 0) take(waiting.shift());
  }, ms);
}

const server = http.createServer((request, response) => (free > 0 ? take(response) : waiting.push(response)));
server.keepAliveTimeout = 0;
server.listen(port, '127.0.0.1');
