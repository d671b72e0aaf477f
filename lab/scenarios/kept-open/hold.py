# SPDX-License-Identifier: Apache-2.0
"""Clients that ask once and keep their connections: `hold.py PORT CONNECTIONS`."""

import socket
import sys
import time

PORT, CONNECTIONS = (int(arg) for arg in sys.argv[1:])

held = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(CONNECTIONS)]
for connection in held:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: desk\r\n\r\n")
    connection.recv(4096)
while True:
    time.sleep(60)
