"""Tests that the taint of a move is removed with the move, even if responses are lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
import pytest
from testkit.virtualtime import VirtualClock

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.commands.rollout import drain, move
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts.nodewrites import PATIENCE, TAINT, taint_nodes

THEIRS = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}


class LosingTransport(InProcessTransport):
    """Drops the response to the first write. The client observes a closed connection, or a rejected retry."""

    def __init__(self, server: ApiServer, *, sends_again: bool) -> None:
        super().__init__(server, "tester")
        self._sends_again = sends_again
        self.is_armed = False

    async def request(self, request: Request) -> Response:
        """Respond to a request."""
        answer = await super().request(request)
        if request.method == "GET" or not self.is_armed:
            return answer
        self.is_armed = False
        if self._sends_again:
            return await super().request(request)
        raise ConnectionResetError


def connected(path: str, query: Query, protocol: str) -> Any:
    raise AssertionError((path, query, protocol))


@asynccontextmanager
async def cluster(*taints: JSONObject, sends_again: bool = False) -> AsyncIterator[tuple[Session, LosingTransport]]:
    """Run an API server with one node."""
    server = ApiServer(Store(), builtin.kinds(), VirtualClock())
    await server.start()
    transport = LosingTransport(server, sends_again=sends_again)
    client = Client(transport)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}, "spec": {"taints": [*taints]}}
    await client.create(NODES, node)
    yield Session(client, "default", connected), transport
    await server.close()


async def taints(session: Session) -> list[Any]:
    found = meta.spec(await session.client.get(NODES, ObjectKey("", "node-0"))).get("taints") or []
    return [one["key"] for one in found]


@pytest.mark.virtual_time
async def test_taint_exists_for_the_duration_of_the_move() -> None:
    async with cluster(THEIRS) as (session, _):
        async with taint_nodes(session, {"node-0"}):
            assert await taints(session) == ["dedicated", TAINT["key"]]
        assert await taints(session) == ["dedicated"]


@pytest.mark.virtual_time
async def test_taint_written_twice_is_recognized_as_own() -> None:
    async with cluster(sends_again=True) as (session, transport):
        transport.is_armed = True
        async with taint_nodes(session, {"node-0"}):
            assert await taints(session) == [TAINT["key"]]
        assert await taints(session) == []


@pytest.mark.virtual_time
async def test_taint_is_removed_when_its_response_was_lost() -> None:
    async with cluster() as (session, transport):
        transport.is_armed = True
        with pytest.raises(ConnectionResetError):
            async with taint_nodes(session, {"node-0"}):
                raise AssertionError("not tainted")
        assert await taints(session) == []


@pytest.mark.virtual_time
async def test_second_move_is_rejected_and_keeps_the_taint() -> None:
    async with cluster() as (session, _):

        async def moved() -> list[Any]:
            async with taint_nodes(session, {"node-0"}):
                await asyncio.sleep(1.0)
                return await taints(session)

        ended = await asyncio.gather(moved(), moved(), return_exceptions=True)
        assert {type(one) for one in ended} == {list, CommandError}
        assert [TAINT["key"]] in ended
        assert await taints(session) == []


@pytest.mark.parametrize("command", [drain.command, move.command], ids=["drain", "move"])
def test_help_names_the_patience_with_managers(command: click.Command) -> None:
    assert f"within {PATIENCE:g} s" in " ".join((command.help or "").split())
