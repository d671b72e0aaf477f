# SPDX-License-Identifier: Apache-2.0
"""Subscribers of a ticker: `listen.py PORT SUBSCRIBERS RATE`. Each asks for events again when it has had all; beside them one client
asks for something that is answered at once, so many times a second."""

import asyncio
import random
import sys

PORT, SUBSCRIBERS, RATE = (int(arg) for arg in sys.argv[1:])


async def ask(path):
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: ticker\r\nConnection: close\r\n\r\n".encode())
    while await reader.read(65536):
        pass
    writer.close()


async def subscriber():
    while True:
        await asyncio.sleep(random.random())
        await ask("/events")


async def asker():
    while True:
        await ask("/hello")
        await asyncio.sleep(1 / RATE)


async def main():
    await asyncio.gather(asker(), *(subscriber() for _ in range(SUBSCRIBERS)))


asyncio.run(main())
