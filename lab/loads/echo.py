# SPDX-License-Identifier: Apache-2.0
"""Answers each message of SIZE bytes with as many: `echo.py PORT SIZE`. Whoever asked closes the connection."""

import asyncio
import sys

PORT, SIZE = map(int, sys.argv[1:])


async def serve(reader, writer):
    try:
        while True:
            writer.write(await reader.readexactly(SIZE))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", PORT, backlog=512)
    await server.serve_forever()


asyncio.run(main())
