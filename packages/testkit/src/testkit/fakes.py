"""Provides transports for tests, with scripted responses or with a small API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject


def respond(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, headers or {}, body if isinstance(body, bytes) else msgspec.json.encode(body))


def failure(code: int, reason: str, message: str = "", **details: Any) -> Response:
    return respond(code, {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details})


class ScriptedTransport:
    """Records requests, and returns responses in order. Exceptions in the script are raised."""

    def __init__(self, *script: Response | Exception) -> None:
        self.requests: list[Request] = []
        self._script: Iterator[Response | Exception] = iter(script)
        self.closed = False

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        await asyncio.sleep(0)
        step = next(self._script)
        if isinstance(step, Exception):
            raise step
        return step

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        response = await self.request(request)
        yield StreamResponse(response.status, response.headers, _once(response.body))

    async def close(self) -> None:
        self.closed = True


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


class SmallServer:
    """Stores objects of one kind by name, with resource versions, a watch log, and errors on request.

    It is a `Transport`. It has no schema and no namespaces, and the only patch is apply, which merges the top level.
    Streams carry a bookmark every `bookmarks` seconds (0: none), as those of kube-apiserver do.
    """

    def __init__(self, *, streaming_lists: bool = True, bookmarks: float = 60.0) -> None:
        self.objects: dict[str, JSONObject] = {}
        self.requests: list[Request] = []
        self.version = 0
        self.oldest = 0
        self.is_down = False
        self.refuse: Callable[[Request], Response | None] = lambda _: None
        self.withhold = False
        """Whether new streams send no data, as behind a proxy that has lost its server."""
        self.closes_watches = False
        """Whether streams are closed immediately, before the first change."""
        self._streaming_lists = streaming_lists
        self._bookmarks = bookmarks
        self._log: list[tuple[int, str, JSONObject]] = []
        self._streams: set[asyncio.Queue[bytes | None]] = set()
        self._muted: set[asyncio.Queue[bytes | None]] = set()

    def put(self, name: str, **fields: Any) -> JSONObject:
        previous = self.objects.get(name)
        self.version += 1
        metadata = {"name": name, "namespace": "default", "uid": f"u{self.version}"}
        if previous:
            metadata = metadata | {"uid": previous["metadata"]["uid"]}
        obj = {**(previous or {}), **fields, "metadata": {**metadata, **fields.get("metadata", {})}}
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[name] = obj
        self._publish("MODIFIED" if previous else "ADDED", obj)
        return obj

    def remove(self, name: str) -> None:
        self.version += 1
        obj = self.objects.pop(name)
        self._publish("DELETED", obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}})

    def cut(self) -> None:
        """Close all streams."""
        for stream in self._streams:
            stream.put_nowait(None)

    def mute(self) -> None:
        """Stop sending data on all open streams."""
        self._muted |= self._streams

    def expire(self) -> None:
        """Clear the log. Watches from older resource versions are rejected."""
        self.oldest = self.version

    def bookmark(self) -> None:
        self._send("BOOKMARK", self._here)

    def babble(self, line: bytes) -> None:
        """Send an object that is not a watch event."""
        for stream in self._streams:
            stream.put_nowait(line)

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        await asyncio.sleep(0.001)
        if self.is_down:
            raise ConnectionFailedError("cannot reach the small server")
        refusal = self.refuse(request)
        return refusal or self._serve(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        self.requests.append(request)
        await asyncio.sleep(0.001)
        if self.is_down:
            raise ConnectionFailedError("cannot reach the small server")
        query = dict(request.query)
        initial = "sendInitialEvents" in query
        refusal = self.refuse(request)
        if initial and not self._streaming_lists:
            refusal = failure(422, "Invalid", "sendInitialEvents is forbidden")
        elif not initial and int(query["resourceVersion"]) < self.oldest:
            refusal = failure(410, "Expired", "too old resource version")
        if refusal is not None:
            yield StreamResponse(refusal.status, {}, _once(refusal.body))
            return
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        if self.withhold:
            self._muted.add(lines)
        for line in self._first(query) if not self.withhold else ():
            lines.put_nowait(line)
        self._streams.add(lines)
        bookmarks = asyncio.create_task(self._mark(lines))
        try:
            yield StreamResponse(200, {}, _drain(lines))
        finally:
            bookmarks.cancel()
            self._streams.discard(lines)
            self._muted.discard(lines)

    async def close(self) -> None:
        self.cut()

    def _serve(self, request: Request) -> Response:
        name = request.path.rsplit("/", 1)[1]
        match request.method:
            case "GET":
                return self._list(dict(request.query))
            case "POST":
                obj = msgspec.json.decode(request.body)
                if meta.name(obj) in self.objects:
                    return failure(409, "AlreadyExists", f'pods "{meta.name(obj)}" already exists')
                return respond(201, self.put(meta.name(obj), **obj))
            case "PATCH":
                return respond(200, self._apply(name, msgspec.json.decode(request.body)))
            case "DELETE" if name in self.objects:
                gone = self.objects[name]
                self.remove(name)
                return respond(200, {"kind": "Status", "details": {"uid": meta.uid(gone)}})
            case _:
                return failure(404, "NotFound", f'pods "{name}" not found')

    def _apply(self, name: str, obj: JSONObject) -> JSONObject:
        previous = self.objects.get(name, {})
        if previous and all(previous.get(field) == value for field, value in obj.items() if field != "metadata"):
            return previous
        return self.put(name, **{field: value for field, value in obj.items() if field != "metadata"})

    def _list(self, query: dict[str, str]) -> Response:
        """Return a page. The continue token contains the resource version of the list and the next position."""
        version, _, start = query.get("continue", f"{self.version}:0").partition(":")
        if int(version) < self.oldest:
            return failure(410, "Expired", "The provided continue parameter is too old")
        first, size = int(start), int(query.get("limit", len(self.objects)))
        items = list(self.objects.values())[first : first + size]
        rest = len(self.objects) - first - len(items)
        head = {"resourceVersion": version} | ({"continue": f"{version}:{first + size}"} if rest > 0 else {})
        return respond(200, {"kind": "PodList", "metadata": head, "items": items})

    def _first(self, query: dict[str, str]) -> list[bytes | None]:
        """Return the lines of a stream before the next change, or None if the stream ends."""
        initial = "sendInitialEvents" in query
        if self.closes_watches:
            return [*(self._initial() if initial else ()), None]
        return [*(self._initial() if initial else self._since(int(query["resourceVersion"])))]

    def _initial(self) -> list[bytes]:
        end = {"resourceVersion": str(self.version), "annotations": {"k8s.io/initial-events-end": "true"}}
        added = [_line("ADDED", obj) for obj in self.objects.values()]
        return [*added, _line("BOOKMARK", {"metadata": end})]

    def _since(self, version: int) -> list[bytes]:
        return [_line(kind, obj) for at, kind, obj in self._log if at > version]

    def _publish(self, kind: str, obj: JSONObject) -> None:
        self._log.append((self.version, kind, obj))
        self._send(kind, obj)

    @property
    def _here(self) -> JSONObject:
        return {"metadata": {"resourceVersion": str(self.version)}}

    async def _mark(self, stream: asyncio.Queue[bytes | None]) -> None:
        while self._bookmarks:
            await asyncio.sleep(self._bookmarks)
            if stream not in self._muted:
                stream.put_nowait(_line("BOOKMARK", self._here))

    def _send(self, kind: str, obj: JSONObject) -> None:
        for stream in self._streams - self._muted:
            stream.put_nowait(_line(kind, obj))


async def _drain(lines: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (line := await lines.get()) is not None:
        yield line[: len(line) // 2]  # chunks end anywhere
        yield line[len(line) // 2 :]


def _line(kind: str, obj: JSONObject) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"
