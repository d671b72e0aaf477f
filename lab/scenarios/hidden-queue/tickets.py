# SPDX-License-Identifier: Apache-2.0
"""Sells tickets: `tickets.py PORT DELAY_MS`. Each sale takes so long under one lock of the event loop, so that sales stand in
a queue that only asyncio knows. With a delay of 0 there is neither."""

import asyncio
import sys

DELAY = float(sys.argv[2]) / 1000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsold\n"


async def sell(lock):
    if DELAY:
        async with lock:
            await asyncio.sleep(DELAY)


async def main():
    lock = asyncio.Lock()

    async def serve(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await sell(lock)
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
