# SPDX-License-Identifier: Apache-2.0
"""A web service of processes, each of which takes a connection, answers it and closes it: pages.py PORT PROCESSES."""

import hashlib
import os
import socket
import sys


def answer(connection):
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(4096)
        if not part:
            return
        request += part
    body = hashlib.sha256(request).hexdigest().encode() + b"\n"
    connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def serve(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            answer(connection)


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0:
        break
serve(listener)
