# SPDX-License-Identifier: Apache-2.0
"""A web service with so many threads, each of which takes a connection, asks a store, answers and closes."""

import contextlib
import http.client
import http.server
import socket
import sys
import threading

PORT, STORE, THREADS = map(int, sys.argv[1:])


class Articles(http.server.BaseHTTPRequestHandler):
    wbufsize = -1  # head and body in one packet, which no delayed ACK can hold up

    def do_GET(self):
        store = self.server  # whoever made this handler has given it its thread's connection
        store.request("GET", "/articles")
        body = store.getresponse().read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def work(listener):
    store = http.client.HTTPConnection("127.0.0.1", STORE)
    while True:
        connection, client = listener.accept()
        with connection, contextlib.suppress(ConnectionError):
            Articles(connection, client, store)


def main():
    listener = socket.create_server(("127.0.0.1", PORT), backlog=128)
    threads = [threading.Thread(target=work, args=[listener]) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
