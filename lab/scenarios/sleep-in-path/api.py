# SPDX-License-Identifier: Apache-2.0
"""A threaded web service that looks for its result in steps: the fault sleeps between two looks."""

import http.server
import json
import sys
import time

PORT, STEP_SECONDS = int(sys.argv[1]), float(sys.argv[2])


def result():
    """The first look never finds it."""
    for look in range(2):
        if look:
            return {"articles": [{"id": i, "price": i * 7 % 1000} for i in range(50)]}
        if STEP_SECONDS:
            time.sleep(STEP_SECONDS)
    return {}


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, which no delayed ACK can hold up

    def do_GET(self):
        body = json.dumps(result()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Api).serve_forever()
