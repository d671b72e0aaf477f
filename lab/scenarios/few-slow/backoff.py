# SPDX-License-Identifier: Apache-2.0
"""Answers at once, but for one request in so many, which waits on a timer of the loop: `backoff.py PORT ONE_IN SECONDS`. With 0
none does."""

import asyncio
import sys

PORT, ONE_IN, SECONDS = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
number = 0


async def serve(reader, writer):
    global number
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            number += 1
            if ONE_IN and number % ONE_IN == 0:
                await asyncio.sleep(SECONDS)
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", PORT)
    await server.serve_forever()


asyncio.run(main())
