// SPDX-License-Identifier: Apache-2.0
// A front: `front.js PORT STORE_PORT`. Lists are answered at once; each order asks the store over a connection of its own.
'use strict';
const http = require('http');

const [port, storePort] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: false });

function order(response) {
  const question = { host: '127.0.0.1', port: storePort, path: '/stock', agent };
  http.get(question, (answer) => {
    answer.resume();
    answer.on('end', () => response.end('ordered\n'));
  }).on('error', () => { response.statusCode = 502; response.end(); });
}

http.createServer((request, response) => {
  if (request.url.startsWith('/order')) order(response);
  else response.end('list\n');
}).listen(port, '127.0.0.1');
