# SPDX-License-Identifier: Apache-2.0
"""Baskets, and the store of their prices.

    basket.py store PORT DELAY_MS          answers each line from a timer
    basket.py serve PORT STORE_PORT QUESTIONS   asks the store so many lines for each request, one after the other
"""

import asyncio
import http.server
import socket
import sys
import threading


def store(port, delay_ms):
    async def serve(reader, writer):
        while line := await reader.readline():
            await asyncio.sleep(delay_ms / 1000)
            writer.write(b"17 " + line)
        writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


def serve(port, store_port, questions):
    own = threading.local()

    class Basket(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, which no delayed ACK can hold up

        def do_GET(self):
            if not hasattr(own, "store"):
                own.socket = socket.create_connection(("127.0.0.1", store_port))
                own.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                own.store = own.socket.makefile("rb")
            for item in range(questions):
                own.socket.sendall(b"price of %d\n" % item)
                own.store.readline()
            body = b"basket\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Basket).serve_forever()


mode, *args = sys.argv[1:]
{"store": store, "serve": serve}[mode](*map(int, args))
