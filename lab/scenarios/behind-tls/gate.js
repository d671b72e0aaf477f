// SPDX-License-Identifier: Apache-2.0
// A gate: `gate.js PORT STORE_PORT`. Clients come over TLS, and each of their requests asks the store over a TLS connection of its own.
'use strict';
const fs = require('fs');
const https = require('https');

const [port, storePort] = process.argv.slice(2).map(Number);
const agent = new https.Agent({ keepAlive: false });
const own = { key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem') };

https.createServer(own, (request, response) => {
  const question = { host: '127.0.0.1', port: storePort, path: '/stock', agent, rejectUnauthorized: false };
  https.get(question, (answer) => {
    answer.resume();
    answer.on('end', () => response.end('passed\n'));
  }).on('error', () => { response.statusCode = 502; response.end(); });
}).listen(port, '127.0.0.1');
