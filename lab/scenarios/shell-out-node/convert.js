// SPDX-License-Identifier: Apache-2.0
// A service whose loop starts a shell for each request, which starts a program that takes its time.
//
//   convert.js PORT SECONDS      how long the program sleeps; 0 = there is none

const { execFile } = require("node:child_process");
const http = require("node:http");

const [port, seconds] = process.argv.slice(2);
const script = Number(seconds) > 0 ? `sleep ${seconds}; echo converted` : "echo converted";

http
  .createServer((_, response) => {
    // Its standard input is a socket, as under a remote shell's daemon: bash would read the user's start-up files then.
    execFile("/bin/bash", ["--norc", "-c", script], (error, body) => {
      response.statusCode = error ? 500 : 200;
      response.end(body);
    });
  })
  .listen(Number(port), "127.0.0.1");
