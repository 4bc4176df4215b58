"""Runs an in-memory API server with a controlled clock, and sends requests to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import Any

from kuberuntime.client.transport import Request
from localkube.apiserver.builtin import kinds
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.model.kind import Kind
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import Store

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
STATEFULSETS = "/apis/apps/v1/namespaces/default/statefulsets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACES = "/api/v1/namespaces"
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class StoppedClock:
    """A clock whose monotonic time and wall time change only when a test advances them."""

    def __init__(self) -> None:
        self.time = START
        self._moved = 0.0

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self._moved

    def move(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        self._moved += seconds

    def jump(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Answer:
    """A server response. `body` is decoded if it is JSON."""

    code: int
    headers: dict[str, str]
    body: Any

    def __getitem__(self, name: str) -> Any:
        return self.body[name]

    @property
    def refusal(self) -> tuple[int, str, str]:
        """Return the code, reason and message of a Status."""
        return self.code, self.body.get("reason", ""), self.body.get("message", "")


class Api:
    """A client for one server."""

    def __init__(self, server: ApiServer, clock: StoppedClock) -> None:
        self.server = server
        self.clock = clock
        self.transport = InProcessTransport(server, "tester")

    async def send(
        self, method: str, path: str, body: Any = None, /, *, headers: dict[str, str] | None = None, **query: Any
    ) -> Answer:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        pairs = tuple((name.rstrip("_"), str(value)) for name, value in query.items())
        request = Request(method, path, pairs, {"user-agent": "tests/1"} | (headers or {}), content)
        answer = await self.transport.request(request)
        is_json = answer.headers["content-type"].startswith("application/json")
        return Answer(answer.status, dict(answer.headers), json.loads(answer.body) if is_json else answer.body)

    async def get(self, path: str, **query: Any) -> Answer:
        return await self.send("GET", path, **query)

    async def create(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.send("POST", path, body, **query)

    async def update(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.send("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, kind: str = "merge-patch+json", **query: Any) -> Answer:
        return await self.send("PATCH", path, body, headers={"content-type": f"application/{kind}"}, **query)

    async def apply(self, path: str, body: Any, manager: str = "tests", **query: Any) -> Answer:
        return await self.patch(path, body, "apply-patch+yaml", fieldManager=manager, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.send("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator["Watch"]:
        pairs = (("watch", "true"), *((name, str(value)) for name, value in query.items()))
        async with self.transport.stream(Request("GET", path, pairs)) as answer:
            assert answer.status == 200, b"".join([chunk async for chunk in answer.chunks])
            yield Watch(answer.chunks)


class Watch:
    """The events of a watch, which are read one at a time."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._events: list[dict[str, Any]] = []
        self._rest = b""

    async def next(self) -> dict[str, Any] | None:
        """Return the next event, or None if the stream is closed."""
        while not self._events:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return None
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._events = [json.loads(line) for line in lines]
        return self._events.pop(0)

    async def seen(self, count: int) -> list[tuple[str, str]]:
        """Return the types and names of the next events."""
        async with asyncio.timeout(5):
            events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events if event]


@lru_cache
def served() -> tuple[Kind, ...]:
    """Return the built-in kinds, which are built only once."""
    return tuple(kinds())


@asynccontextmanager
async def serving(store: Store | None = None, *, max_pods: int | None = None) -> AsyncIterator[Api]:
    """Start a new server for each test that has an `api` argument."""
    clock = StoppedClock()
    server = ApiServer(store or Store(), served(), clock, ServerOptions(random=Random(1), max_pods=max_pods))
    try:
        await server.start()
        async with asyncio.timeout(10):
            yield Api(server, clock)
    finally:
        await server.close()


def run(scenario: Callable[[Api], Awaitable[None]], store: Store | None = None, *, max_pods: int | None = None) -> None:
    """Run a scenario on a new server."""

    async def with_server() -> None:
        async with serving(store, max_pods=max_pods) as api:
            await scenario(api)

    asyncio.run(with_server())


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    """Build a pod."""
    containers = [{"name": "main", "image": "image"}]
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def config_map(name: str = "settings", /, *, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    """Build a ConfigMap."""
    metadata = {"name": name, "labels": labels} if labels else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def definition(**schema: Any) -> dict[str, Any]:
    """Build the CRD `widgets.example.org` with the status and scale subresources."""
    spec = {
        "type": "object",
        "properties": {"replicas": {"type": "integer", "default": 1}, "size": {"type": "integer", "minimum": 1}},
    }
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}} | schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]},
    }


WIDGETS = "/apis/example.org/v1/namespaces/default/widgets"


def widget(name: str = "a", **spec: Any) -> dict[str, Any]:
    """Build an object of the kind that `definition` describes."""
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
