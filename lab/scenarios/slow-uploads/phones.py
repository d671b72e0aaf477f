# SPDX-License-Identifier: Apache-2.0
"""Clients that upload: each opens a connection, sends a photo in pieces with a pause before each, reads the answer, and rests.

    phones.py PORT CLIENTS PIECES PAUSE_MS GAP_MS
"""

import socket
import sys
import threading
import time

PIECE = bytes(4096)
port, clients, pieces, pause_ms, gap_ms = map(int, sys.argv[1:])


def upload():
    head = f"POST /photos HTTP/1.1\r\nHost: photos\r\nContent-Length: {pieces * len(PIECE)}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode())
        for _ in range(pieces):
            time.sleep(pause_ms / 1e3)
            connection.sendall(PIECE)
        while connection.recv(4096):
            pass


def each():
    while True:
        upload()
        time.sleep(gap_ms / 1e3)


for _ in range(clients):
    threading.Thread(target=each).start()
