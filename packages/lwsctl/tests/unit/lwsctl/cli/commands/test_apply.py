"""Tests that many objects are applied concurrently, and that an error lists all applied objects."""

import asyncio
from contextlib import AbstractAsyncContextManager

import msgspec
import pytest
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.channels import Channels
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.client.transport import Request, Response
from lwsctl.cli.applying.applier import Applier
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError
from lwsctl.cli.reading.manifests import Document

SERVED = {"resources": [{"name": "leaderworkersets", "kind": "LeaderWorkerSet", "namespaced": True}]}


class SlowServer(ScriptedTransport):
    """An empty API server that responds after one second, and counts concurrent requests."""

    def __init__(self, refused: str = "") -> None:
        super().__init__()
        self.refused = refused
        self.most = self.now = 0

    async def request(self, request: Request) -> Response:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(1)
        self.now -= 1
        if request.method == "PATCH":
            is_refused = request.path.endswith(f"/{self.refused}") and ("dryRun", "All") not in request.query
            obj = msgspec.json.decode(request.body)
            return failure(403, "Forbidden", "exceeded quota") if is_refused else respond(200, obj)
        return respond(200, SERVED) if request.path.count("/") == 3 else failure(404, "NotFound", "not found")


def channels(path: str, query: Query, protocol: str) -> AbstractAsyncContextManager[Channels]:
    raise AssertionError((path, query, protocol))


def sets(number: int) -> list[Document]:
    head = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    return [Document("a.yaml", at, head | {"metadata": {"name": f"web-{at}"}}) for at in range(number)]


async def applied(server: SlowServer, documents: list[Document]) -> tuple[list[str], float]:
    began = asyncio.get_running_loop().time()
    applier = Applier(Session(Client(server), "prod", channels))
    await applier.check(documents)
    return await applier.apply(documents), asyncio.get_running_loop().time() - began


def test_hundred_sets_are_applied_ten_at_a_time() -> None:
    server = SlowServer()
    lines, seconds = run(applied(server, sets(100)))
    assert lines == [f"leaderworkerset/web-{at} created" for at in range(100)]
    assert server.most == 10
    assert seconds < 50  # sequentially, this would take 400 s: four requests for each set


def test_error_lists_applied_objects_and_the_rejected_one() -> None:
    with pytest.raises(CommandError) as caught:
        run(applied(SlowServer("web-1"), sets(12)))
    told, done = str(caught.value).splitlines()
    assert told == "a.yaml:1: leaderworkerset/web-1: exceeded quota"
    others = [f"leaderworkerset/web-{at} created" for at in range(10) if at != 1]
    assert done == f"already applied: {', '.join(others)}"


def test_error_lists_the_created_namespace() -> None:
    applier = Applier(Session(Client(SlowServer("web-0")), "prod", channels), previous_lines=["namespace/prod created"])
    with pytest.raises(CommandError, match=r"already applied: namespace/prod created$"):
        run(applier.apply(sets(1)))


class NoNamespace(SlowServer):
    """An API server without the namespace of the test."""

    async def request(self, request: Request) -> Response:
        if request.method == "PATCH":
            return failure(404, "NotFound", 'namespaces "prod" not found', kind="namespaces", name="prod")
        return await super().request(request)


def test_dry_run_names_the_option_that_creates_the_namespace() -> None:
    applier = Applier(Session(Client(NoNamespace()), "prod", channels))
    with pytest.raises(CommandError, match="or use `lws apply --create-namespace`"):
        run(applier.dry_run(sets(1)[0]))
