# SPDX-License-Identifier: Apache-2.0
"""A loop over edge-triggered epoll: `gauges.py PORT once|all`. Each question is a line of 32 bytes; with `once` one is read whenever
the poll tells of bytes, and what came with it stays there until more comes."""

import select
import socket
import sys

QUESTION = 32
PORT, ALL = int(sys.argv[1]), sys.argv[2] == "all"


def serve(connection):
    """Whether it goes on."""
    while True:
        try:
            asked = connection.recv(QUESTION)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not asked:
            return False
        connection.sendall(b"17 bar\n")
        if not ALL:
            return True


def main():
    listener = socket.create_server(("127.0.0.1", PORT), backlog=128)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    connections = {}
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                connection, _ = listener.accept()
                connection.setblocking(False)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = connection
                poll.register(connection, select.EPOLLIN | select.EPOLLET)
            elif not serve(connections[fd]):
                connections.pop(fd).close()


main()
