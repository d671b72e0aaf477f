// SPDX-License-Identifier: Apache-2.0
// A front whose requests each ask a store, over as many connections as it is told.
//
//   front.js PORT STORE CONNECTIONS

const http = require("node:http");

const [port, store, connections] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, maxSockets: connections });

http
  .createServer((_, response) => {
    const failed = () => {
      response.statusCode = 502;
      response.end();
    };
    const question = http.get({ host: "127.0.0.1", port: store, agent }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => response.end(Buffer.concat(parts)));
    });
    question.on("error", failed);
  })
  .listen(port, "127.0.0.1");
