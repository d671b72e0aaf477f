// SPDX-License-Identifier: Apache-2.0
// A menu as JSON, by as many processes as the first argument says, at the port of the second one; behind TLS where a certificate and
// its key follow.
'use strict';
const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');

const processes = Number(process.argv[2]);
const port = Number(process.argv[3] ?? 8080);
const [cert, key] = process.argv.slice(4).map((file) => fs.readFileSync(file));
const dishes = Array.from({ length: 40 }, (_, id) => ({ id, name: `dish ${id}`, cents: 400 + id * 35 }));

function serve() {
  const answer = (request, response) => {
    const body = JSON.stringify(dishes.map((dish) => ({ ...dish, price: (dish.cents / 100).toFixed(2) })));
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  };
  const server = cert ? https.createServer({ cert, key }, answer) : http.createServer(answer);
  server.keepAliveTimeout = 600000;
  server.listen(port, '127.0.0.1');
}

if (processes > 1 && cluster.isPrimary) {
  for (let i = 0; i < processes; i++) cluster.fork();
} else {
  serve();
}
