// SPDX-License-Identifier: Apache-2.0
// Keeps the baskets of all customers; each request renews some of them and lists them.
"use strict";
const http = require("node:http");

const [port, customers] = process.argv.slice(2).map(Number);
const RENEWED = 5;

function basket(customer) {
  return { customer, items: Array.from({ length: 8 }, (_, i) => ({ article: customer + i, count: i })) };
}

const baskets = Array.from({ length: customers }, (_, customer) => basket(customer));
let turn = 0;

function renew() {
  turn = (turn + 7919) % customers;
  return (baskets[turn] = basket(turn));
}

http
  .createServer((_, response) => {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(Array.from({ length: RENEWED }, renew)));
  })
  .listen(port, "127.0.0.1");
