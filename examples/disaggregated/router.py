"""A router that sends each request to a prefill and a decode server of the same revision.

    POST   /generate  {"prompt": "text", "tokens": 8}  ->  {"tokens": [...], "version": "1", "prefill": ..., "decode": ...}
    POST   /servers   {"address": ..., "role": ..., "revision": ...}  a server is there
    DELETE /servers   {"address": ...}  a server will end; answered when no request is under way there
    GET    /healthz   200

A server that cannot be reached is forgotten until it makes itself known again.
"""

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from exchange import Answer, ask, server

PATIENCE = 20.0  # the seconds that a request waits for a pair of servers


@dataclass(eq=False)
class Server:
    """A server, with its number of current requests."""

    address: str
    role: str
    revision: str
    active: int = 0


class Fleet:
    """The registered servers."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.changed = threading.Condition()

    def enter(self, address: str, role: str, revision: str) -> None:
        """Register a server."""
        with self.changed:
            if address not in self.servers:
                self.servers[address] = Server(address, role, revision)
                self.changed.notify_all()

    def leave(self, address: str) -> None:
        """Remove a server, and wait until it has no more requests."""
        with self.changed:
            found = self.servers.pop(address, None)
            self.changed.wait_for(lambda: found is None or found.active == 0)

    def forget(self, lost: Server) -> None:
        """Remove a server that is not reachable."""
        with self.changed:
            if self.servers.get(lost.address) is lost:
                del self.servers[lost.address]

    @contextmanager
    def pair(self) -> Iterator[tuple[Server, Server] | None]:
        """Reserve a prefill and a decode server of one revision, or return None after a timeout."""
        with self.changed:
            pair = self.choose() if self.changed.wait_for(lambda: self.choose() is not None, PATIENCE) else None
            for one in pair or ():
                one.active += 1
        try:
            yield pair
        finally:
            with self.changed:
                for one in pair or ():
                    one.active -= 1
                self.changed.notify_all()

    def choose(self) -> tuple[Server, Server] | None:
        """Return the pair with the fewest requests."""
        servers = random.sample(list(self.servers.values()), len(self.servers))
        pairs = [
            (one, other)
            for one in servers
            for other in servers
            if (one.role, other.role) == ("prefill", "decode") and one.revision == other.revision
        ]
        return min(pairs, key=lambda pair: pair[0].active + pair[1].active, default=None)


def main() -> None:
    """Serve until SIGTERM."""
    fleet = Fleet()

    def generate(request: Any) -> Answer:
        with fleet.pair() as pair:
            if pair is None:
                return 503, {"error": f"no prefill and decode servers of one revision within {PATIENCE:g} s"}
            prefill, decode = pair
            try:
                status, answer = ask(prefill.address, "POST", "/prefill", request | {"decode": decode.address})
            except OSError as error:
                fleet.forget(prefill)
                return 502, {"error": f"{prefill.address}: {error}"}
            if status == 502:
                fleet.forget(decode)
            return status, answer

    def enter(request: Any) -> Answer:
        fleet.enter(**request)
        return 200, {}

    def leave(request: Any) -> Answer:
        fleet.leave(request["address"])
        return 200, {}

    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    routes = {"POST /generate": generate, "POST /servers": enter, "DELETE /servers": leave}
    server(os.environ["POD_IP"], 8080, routes | {"GET /healthz": lambda _: (200, {})}).serve_forever()


if __name__ == "__main__":
    main()
