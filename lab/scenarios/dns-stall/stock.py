# SPDX-License-Identifier: Apache-2.0
"""A threaded web service that says which shop has an article; it looks the shop's address up for each request."""

import http.server
import json
import socket
import sys

PORT = int(sys.argv[1])


class Stock(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, else the body waits for the client's delayed ACK

    def do_GET(self):
        found = socket.getaddrinfo("shop.example.test", 80, type=socket.SOCK_STREAM)
        body = json.dumps({"shop": [address for *_, address in found]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Stock).serve_forever()
