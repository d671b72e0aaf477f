# SPDX-License-Identifier: Apache-2.0
"""Asks a web service for a page from an address of our own choice, over and over: `knock.py ADDRESS PORT SOURCE CLIENTS`."""

import contextlib
import socket
import sys
import threading
import time

HOST, PORT, SOURCE, CLIENTS = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])


def ask():
    while True:
        with contextlib.suppress(OSError):
            address = (SOURCE, 0)
            with socket.create_connection((HOST, PORT), timeout=3, source_address=address) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: store\r\nConnection: close\r\n\r\n")
                while connection.recv(4096):
                    pass
        time.sleep(0.1)


threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
