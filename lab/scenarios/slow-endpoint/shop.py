# SPDX-License-Identifier: Apache-2.0
"""A threaded web shop: items come at once, reports sleep before they do; in the twin they do not."""

import http.server
import json
import sys
import time

PORT, REPORT_SECONDS = int(sys.argv[1]), float(sys.argv[2])


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, which no delayed ACK can hold up

    def do_GET(self):
        if self.path.startswith("/reports/") and REPORT_SECONDS:
            time.sleep(REPORT_SECONDS)
        body = json.dumps([{"id": i, "price": i * 7 % 1000} for i in range(50)]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Shop).serve_forever()
