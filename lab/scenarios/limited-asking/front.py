# SPDX-License-Identifier: Apache-2.0
"""A front whose requests each ask a store, over connections that take turns, so many at once as a semaphore lets:
`front.py PORT STORE CONNECTIONS AT_ONCE`."""

import asyncio
import sys

PORT, STORE, CONNECTIONS, AT_ONCE = map(int, sys.argv[1:])
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


async def ask(reader, writer):
    writer.write(b"GET /front HTTP/1.1\r\nHost: store\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)


async def main():
    free, room = asyncio.Queue(), asyncio.Semaphore(AT_ONCE)
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", STORE))

    async def serve(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                async with room:
                    connection = await free.get()
                    await ask(*connection)
                    free.put_nowait(connection)
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", PORT)
    await server.serve_forever()


asyncio.run(main())
