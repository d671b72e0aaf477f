// SPDX-License-Identifier: Apache-2.0
// Answers every request with the same list, made anew: JSON is what most of a small API's time goes to.
'use strict';

const http = require('http');

function items() {
  return Array.from({ length: 200 }, (_, id) => ({ id, name: `item ${id}`, tags: ['a', 'b', String(id % 7)] }));
}

http
  .createServer((request, response) => {
    const body = JSON.stringify(items());
    response.writeHead(200, { 'Content-Length': body.length });
    response.end(body);
  })
  .listen(Number(process.argv[2]), '127.0.0.1')
  // An open loop leaves connections unused for longer than the usual five seconds.
  .keepAliveTimeout = 0;
