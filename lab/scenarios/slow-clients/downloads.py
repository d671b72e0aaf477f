# SPDX-License-Identifier: Apache-2.0
"""A web service with so many threads, each of which takes a connection, answers and closes; and clients of its large answers.

    downloads.py serve PORT THREADS SIZE      answers /large with so many bytes, anything else with a few
    downloads.py read PORT CLIENTS PACE GAP_MS    each reads a large answer, so many bytes a ms, and the next one after a gap

A pace of 0 is as fast as it comes.
"""

import contextlib
import socket
import sys
import threading
import time

CHUNK = 65536


def answer(connection, large):
    asked = connection.recv(4096)
    body = large if asked.startswith(b"GET /large ") else b"ok\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    connection.sendall(head + body)


def serve(port, threads, size):
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    large = bytes(size)

    def work():
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(ConnectionError):
                answer(connection, large)

    for _ in range(threads):
        threading.Thread(target=work).start()


def read(port, clients, pace, gap_ms):
    def each():
        while True:
            with socket.socket() as connection:
                # As far as such clients are: else all of an answer fits into the buffers on the way, and no write waits.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                connection.connect(("127.0.0.1", port))
                connection.sendall(b"GET /large HTTP/1.1\r\nHost: downloads\r\n\r\n")
                while part := connection.recv(CHUNK):
                    if pace:
                        time.sleep(len(part) / pace / 1e3)
            time.sleep(gap_ms / 1e3)

    for _ in range(clients):
        threading.Thread(target=each).start()


mode, *numbers = sys.argv[1:]
(read if mode == "read" else serve)(*map(int, numbers))
