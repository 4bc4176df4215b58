"""The wire between actors and the API server: drops events, and lets invariants see every write before and after it."""

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
"""The part of the path of events about the checked sets: a hostile tenant has another namespace."""
UNSERVED: Final = status_response(404, "NotFound", "the server could not find the requested resource")


class Witness(Protocol):
    """Observes the writes of actors when the API server receives and answers them."""

    def arriving(self, actor: str, request: Request) -> None:
        """Record a write before the API server performs it."""
        ...

    def answered(self, actor: str, request: Request, response: Response) -> None:
        """Record the API server's response to a write."""
        ...


class Wire:
    """The state that all transports share: the observers of writes."""

    def __init__(self) -> None:
        self.witness: Witness | None = None
        self.unserved = ""
        """The prefixes of paths of the kinds that the API server does not serve to managers."""
        self.warnings: list[bytes] = []
        """Warning events in their sent form."""
        self.replacements: list[str] = []
        """The notes of events about leaders that replace others."""
        self.lost: list[tuple[float, str]] = []
        """Refused writes of managers: when, and what about."""
        self._refused: tuple[str, str, Response] | None = None

    def refuse(self, path: str, answer: tuple[int, str, str], actors: str = "manager") -> None:
        """Refuse all writes to paths with this pattern, of managers or of the actors whose names begin so."""
        self._refused = actors, path, status_response(*answer)

    def permit(self) -> None:
        """Refuse no writes any more."""
        self._refused = None

    def refusal(self, actor: str, request: Request) -> Response | None:
        """Return the answer to a write that is refused now."""
        if self._refused is None:
            return None
        actors, path, answer = self._refused
        if not actor.startswith(actors) or not re.search(path, request.path):
            return None
        if actor != "controllers":
            self.lost.append((asyncio.get_running_loop().time(), request.path))
        return answer

    def warnings_of_own_objects(self) -> list[str]:
        """Return the notes of warnings that an object exists already, and that do not name another owner."""
        notes = (str(msgspec.json.decode(one).get("note") or "") for one in self.warnings)
        return [note for note in notes if "already exists" in note and ": it " not in note]

    def around(self, inner: Transport, actor: str) -> Transport:
        """Return the transport of an actor."""
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
