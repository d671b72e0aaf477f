# SPDX-License-Identifier: Apache-2.0
"""A page that is made of what a store sends: all of it, for each request. Arguments: port, the store's port."""

import http.client
import http.server
import sys

STORE = int(sys.argv[2])


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        store = http.client.HTTPConnection("127.0.0.1", STORE)
        store.request("GET", "/")
        body = str(len(store.getresponse().read())).encode()
        store.close()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
