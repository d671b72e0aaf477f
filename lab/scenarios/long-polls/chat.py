# SPDX-License-Identifier: Apache-2.0
"""A chat: `chat.py PORT`. `GET /poll/ROOM` is answered when somebody asks for `GET /say/ROOM`, which is answered at once."""

import asyncio
import sys

rooms = {}


def answer(text):
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            _, what, room = head.split(b" ", 2)[1].decode().split("/")
            if what == "poll":
                said = asyncio.get_running_loop().create_future()
                rooms.setdefault(room, []).append(said)
                writer.write(answer(await said))
            else:
                waiting = rooms.pop(room, [])
                for said in waiting:
                    if not said.done():
                        said.set_result("said")
                writer.write(answer(str(len(waiting))))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
