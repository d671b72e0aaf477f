# SPDX-License-Identifier: Apache-2.0
"""Clients of a chat: `talk.py PORT LISTENERS ROOMS RATE`. Each listener polls its room again and again; one says something so many
times a second, in one room after the other."""

import asyncio
import sys

PORT, LISTENERS, ROOMS, RATE = (int(arg) for arg in sys.argv[1:])


async def connect():
    return await asyncio.open_connection("127.0.0.1", PORT)


async def ask(connection, path):
    reader, writer = connection
    writer.write(f"GET {path} HTTP/1.1\r\nHost: chat\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
    await reader.readexactly(int(length))


async def listen(room):
    connection = await connect()
    while True:
        await ask(connection, f"/poll/{room}")


async def talk():
    connection = await connect()
    room = 0
    while True:
        await ask(connection, f"/say/{room}")
        room = (room + 1) % ROOMS
        await asyncio.sleep(1 / RATE)


async def main():
    await asyncio.gather(talk(), *(listen(nth % ROOMS) for nth in range(LISTENERS)))


asyncio.run(main())
