# SPDX-License-Identifier: Apache-2.0
"""A store: `store.py PORT DELAY_MS [CERTIFICATE KEY]`. Answers each question from a timer, and closes the connection."""

import asyncio
import ssl
import sys

DELAY = float(sys.argv[2]) / 1000
ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n17\n"


async def serve(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        if DELAY:
            await asyncio.sleep(DELAY)
        writer.write(ANSWER)
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    own = None
    if sys.argv[3:]:
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(*sys.argv[3:])
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), ssl=own)
    await server.serve_forever()


asyncio.run(main())
