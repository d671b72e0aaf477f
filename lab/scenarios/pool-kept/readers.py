# SPDX-License-Identifier: Apache-2.0
"""Clients that ask now and then over a connection of their own, close it, and open the next.

    readers.py PORT CLIENTS QUESTIONS PAUSE_MS    so many questions a connection, with a pause behind each
"""

import contextlib
import socket
import sys
import threading
import time

port, clients, questions, pause_ms = map(int, sys.argv[1:])


def ask():
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(questions):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: board\r\n\r\n")
            connection.recv(4096)
            time.sleep(pause_ms / 1e3)


def each():
    while True:
        with contextlib.suppress(ConnectionError):
            ask()


for _ in range(clients):
    threading.Thread(target=each).start()
