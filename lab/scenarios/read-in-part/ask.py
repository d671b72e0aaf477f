# SPDX-License-Identifier: Apache-2.0
"""Clients that ask several things at once: `ask.py PORT CONNECTIONS QUESTIONS PAUSE_MS`. Each sends so many questions in one write,
and again after the pause, however many were answered."""

import asyncio
import sys

PORT, CONNECTIONS, QUESTIONS, PAUSE = (int(arg) for arg in sys.argv[1:])


async def read(reader):
    while await reader.read(4096):
        pass


async def ask():
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    reading = asyncio.create_task(read(reader))
    while not reading.done():
        writer.write(b"pressure of the boiler, please.\n" * QUESTIONS)
        await asyncio.sleep(PAUSE / 1000)


async def main():
    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))


asyncio.run(main())
