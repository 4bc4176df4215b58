"""Connects actors to the API server, drops events, and passes every write to the invariants."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

import msgspec
from tests.simulation.cluster import NAMESPACE
from tests.simulation.faults import once, status_response
from tests.simulation.trace import EVENT

from kuberuntime.client.transport import Request, Response, StreamResponse, Transport

READS: Final = frozenset({"GET", "HEAD"})
WARNING: Final = b'"Warning"'
REPLACEMENT: Final = b'"GroupReplacement'
OWN: Final = f"/namespaces/{NAMESPACE}/"
"""A part of the path of events about the checked sets. A hostile tenant uses a different namespace."""
UNSERVED: Final = status_response(404, "NotFound", "the server could not find the requested resource")


class Witness(Protocol):
    """Observes the requests and responses of writes."""

    def arriving(self, actor: str, request: Request) -> None:
        """Record a write before the API server performs it."""
        ...

    def answered(self, actor: str, request: Request, response: Response) -> None:
        """Record the API server's response to a write."""
        ...


class Wire:
    """The shared state of all transports: the observers of writes."""

    def __init__(self) -> None:
        self.witness: Witness | None = None
        self.unserved = ""
        """The path prefixes of kinds that the API server does not serve to managers."""
        self.warnings: list[bytes] = []
        """Warning events, as sent to the API server."""
        self.replacements: list[str] = []
        """The messages of events about replaced leaders."""
        self.lost: list[tuple[float, str]] = []
        """The time and the target of each rejected write of a manager."""
        self._refused: tuple[str, str, Response] | None = None

    def refuse(self, path: str, answer: tuple[int, str, str], actors: str = "manager") -> None:
        """Reject all writes to paths that match this pattern.

        The writers are the managers, or the actors with this name prefix.
        """
        self._refused = actors, path, status_response(*answer)

    def permit(self) -> None:
        """Stop rejecting writes."""
        self._refused = None

    def refusal(self, actor: str, request: Request) -> Response | None:
        """Return the response to a write that is currently rejected."""
        if self._refused is None:
            return None
        actors, path, answer = self._refused
        if not actor.startswith(actors) or not re.search(path, request.path):
            return None
        if actor != "controllers":
            self.lost.append((asyncio.get_running_loop().time(), request.path))
        return answer

    def warnings_of_own_objects(self) -> list[str]:
        """Return the messages of warnings about existing objects that do not include another owner."""
        notes = (str(msgspec.json.decode(one).get("note") or "") for one in self.warnings)
        return [note for note in notes if "already exists" in note and ": it " not in note]

    def around(self, inner: Transport, actor: str) -> Transport:
        """Return an actor's transport."""
        return _Witnessed(inner, actor, self)


class _Witnessed:
    def __init__(self, inner: Transport, actor: str, wire: Wire) -> None:
        self._inner = inner
        self._actor = actor
        self._wire = wire

    async def request(self, request: Request) -> Response:
        if self._is_unserved(request):
            return UNSERVED
        if request.method in READS:
            return await self._inner.request(request)
        if EVENT in request.path:
            if WARNING in request.body and self._actor != "controllers" and OWN in request.path:
                self._wire.warnings.append(request.body)
            if REPLACEMENT in request.body:
                self._wire.replacements.append(_leader_of(request.body))
            return Response(201, {"content-type": "application/json"}, request.body)
        if (refusal := self._wire.refusal(self._actor, request)) is not None:
            return refusal
        witness = self._wire.witness
        if witness is not None:
            witness.arriving(self._actor, request)
        response = await self._inner.request(request)
        if witness is not None:
            witness.answered(self._actor, request, response)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        if self._is_unserved(request):
            yield StreamResponse(UNSERVED.status, UNSERVED.headers, once(UNSERVED.body))
            return
        async with self._inner.stream(request) as response:
            yield response

    async def close(self) -> None:
        await self._inner.close()

    def _is_unserved(self, request: Request) -> bool:
        prefix = self._wire.unserved
        return bool(prefix) and self._actor.startswith("manager") and request.path.startswith(prefix)


def _leader_of(event: bytes) -> str:
    """Return the reason and the leader of an event about the replacement gate."""
    read = msgspec.json.decode(event)
    return f"{read['reason']} {read['note'].split()[2]}"
