# SPDX-License-Identifier: Apache-2.0
"""A store of files that are sent to it, a thread for each client: `store.py PORT answers|silent`.

Who asks with `Expect: 100-continue` whether it may send the file is told so, or not.
"""

import socket
import sys
import threading


def take(connection, answers):
    with connection, connection.makefile("rb") as stream:
        size = 0
        for line in iter(stream.readline, b"\r\n"):
            if not line:
                return
            name, _, value = line.lower().partition(b":")
            if name == b"content-length":
                size = int(value)
            if name == b"expect" and answers:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        stream.read(size)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")


port, mode = int(sys.argv[1]), sys.argv[2]
listener = socket.create_server(("127.0.0.1", port), backlog=128)
while True:
    accepted, _ = listener.accept()
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=take, args=(accepted, mode == "answers")).start()
