// SPDX-License-Identifier: Apache-2.0
// Answers after 5 ms, and every twenty-fifth request after 25: the last part of its path is its number.
'use strict';

const http = require('http');

http
  .createServer((request, response) => {
    const number = Number(request.url.split('/').pop());
    setTimeout(() => response.end('done'), number % 25 === 0 ? 25 : 5);
  })
  .listen(Number(process.argv[2]), '127.0.0.1')
  // An open loop leaves connections unused for longer than the usual five seconds.
  .keepAliveTimeout = 0;
