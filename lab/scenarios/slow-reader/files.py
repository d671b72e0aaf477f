# SPDX-License-Identifier: Apache-2.0
"""A server of large answers, and clients that read them.

    files.py serve PORT SIZE SNDBUF                       answers each question with so many bytes
    files.py ask HOST PORT CONNECTIONS GAP_MS RCVBUF PACE FRESH   asks again so long after an answer; reads so many bytes a
                                          ms; FRESH is 1 where each question has a connection of its own

A buffer of 0 is left to the kernel, a pace of 0 is as fast as it comes.
"""

import socket
import sys
import threading
import time

CHUNK = 65536


def serve(port, size, sndbuf):
    listener = socket.create_server(("0.0.0.0", port), backlog=64)
    answer = size.to_bytes(8, "big") + bytes(size)

    def each(connection):
        if sndbuf:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while connection.recv(16):
            connection.sendall(answer)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=each, args=[connection], daemon=True).start()


def read(connection, pace):
    size, got = None, 0
    while size is None or got < size:
        part = connection.recv(CHUNK if size is not None else 8)
        if not part:
            sys.exit("files: the server went away")
        if size is None:
            size = int.from_bytes(part, "big")
            continue
        got += len(part)
        if pace:
            time.sleep(len(part) / pace / 1e3)


def ask(host, port, connections, gap_ms, rcvbuf, pace, fresh):
    def connected():
        connection = socket.socket()
        if rcvbuf:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        connection.connect((host, port))
        return connection

    def each():
        connection = connected()
        while True:
            connection.sendall(b"again\n")
            read(connection, pace)
            time.sleep(gap_ms / 1e3)
            if fresh:
                connection.close()
                connection = connected()

    for _ in range(connections):
        threading.Thread(target=each, daemon=True).start()
    threading.Event().wait()


mode, *args = sys.argv[1:]
if mode == "ask":
    ask(args[0], *map(int, args[1:]))
else:
    serve(*map(int, args))
