"""Tests the number of API requests that commands send to explain a stuck LeaderWorkerSet, on both clusters."""

from contextlib import AbstractAsyncContextManager

import pytest
from msgspec.structs import replace
from testkit.transports import ForwardingTransport
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.lwsctl.explanations import asking, named, template, unschedulable, warned
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.commands import get
from lwsctl.cli.sets import shown
from lwsctl.cli.sets.diagnoses import explain
from lwsctl.cli.targets import parse
from lwsctl.observation.lists import Lists

MOST_OF_GET = 6
"""The maximum number of requests of `lws get` for one stuck LeaderWorkerSet, including the cause."""

MOST_OF_EXPLAIN = 6
"""The maximum number of requests of `lws explain` for one stuck LeaderWorkerSet with existing pods."""


class Counting(ForwardingTransport):
    """A transport that records its requests."""

    def __init__(self, carrier: Transport) -> None:
        super().__init__(carrier)
        self.asked: list[str] = []

    async def request(self, request: Request) -> Response:
        self.asked.append(request.path)
        return await self.inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        self.asked.append(request.path)
        return self.inner.stream(request)


def counted(space: LiveScenario) -> tuple[Session, Counting]:
    """Return the session of a command, and the counter of its requests."""
    transport = Counting(space.client._transport)
    return replace(session_of(space), client=Client(transport)), transport


@pytest.mark.parametrize("names", [(), ("web",)], ids=["all", "named"])
async def test_get_names_the_cause_within_its_request_limit(
    space: LiveScenario, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    await space.create(lws(replicas=1, size=2, template=asking(cpu="1000")))
    await space.until(unschedulable("Insufficient", 2))
    await named(space, "LWS-E036")
    session, transport = counted(space)
    wanted = shown.GetRequest(tuple(map(parse, names)), None, everywhere=False, selector="", managed_fields=False)
    lists = Lists(session.client)
    await get.print_causes(session, lists, await shown.observe(session, wanted, lists), wanted)
    assert "web is stuck (LWS-E036)" in capsys.readouterr().err
    assert len(transport.asked) <= MOST_OF_GET, transport.asked


async def test_explain_names_the_cause_within_its_request_limit(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=2, template=asking(cpu="1000")))
    await space.until(unschedulable("Insufficient", 2))
    await named(space, "LWS-E036")
    session, transport = counted(space)
    (told,) = await explain(session, parse("web"))
    assert told.code == "LWS-E036"
    assert len(transport.asked) <= MOST_OF_EXPLAIN, transport.asked


async def test_get_names_a_rejected_pod_within_its_request_limit(
    space: LiveScenario, capsys: pytest.CaptureFixture[str]
) -> None:
    await space.create(lws(replicas=1, size=2, template=template(priorityClassName="urgent")))
    await space.until(warned("urgent"))
    await named(space, "LWS-E026")
    session, transport = counted(space)
    wanted = shown.GetRequest((parse("web"),), None, everywhere=False, selector="", managed_fields=False)
    lists = Lists(session.client)
    await get.print_causes(session, lists, await shown.observe(session, wanted, lists), wanted)
    assert "web is stuck (LWS-E026)" in capsys.readouterr().err
    assert len(transport.asked) <= MOST_OF_GET, transport.asked
