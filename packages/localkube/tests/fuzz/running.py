"""Sends requests to an API server in this process, and finds the smallest sequence that reproduces a defect."""

import asyncio
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, cast

import msgspec
import structlog
from tests.fuzz import junk, specimens

from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.clock import SystemClock
from localkube.apiserver import builtin
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import MEMORY, Store

LONGEST: Final = 3.0
"""The maximum CPU time of one request, in seconds."""

AS_UPSTREAM: Final = (
    "resourceVersion should not be set on objects to be created",
    "failed to create typed patch object",
)
"""Prefixes of messages that kube-apiserver returns with status 500. The conformance tests compare them."""


@dataclass(frozen=True)
class Defect:
    """Incorrect server behavior, with the request and the result."""

    request: Request
    what: str

    @property
    def place(self) -> str:
        """Return the code location, which identifies a defect."""
        lines = [line.strip() for line in self.what.splitlines()]
        files = [line for line in lines if line.startswith("File") and "/leaderworkerset/" in line]
        return f"{lines[-1][:60]} {files[-1] if files else ''}"


@dataclass
class Tracebacks:
    """Collects logged exceptions."""

    found: list[str] = field(default_factory=list)

    def __call__(self, _logger: Any, method: str, event: dict[str, Any]) -> dict[str, Any]:
        if event.get("exc_info"):
            self.found.append(traceback.format_exc())
        elif method in {"error", "critical"}:
            self.found.append(str(event))
        raise structlog.DropEvent


@contextmanager
def tracebacks() -> Iterator[list[str]]:
    """Collect exceptions that are logged while the context is active."""
    collector = Tracebacks()
    before = structlog.get_config()["processors"]
    processors = structlog.get_config()["processors"]
    kept = list(before)
    processors[:] = [collector]
    try:
        yield collector.found
    finally:
        processors[:] = kept


async def start(seed: int) -> ApiServer:
    """Start a server that generates reproducible names and has a custom kind."""
    server = ApiServer(Store(MEMORY), builtin.kinds(), SystemClock(), ServerOptions(random=Random(seed)))
    await server.start()
    body = msgspec.json.encode(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **specimens.CRD}
    )
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await server.handle(Request("POST", path, (), {"content-type": "application/json"}, body), "admin")
    assert answer.status == 201, answer
    return server


async def play(requests: Sequence[Request], seed: int = 0) -> Defect | None:
    """Send requests one after the other to a new server. Return the first defect, or None if there is none."""
    server = await start(seed)
    before = len(asyncio.all_tasks())
    unhandled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(_words(context)))
    try:
        for request in requests:
            with tracebacks() as logged:
                started = time.thread_time()
                what = await _ask(server, request)
                await asyncio.sleep(0)  # run the callbacks that the request has scheduled
                took = time.thread_time() - started
            if logged or unhandled:
                return Defect(request, [*logged, *unhandled][0])
            if what:
                return Defect(request, what)
            if took > LONGEST:
                return Defect(request, f"it took {took:.1f} s of the processor")
        if len(asyncio.all_tasks()) > before:
            return Defect(requests[-1], "tasks are left running")
        plain = await server.handle(Request("GET", "/api/v1/namespaces/default"), "admin")
        return None if plain.status == 200 else Defect(requests[-1], f"a plain GET is answered with {plain.status}")
    finally:
        await server.close()


def _words(context: dict[str, Any]) -> str:
    """Return the message of an unhandled exception."""
    error = context.get("exception")
    return "".join(traceback.format_exception(error)) if error else str(context)


async def _ask(server: ApiServer, request: Request) -> str:
    """Return the error in a response."""
    try:
        answer = await server.handle(request, "admin")
        if isinstance(answer, StreamResponse):
            return await _read(answer)
    except Exception:  # noqa: BLE001 - whatever it is, it is a defect
        return traceback.format_exc()
    return _judge(answer)


async def _read(answer: StreamResponse) -> str:
    """Read the start of a stream, and disconnect."""
    chunks = cast("Any", answer.chunks)
    reading = asyncio.ensure_future(anext(chunks, None))
    for _ in range(3):
        await asyncio.sleep(0)
    reading.cancel()
    try:
        await reading
    except asyncio.CancelledError:
        return ""
    finally:
        await chunks.aclose()
    return ""


def _judge(answer: Response) -> str:
    text = answer.body.decode(errors="replace")
    if answer.status == 500 and not any(f'"message":"{one}' in text for one in AS_UPSTREAM):
        return f"{answer.status} {text}"
    if not 200 <= answer.status < 600:
        return f"the status is {answer.status}"
    for name, value in answer.headers.items():
        if any(character in f"{name}{value}" for character in "\r\n\x00"):
            return f"the header {name} is {value!r}"
    if answer.status >= 400 and msgspec.json.decode(answer.body)["code"] != answer.status:
        return f"{answer.status} comes with {text}"
    return ""


def smallest(requests: Sequence[Request], defect: Defect, seed: int) -> tuple[list[Request], Defect]:
    """Return the shortest sequence with the smallest body that reproduces the same defect."""

    def shows(tried: Sequence[Request]) -> Defect | None:
        found = asyncio.run(play(tried, seed))
        return found if found is not None and found.place == defect.place else None

    kept = list(requests)
    for index in range(len(kept) - 1, -1, -1):
        shorter = [*kept[:index], *kept[index + 1 :]]
        found = shows(shorter)
        if found:
            kept, defect = shorter, found
    for index, request in enumerate(kept):
        for smaller in _smaller(request):
            tried = [*kept[:index], smaller, *kept[index + 1 :]]
            found = shows(tried)
            if found:
                kept, defect = tried, found
    return kept, defect


def _smaller(request: Request) -> Iterator[Request]:
    """Yield smaller requests, which have no query, no headers, or a smaller body."""
    yield replace(request, query=())
    yield replace(request, headers={name: value for name, value in request.headers.items() if name == "content-type"})
    try:
        document = msgspec.json.decode(request.body)
    except (msgspec.MsgspecError, UnicodeError):
        return
    for path in sorted(junk.places(document), key=len):
        yield replace(request, body=msgspec.json.encode(junk.without(document, path)))


def describe(seed: int, requests: Sequence[Request], defect: Defect) -> str:
    """Describe how to reproduce a defect."""
    sent = "\n".join(
        f"  {one.method} {one.path} {dict(one.query)} {dict(one.headers)} {one.body[:2000]!r}" for one in requests
    )
    return f"seed {seed} (again: SEEDS={seed}-{seed + 1}); the smallest sequence found:\n{sent}\n{defect.what}"
