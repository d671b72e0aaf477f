// SPDX-License-Identifier: Apache-2.0
// A ticker: `events.js PORT EVERY_MS EVENTS MODE`. `GET /events` is answered with so many events, one each time so many ms have passed
// (`apart`), or with all of them when the first is due (`at-once`); everything else at once.
'use strict';
const http = require('http');

const [port, every, events] = process.argv.slice(2, 5).map(Number);
const apart = process.argv[5] === 'apart';

function tell(answer) {
  let told = 0;
  const timer = setInterval(() => {
    const now = apart ? 1 : events;
    for (let nth = 0; nth < now; nth += 1, told += 1) answer.write(`data: price ${told}\n\n`);
    if (told < events) return;
    clearInterval(timer);
    answer.end();
  }, every);
  answer.on('close', () => clearInterval(timer));
}

http.createServer((asked, answer) => {
  if (asked.url === '/events') {
    // Sent with the first event.
    answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
    tell(answer);
  } else {
    answer.end('hello');
  }
}).listen(port, '127.0.0.1');
