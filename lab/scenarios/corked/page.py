# SPDX-License-Identifier: Apache-2.0
"""Pages whose head and body go out in two writes, with TCP_CORK so that they share a segment. Arguments: port, and whether
the cork is drawn when an answer is written; else the kernel lets go of it by itself, 200 ms later."""

import socket
import sys
import threading

PORT, DRAWS = int(sys.argv[1]), sys.argv[2] == "draws"
BODY = b"page\n" * 100
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY)


def cork(client, on):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, on)


def serve(client):
    asked = b""
    while more := client.recv(4096):
        asked += more
        while b"\r\n\r\n" in asked:
            asked = asked.split(b"\r\n\r\n", 1)[1]
            cork(client, 1)
            client.sendall(HEAD)
            client.sendall(BODY)
            if DRAWS:
                cork(client, 0)
    client.close()


def main():
    listener = socket.create_server(("127.0.0.1", PORT), backlog=128)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


main()
