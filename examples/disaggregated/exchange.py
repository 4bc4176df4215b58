"""JSON over HTTP, with a client function and a server of functions."""

import json
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Answer: TypeAlias = tuple[int, Any]
Serve: TypeAlias = Callable[[Any], Answer]

PATIENCE = 60.0  # the timeout of a response in seconds


def ask(address: str, method: str, path: str, body: object = None) -> Answer:
    """Send a request to `host:port`. Return the status and body of the response."""
    connection = HTTPConnection(address, timeout=PATIENCE)
    try:
        connection.request(method, path, json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def no_such_path(_: Any) -> Answer:
    """Respond to unknown requests."""
    return 404, {"error": "no such path"}


def server(host: str, port: int, routes: Mapping[str, Serve]) -> ThreadingHTTPServer:
    """Return a server. The names of routes have the form `POST /generate`."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            serve = routes.get(f"{self.command} {self.path}", no_such_path)
            length = int(self.headers.get("Content-Length") or 0)
            status, body = serve(json.loads(self.rfile.read(length) or "null"))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def do_DELETE(self) -> None:
            self.answer()

        def log_message(self, *_: Any) -> None:
            """Do not log requests, because there are many."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    return Server((host, port), Handler)
