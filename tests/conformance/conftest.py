"""Fixtures: both API servers, started once."""

import asyncio
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from itertools import count

import msgspec
import pytest
from tests.conformance.apiservers import Servers, definition, embedded, transport_to
from tests.conformance.compare import Sequence, differences
from tests.conformance.difference import Difference
from tests.conformance.witness import NARROWED, Witness, comparing
from tests.controlplane import build
from tests.controlplane.process import api_server

from kuberuntime.client.transport import Request, Transport

TRIALS = 3
"""How often a sequence is played during which the second changed.

Entries of `managedFields` have times in whole seconds, and are sorted by them; where an apply with a status in it changes
nothing else, the Kubernetes API server writes a new version in the next second, and none in the same one.
"""

CheckSame = Callable[[Sequence], None]


@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Both API servers with the LWS definition."""
    with (
        api_server(build.assets(print, build.DEFAULT), tmp_path_factory.mktemp("bare-plane")) as plane,
        asyncio.Runner() as runner,
    ):
        real = transport_to(plane)
        stack = AsyncExitStack()
        ours = runner.run(stack.enter_async_context(embedded()))
        for transport in (ours, real):
            runner.run(_define(transport))
        yield Servers(runner, ours, real)
        runner.run(stack.aclose())
        runner.run(real.close())


async def _define(transport: Transport) -> None:
    """Install the definition of LeaderWorkerSets and wait until it is served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = msgspec.json.encode(definition())
    answer = await transport.request(Request("POST", path, (), {"content-type": "application/json"}, body))
    assert answer.status == 201, answer.body
    served = Request("GET", "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets")
    async with asyncio.timeout(20):
        while (await transport.request(served)).status != 200:  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.05)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Note that not all of these tests will run."""
    for item in comparing(items):
        item.config.stash[NARROWED] = True


@pytest.fixture(scope="package")
def witness(request: pytest.FixtureRequest) -> Iterator[Witness]:
    """Note what occurs; at the end of a whole run, fail where something that is refused has not."""
    one = Witness()
    yield one
    if one.saw_everything(request.session):
        assert not one.unmet(), "refused, but these differences do not occur: correct tests/conformance/refused.py"


@pytest.fixture
def same(servers: Servers, witness: Witness, request: pytest.FixtureRequest) -> CheckSame:
    """Play a sequence to both servers, in a namespace of its own; fail where their answers part.

    What may only come from the second in which each server was asked is played again, from the begin of a second on.
    """
    words = f"{request.node.path.stem}-{zlib.crc32(request.node.name.encode()):08x}".replace("_", "-")
    numbers = count()
    witness.ran.add(request.node.nodeid)

    def play(sequence: Sequence) -> list[Difference]:
        found = differences(servers, f"{words}-{next(numbers)}", sequence)
        return [one for one in found if not witness.is_refused(one)]

    def check(sequence: Sequence) -> None:
        left: list[Difference] = []
        for _ in range(TRIALS):
            second = int(time.time())
            left = play(sequence)
            if not left or int(time.time()) == second or not all(one.may_come_from_time for one in left):
                break
            time.sleep(1 - time.time() % 1)
        assert not left, f"{len(left)} differences\n" + "\n".join(map(str, left))

    return check
