"""Give each request to the next group: the leaders are the addresses of one name, and each takes its turn.

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
PATIENCE = 60.0  # seconds for an answer
TURNS = itertools.count()


def leaders() -> list[str]:
    """Return the addresses of the ready leaders, in turn."""
    found = sorted({str(entry[4][0]) for entry in socket.getaddrinfo("leaders", PORT, type=socket.SOCK_STREAM)})
    turn = next(TURNS) % len(found)
    return found[turn:] + found[:turn]


def ask(address: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Pass a request on and return the answer."""
    connection = http.client.HTTPConnection(address, PORT, timeout=PATIENCE)
    try:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Handler(BaseHTTPRequestHandler):
    """Answers one client."""

    def do_GET(self) -> None:
        """Say that the router is there."""
        self.answer(200, b"{}")

    def do_POST(self) -> None:
        """Ask the leaders until one of them answers."""
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
        """Send an answer."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Router", os.environ["VERSION"])
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until told to end; requests under way are answered."""
    server = ThreadingHTTPServer((os.environ.get("POD_IP", "0.0.0.0"), PORT), Handler)
    server.daemon_threads = False
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"router of version {os.environ['VERSION']} listens on {PORT}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
