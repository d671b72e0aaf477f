# SPDX-License-Identifier: Apache-2.0
"""Passes requests on to a store, `relay.py PORT STORE new|kept`: over a new connection each, or over one that is kept."""

import http.client
import http.server
import socketserver
import sys

PORT, STORE, KEEPS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "kept"


class Relay(http.server.BaseHTTPRequestHandler):
    wbufsize = -1  # head and body in one packet, which no delayed ACK can hold up
    protocol_version = "HTTP/1.1"
    store = None

    def do_GET(self):
        status, body = 200, b""
        try:
            body = self.ask()
        except OSError as error:
            status, body = 502, f"{error}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def ask(self):
        if self.store is None:
            self.store = http.client.HTTPConnection("127.0.0.1", STORE)
        try:
            self.store.request("GET", "/")
            return self.store.getresponse().read()
        finally:
            if not KEEPS:
                self.store.close()
                self.store = None

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", PORT), Relay).serve_forever()
