# SPDX-License-Identifier: Apache-2.0
"""A service whose threads start a shell for each request, which starts a program that takes its time.

    convert.py PORT SECONDS      how long the program sleeps; 0 = there is none
"""

import http.server
import subprocess
import sys

port, seconds = int(sys.argv[1]), sys.argv[2]
SCRIPT = f"sleep {seconds}; echo converted" if float(seconds) > 0 else "echo converted"


class Convert(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, which no delayed ACK can hold up

    def do_GET(self):
        body = subprocess.run(["/bin/bash", "--norc", "-c", SCRIPT], stdout=subprocess.PIPE, check=True).stdout
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Convert).serve_forever()
