"""Defines the fixtures that start both API servers once."""

import asyncio
import re
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from itertools import count
from pathlib import Path

import msgspec
import pytest
from testkit.customkind import definition
from testkit.suite import GENERATED
from tests.conformance.apiservers import Servers, embedded, transport_to
from tests.conformance.compare import Sequence, answers, compare
from tests.conformance.difference import Difference
from tests.conformance.recorded import RENEW, Recordings, packed, unpacked
from tests.conformance.transcript import Entry
from tests.conformance.witness import NARROWED, Witness, comparing
from tests.controlplane import build
from tests.controlplane.process import api_server

from kuberuntime.client.transport import Request, Transport
from kuberuntime.objects.meta import JSON

TRIALS = 3
"""The number of times that a sequence is repeated if the clock advances to the next second during a run.

Entries of `managedFields` have times in whole seconds, and are sorted by them; where an apply with a status in it changes
nothing else, the Kubernetes API server writes a new version in the next second, and none in the same one.
"""

MADE_UP = re.compile(r"(resourceVersion\W+)\d+|\b10\.0\.(?!0\.0/)\d+\.\d+\b")

CheckSame = Callable[[Sequence], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which `make conformance` records the responses of the real servers."""
    parser.addoption("--renew", action="store_true", help="record the answers of the real control plane again")


def is_live(config: pytest.Config) -> bool:
    """Return whether the responses come from a running control plane instead of a recording."""
    return bool(config.getoption("renew", default=False)) or config.getoption("tier") == "kubernetes"


@pytest.fixture(scope="session")
def recordings(request: pytest.FixtureRequest) -> Iterator[Recordings]:
    """Read the recorded responses. With `--renew`, write the new responses after the last test."""
    recordings = Recordings()
    yield recordings
    if request.config.getoption("renew", default=False):
        recordings.write()


@pytest.fixture(scope="package")
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Run both API servers with the LeaderWorkerSet CRD. Without a control plane, use the recorded responses."""
    with ExitStack() as stack:
        real: Transport | None = None
        if is_live(request.config):
            directory = tmp_path_factory.mktemp("bare-plane")
            real = transport_to(stack.enter_context(api_server(build.assets(print, build.DEFAULT), directory)))
        runner = stack.enter_context(asyncio.Runner())
        opened = AsyncExitStack()
        ours = runner.run(opened.enter_async_context(embedded()))
        for transport in (ours, real):
            if transport:
                runner.run(_define(transport))
        yield Servers(runner, ours, real)
        runner.run(opened.aclose())
        if real:
            runner.run(real.close())


def renamed(entries: list[Entry], name: str, first: str) -> list[Entry]:
    """Return the entries of a repeated run with the namespace name of the first run, which is recorded."""
    if name == first:
        return entries
    text = msgspec.json.encode(packed(entries)).decode().replace(name, first)
    return unpacked(msgspec.json.decode(text))


def steady(value: JSON) -> str:
    """Return a value as a string without generated Service addresses, and without versions in messages.

    >>> steady("10.0.3.255 of 10.0.0.0/16")
    "'<address> of 10.0.0.0/16'"
    """
    return MADE_UP.sub(lambda found: found[1] or "<address>", repr(value))


async def _define(transport: Transport) -> None:
    """Install the LeaderWorkerSet CRD, and wait until it is served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = msgspec.json.encode(definition())
    answer = await transport.request(Request("POST", path, (), {"content-type": "application/json"}, body))
    assert answer.status == 201, answer.body
    served = Request("GET", "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets")
    async with asyncio.timeout(20):
        while (await transport.request(served)).status != 200:  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.05)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Record that only some of these tests are selected."""
    for item in comparing(items):
        item.config.stash[NARROWED] = True


@pytest.fixture(scope="package")
def witness(request: pytest.FixtureRequest) -> Iterator[Witness]:
    """Record accepted differences that occur. After a complete run, fail if an accepted difference did not occur."""
    one = Witness()
    yield one
    if one.saw_everything(request.session):
        assert not one.unmet(), (
            "refused, but these differences do not occur: correct packages/localkube/tests/conformance/refused.py"
        )


@pytest.fixture
def same(servers: Servers, witness: Witness, recordings: Recordings, request: pytest.FixtureRequest) -> CheckSame:
    """Send a sequence to both servers in separate namespaces. Fail if their responses differ.

    If a difference may come only from the second of the request, the sequence is played again at the start of a second.
    """
    module, test = request.node.path.stem, request.node.name
    words = f"{module}-{zlib.crc32(test.encode()):08x}".replace("_", "-")
    sequences = count()
    witness.ran.add(request.node.nodeid)

    def check(sequence: Sequence) -> None:
        number = next(sequences)
        key, first = f"{test}/{number}", f"{words}-{number}"
        left: list[Difference] = []
        theirs: list[Entry] = []
        for trial in range(TRIALS):
            second = int(time.time())
            namespace = first.replace("test", f"try{trial}", 1) if trial else first  # the names have the same length
            ours = renamed(answers(servers.runner, servers.embedded, namespace, sequence), namespace, first)
            if servers.real:
                theirs = renamed(answers(servers.runner, servers.real, namespace, sequence), namespace, first)
            else:
                theirs = unpacked(recordings.of(module, key))
            left = [difference for difference in compare(ours, theirs) if not witness.is_refused(difference)]
            if not left or int(time.time()) == second or not all(one.may_come_from_time for one in left):
                break
            time.sleep(1 - time.time() % 1)
        assert not left, f"{len(left)} differences\n" + "\n".join(map(str, left))
        if servers.real and module != Path(GENERATED).stem:
            recordings.note(module, key, packed(theirs))
            if not request.config.getoption("renew"):
                former = unpacked(recordings.of(module, key))
                changed = [one for one in compare(former, theirs) if not one.may_come_from_time]
                stale = [one for one in changed if steady(one.embedded) != steady(one.real)]
                assert not stale, f"the recording (called embedded here) is not as before: {RENEW}\n{stale[0]}"

    return check
