# SPDX-License-Identifier: Apache-2.0
"""A web service on asyncio: it counts its visitors, and twenty timers keep its books meanwhile."""
import asyncio
import json

counts = {}


async def keep_books(number):
    while True:
        await asyncio.sleep(0.05)
        counts[number] = counts.get(number, 0) + 1


async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            body = json.dumps({"items": [{"id": i, "name": f"item {i}"} for i in range(20)]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    books = [asyncio.create_task(keep_books(number)) for number in range(20)]
    server = await asyncio.start_server(serve, "127.0.0.1", 8080)
    async with server:
        await asyncio.gather(server.serve_forever(), *books)


asyncio.run(main())
