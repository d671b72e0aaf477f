# SPDX-License-Identifier: Apache-2.0
"""Asks a store for each request, over a connection of its own: at a first address, and where none is made there in time, at the
next: `quotes.py PORT STORE FIRST SECONDS`."""

import asyncio
import sys

PORT, STORE, FIRST, SECONDS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


async def connected():
    try:
        return await asyncio.wait_for(asyncio.open_connection(FIRST, STORE), SECONDS)
    except (asyncio.TimeoutError, OSError):
        return await asyncio.open_connection("127.0.0.1", STORE)


async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            answers, store = await connected()
            store.write(b"GET /quotes HTTP/1.1\r\nHost: store\r\n\r\n")
            await answers.readuntil(b"\r\n\r\n")
            store.close()
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", PORT)
    await server.serve_forever()


asyncio.run(main())
