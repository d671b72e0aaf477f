# SPDX-License-Identifier: Apache-2.0
"""Event loops side by side, each a process with its own connections at one listener: `reports.py PORT LOOPS EVERY MS at-once|pieces`.

Answers at once, but now and then with a report that takes long to compute: in one go, or in pieces between which the others of the same
loop have their turn."""

import asyncio
import os
import socket
import sys
import time

PORT, LOOPS, EVERY, MILLISECONDS = map(int, sys.argv[1:5])
PIECE = 0.001 if sys.argv[5] == "pieces" else MILLISECONDS / 1000


def compute_report(seconds):
    until, total = time.perf_counter() + seconds, 7
    while time.perf_counter() < until:
        for number in range(200):
            total = (total * 31 + number) & 0xFFFFFFFF
    return total


async def serve_loop(listener):
    asked = 0

    async def serve(reader, writer):
        nonlocal asked
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                asked += 1
                left = MILLISECONDS / 1000 if asked % EVERY == 0 else 0
                while left > 0:
                    compute_report(PIECE)
                    left -= PIECE
                    await asyncio.sleep(0)  # after a turn for the others
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nnews\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, sock=listener)
    await server.serve_forever()


listener = socket.create_server(("127.0.0.1", PORT), backlog=256)
for _ in range(LOOPS - 1):
    if os.fork() == 0:
        break
asyncio.run(serve_loop(listener))
