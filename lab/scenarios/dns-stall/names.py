# SPDX-License-Identifier: Apache-2.0
"""Two name servers that know one address for all names; the first of them may be one that never answers."""

import socket
import struct
import sys
import threading

FIRST, SECOND, SILENT = sys.argv[1], sys.argv[2], sys.argv[3:] == ["silent"]
TYPE_A = b"\0\1"


def answer(query):
    end = query.index(b"\0", 12) + 5  # after the name: its type and class
    record = b""
    if query[end - 4 : end - 2] == TYPE_A:
        # The name is the one asked for, at byte 12; the address lives for 0 s.
        record = struct.pack("!H2s2sIH4s", 0xC00C, TYPE_A, b"\0\1", 0, 4, socket.inet_aton("127.0.0.1"))
    header = struct.pack("!2sHHHHH", query[:2], 0x8180, 1, bool(record), 0, 0)
    return header + query[12:end] + record


def serve(questions, silent):
    while True:
        question, asker = questions.recvfrom(512)
        if not silent:
            questions.sendto(answer(question), asker)


for address, silent in ((FIRST, SILENT), (SECOND, False)):
    questions = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    questions.bind((address, 53))
    threading.Thread(target=serve, args=[questions, silent]).start()
# TCP, as name servers have it. Nobody asks there: who can connect knows that both are ready.
listener = socket.create_server((FIRST, 53))
