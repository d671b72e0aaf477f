// SPDX-License-Identifier: Apache-2.0
// Sends its answer in parts, one after the other. Arguments: port, parts, ms between two.
const [port, parts, every] = process.argv.slice(2).map(Number);
const PART = Buffer.alloc(1024, "x");

require("http")
  .createServer((_, answer) => {
    let left = parts;
    const send = () => {
      if (--left === 0) return answer.end(PART);
      answer.write(PART);
      return every > 0 ? setTimeout(send, every) : send();
    };
    answer.socket.setNoDelay(true);
    send();
  })
  .listen(port, "127.0.0.1");
