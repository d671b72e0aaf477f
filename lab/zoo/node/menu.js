// SPDX-License-Identifier: Apache-2.0
// A menu as JSON, by as many processes as the argument says.
'use strict';
const cluster = require('node:cluster');
const http = require('node:http');

const processes = Number(process.argv[2]);
const dishes = Array.from({ length: 40 }, (_, id) => ({ id, name: `dish ${id}`, cents: 400 + id * 35 }));

function serve() {
  const server = http.createServer((request, response) => {
    const body = JSON.stringify(dishes.map((dish) => ({ ...dish, price: (dish.cents / 100).toFixed(2) })));
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  });
  server.keepAliveTimeout = 600000;
  server.listen(8080, '127.0.0.1');
}

if (processes > 1 && cluster.isPrimary) {
  for (let i = 0; i < processes; i++) cluster.fork();
} else {
  serve();
}
