"""Sends each request to the next group. The leaders are the addresses of one name, and are used in turn.

    POST /generate  passed on to a leader; the answer names this router's version in X-Router
    GET  /healthz   200

A leader that cannot be reached is passed over: the next one is asked.
"""

import http.client
import itertools
import os
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 8080
PATIENCE = 60.0  # the timeout of a response in seconds
TURNS = itertools.count()


def leaders() -> list[str]:
    """Return the addresses of the ready leaders, in turn."""
    found = sorted({str(entry[4][0]) for entry in socket.getaddrinfo("leaders", PORT, type=socket.SOCK_STREAM)})
    turn = next(TURNS) % len(found)
    return found[turn:] + found[:turn]


def ask(address: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Forward a request, and return the response."""
    connection = http.client.HTTPConnection(address, PORT, timeout=PATIENCE)
    try:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Handler(BaseHTTPRequestHandler):
    """Serves one client."""

    def do_GET(self) -> None:
        """Report that the router is running."""
        self.answer(200, b"{}")

    def do_POST(self) -> None:
        """Try the leaders until one of them responds."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            for address in leaders():
                try:
                    return self.answer(*ask(address, self.path, body))
                except ConnectionError:
                    continue
        except socket.gaierror:
            pass
        return self.answer(503, b'{"error": "no leader can be reached"}')

    def answer(self, status: int, body: bytes) -> None:
        """Send a response."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Router", os.environ["VERSION"])
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until stopped, and complete current requests."""
    server = ThreadingHTTPServer((os.environ.get("POD_IP", "0.0.0.0"), PORT), Handler)
    server.daemon_threads = False
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"router of version {os.environ['VERSION']} listens on {PORT}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
