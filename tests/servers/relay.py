# SPDX-License-Identifier: Apache-2.0
"""A relay before a server of HTTP, at which a test sees each request and may hold or answer it."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OF_A_HOP = ("connection", "expect", "keep-alive", "transfer-encoding")


class Relay:
    """`before(method, path)` is called before a request goes on, and may return (status, body)
    for the client instead. `after(method, path)` is called when the server has answered, before
    the client learns of it."""

    def __init__(self, port):
        self.before = self.after = lambda method, path: None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self, port))
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def handler_of(relay, port):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = relay.before(self.command, self.path)
            if answer:
                return self.reply(answer[0], [], answer[1])
            status, headers, text = self.ask(body)
            relay.after(self.command, self.path)
            return self.reply(status, headers, text)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

        def ask(self, body):
            """Sends the request, with the headers that are signed, and reads the answer."""
            server = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in OF_A_HOP:
                    server.putheader(name, value)
            server.endheaders(body)
            answer = server.getresponse()
            found = answer.status, answer.getheaders(), answer.read()
            server.close()
            return found

        def reply(self, status, headers, text):
            self.send_response_only(status)
            length = len(text)
            for name, value in headers:
                if name.lower() == "content-length":
                    length = value  # of HEAD, too
                elif name.lower() not in OF_A_HOP:
                    self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", length)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *words):
            pass

    return Handler
