# SPDX-License-Identifier: Apache-2.0
"""Orders, whose threads all have one name.

    orders.py queue PORT POLL_MS        answers each line after that time: there is no news
    orders.py serve PORT STORE_PORT QUEUE_PORT CONSUMERS   asks the store for each request; so many threads poll the queue all the time
"""

import asyncio
import http.client
import http.server
import socket
import sys
import threading


def queue(port, poll_ms):
    async def serve(reader, writer):
        while await reader.readline():
            await asyncio.sleep(poll_ms / 1000)
            writer.write(b"nothing\n")
        writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


def consume(queue_port):
    with socket.create_connection(("127.0.0.1", queue_port)) as connection, connection.makefile("rb") as news:
        while True:
            connection.sendall(b"poll\n")
            news.readline()


def serve(port, store_port, queue_port, consumers):
    own = threading.local()

    class Order(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, which no delayed ACK can hold up

        def do_GET(self):
            if not hasattr(own, "store"):
                own.store = http.client.HTTPConnection("127.0.0.1", store_port)
            own.store.request("GET", "/")
            body = own.store.getresponse().read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    for _ in range(consumers):
        threading.Thread(target=consume, args=(queue_port,), daemon=True).start()
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Order).serve_forever()


mode, *args = sys.argv[1:]
{"queue": queue, "serve": serve}[mode](*map(int, args))
