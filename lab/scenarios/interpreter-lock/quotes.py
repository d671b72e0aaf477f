# SPDX-License-Identifier: Apache-2.0
"""Gives quotes: `quotes.py PORT REPORT_MS`. A thread for each client; a thread beside them computes a report for so many of each
300 ms, and none with 0. One thread at a time runs in the interpreter: others get their turn after 5 ms of that."""

import os
import socket
import sys
import threading
import time

REPORT = float(sys.argv[2]) / 1000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nquote\n"


def report():
    while True:
        until, total = time.monotonic() + REPORT, 0
        while time.monotonic() < until:
            total += sum(range(1000))
        time.sleep(0.3 - REPORT)


def serve(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while connection.recv(4096):
        os.stat(__file__)  # the interpreter's lock is given away for each call
        os.stat(sys.executable)
        connection.sendall(ANSWER)


if REPORT:
    threading.Thread(target=report, daemon=True).start()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
