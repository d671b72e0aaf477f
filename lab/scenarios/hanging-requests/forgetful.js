// SPDX-License-Identifier: Apache-2.0
// Answers at once, but for one request in so many, which it forgets: `forgetful.js PORT ONE_IN`. With 0 it forgets none.
'use strict';
const http = require('http');

const [port, oneIn] = process.argv.slice(2).map(Number);
const forgotten = [];
let number = 0;

http.createServer((request, response) => {
  number += 1;
  if (oneIn && number % oneIn === 0) forgotten.push(response);
  else response.end('done\n');
}).listen(port, '127.0.0.1');
