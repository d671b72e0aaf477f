# SPDX-License-Identifier: Apache-2.0
"""An asyncio service that starts a program for one in so many of its requests, and waits for it in the handler.

    thumb.py PORT SECONDS EVERY HOW     how long the program sleeps; what it prints is read (HOW read), or only its end awaited (wait)
"""

import asyncio
import subprocess
import sys

port, seconds, every, how = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
requests = 0


def convert():
    if how == "read":
        subprocess.run(["sleep", seconds], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    else:
        subprocess.check_call(["sleep", seconds])


class Thumb(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        global requests
        if requests % every == 0:
            convert()
        requests += 1
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")


async def main():
    server = await asyncio.get_running_loop().create_server(Thumb, "127.0.0.1", port)
    await server.serve_forever()


asyncio.run(main())
