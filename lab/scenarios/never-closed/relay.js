// SPDX-License-Identifier: Apache-2.0

// Answers each HTTP request with a few bytes. Its connections may be half open: a client that closes ends its own side
// alone, and the other is ended by whoever handles that. With `forgets` nobody does.
'use strict';

const net = require('net');

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes';
const [port, forgets] = process.argv.slice(2);

net.createServer({ allowHalfOpen: true }, (socket) => {
  let asked = '';
  socket.on('data', (bytes) => {
    asked += bytes.toString('latin1');
    while (asked.includes('\r\n\r\n')) {
      asked = asked.slice(asked.indexOf('\r\n\r\n') + 4);
      socket.write(ANSWER);
    }
  });
  if (forgets !== 'forgets') socket.on('end', () => socket.end());
  socket.on('error', () => socket.destroy());
}).listen(Number(port), '127.0.0.1');
