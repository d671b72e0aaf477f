# SPDX-License-Identifier: Apache-2.0
"""Remote calls over TCP: a header that says how long the body is, and the body.

    rpc.py serve PORT WRITES NODELAY [STORE]   answers, each in so many writes; asks a store on a local port before
    rpc.py store PORT DELAY_MS                 the store: answers after so long
    rpc.py ask HOST PORT CONNECTIONS THINK_MS  asks again so long after an answer, on each connection
"""

import socket
import struct
import sys
import threading
import time

HEADER = struct.Struct("!IQ")
BODY = b"x" * 100


def take(connection, size):
    """Exactly so many bytes; none at the end."""
    got = b""
    while len(got) < size:
        part = connection.recv(size - len(got))
        if not part:
            return b""
        got += part
    return got


def receive(connection):
    header = take(connection, HEADER.size)
    return take(connection, HEADER.unpack(header)[0]) if header else b""


def send(connection, body, writes=1):
    header = HEADER.pack(len(body), 0)
    for part in [header, body] if writes == 2 else [header + body]:
        connection.sendall(part)


def each_client(port, serve):
    listener = socket.create_server(("0.0.0.0", port), backlog=64)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=[connection], daemon=True).start()


def server(port, writes, nodelay, store_port=None):
    def serve(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
        store = store_port and socket.create_connection(("127.0.0.1", store_port))
        while body := receive(connection):
            if store:
                send(store, body)
                body = receive(store)
            send(connection, body, writes)

    each_client(port, serve)


def store(port, delay_ms):
    def serve(connection):
        while body := receive(connection):
            time.sleep(delay_ms / 1e3)
            send(connection, body)

    each_client(port, serve)


def client(host, port, connections, think_ms):
    def ask():
        connection = socket.create_connection((host, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            send(connection, BODY)
            if not receive(connection):
                sys.exit("rpc: the server went away")
            time.sleep(think_ms / 1e3)

    for _ in range(connections):
        threading.Thread(target=ask, daemon=True).start()
    threading.Event().wait()


mode, *args = sys.argv[1:]
if mode == "ask":
    client(args[0], *map(int, args[1:]))
else:
    {"serve": server, "store": store}[mode](*map(int, args))
