"""Runs a registry without TLS on one machine, for tests of pull errors. It is started as a script.

It denies images below `private/` with the status 401, also with credentials, and lacks all others.
"""

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

PORT: Final = 5000
ADDRESS: Final = f"127.0.0.1:{PORT}"


class Registry(BaseHTTPRequestHandler):
    """Responds to requests of container runtimes."""

    def do_GET(self) -> None:
        """Deny access to a private image, and report that all other images are missing."""
        is_private = "/private/" in self.path
        self.send_response(HTTPStatus.UNAUTHORIZED if is_private else HTTPStatus.NOT_FOUND)
        if is_private:
            self.send_header("WWW-Authenticate", 'Basic realm="private"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self) -> None:
        """Respond in the same way as to GET requests, because the responses have no body."""
        self.do_GET()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Registry).serve_forever()
