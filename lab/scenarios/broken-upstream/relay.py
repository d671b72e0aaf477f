# SPDX-License-Identifier: Apache-2.0
"""A relay that tries again when the store behind it breaks a connection off, and that store.

relay.py front PORT STORE_PORT
relay.py store PORT EACH reset|close    after so many answers a connection is reset with a question in hand, or closed in order
"""

import socket
import struct
import sys
import threading
import time

TRIES = 5
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def listen(port, serve):
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def front(store):
    def ask(kept):
        for _ in range(TRIES):
            try:
                if not kept:
                    kept.append(socket.create_connection(("127.0.0.1", store)))
                kept[0].sendall(b"GET / HTTP/1.1\r\nHost: store\r\n\r\n")
                if kept[0].recv(4096):
                    return
            except OSError:
                pass
            kept.pop().close()

    def serve(client):
        kept = []
        while client.recv(4096):
            ask(kept)
            client.sendall(ANSWER)

    return serve


def store(each, how):
    def serve(connection):
        for _ in range(each):
            if not connection.recv(4096):
                return
            time.sleep(0.002)
            connection.sendall(ANSWER)
        if how == "reset" and connection.recv(4096):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return serve


if sys.argv[1] == "front":
    listen(int(sys.argv[2]), front(int(sys.argv[3])))
listen(int(sys.argv[2]), store(int(sys.argv[3]), sys.argv[4]))
