#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server that takes every request: collector.py PORT."""
import http.server
import sys


class Taker(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Taker).serve_forever()
