# SPDX-License-Identifier: Apache-2.0
"""A service with a thread that reads and two that answer: `tickets.py PORT NAP_MS`. They look for work every so many ms; with 0 they
are told when there is some."""

import collections
import queue
import selectors
import socket
import sys
import threading
import time

PORT, NAP = int(sys.argv[1]), int(sys.argv[2]) / 1000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nticket\n"


class Looked:
    """A queue whose takers look again and again."""

    def __init__(self):
        self.work = collections.deque()

    def put(self, item):
        self.work.append(item)

    def get(self):
        while True:
            try:
                return self.work.popleft()
            except IndexError:
                time.sleep(NAP)


def answer(work):
    while True:
        connection = work.get()
        try:
            connection.sendall(ANSWER)
        except OSError:
            pass


def main():
    work = Looked() if NAP else queue.SimpleQueue()
    for _ in range(2):
        threading.Thread(target=answer, args=(work,), daemon=True).start()
    listener = socket.create_server(("127.0.0.1", PORT), backlog=128)
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(connection, selectors.EVENT_READ)
            elif key.fileobj.recv(65536):
                work.put(key.fileobj)
            else:
                ready.unregister(key.fileobj)
                key.fileobj.close()


main()
