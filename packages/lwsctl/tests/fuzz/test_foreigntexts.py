"""Tests that read commands, the dashboard and the recorder promptly show all strings from tenants.

A seed is a cluster in memory: a set whose pods, events, logs and annotations have generated texts, and hostile objects around it.
`SEEDS=500 pytest packages/lwsctl/tests/fuzz/test_foreigntexts.py` tries the seeds 0 to 499.
"""

import asyncio
import gc
import time
import unicodedata
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

import click
import msgspec
import pytest
from click.testing import CliRunner
from tests import hostile
from tests.dashboardhouse import NAMESPACE, NODE, ServedDashboard, open_house, until
from tests.disaggregated import disaggregatedset_object, role
from tests.fuzz import hostiletexts
from tests.fuzz.seeds import seeds
from tests.fuzz.test_dashboard import ask

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.clock import SystemClock
from kuberuntime.errors import KubeError, flatten
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, NODES, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.api.usersettings import SETTINGS
from leaderworkerset.recording import filestore, recorder
from leaderworkerset.recording.filestore import Store
from lwsctl.cli import app, errors
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.views import episodetable
from lwsctl.dashboard.requestchecks import COOKIE

T = TypeVar("T")

LONGEST: Final = 2.0
"""The CPU time limit of a command or a page, in seconds."""

FROZEN: Final = 60.0
"""The timeout in seconds after which a command is considered hanging on a busy machine."""

COMMANDS: Final = (
    "get", "get -A", "get -o wide", "get web", "get web/0/0", "get --not-ready", "get -o view", "get -o yaml", "get -o jsonpath={..message}",
    "tree", "tree web", "explain", "explain web", "explain web/0/0", "explain -o json", "describe web", "describe web/0", "describe web/1/1",
    "top", "wait web --timeout=0", "rollout status web --timeout=0.1", "rollout history web", "events web", "events web -o json", "history",
    "nodes", f"nodes {NODE}", "dashboard --export", "dashboard --export web", "logs web --tail=50", "logs web/0/1 --grep=E --timestamps", "logs web --previous",
    "rollout diff web", "rollout undo web --dry-run", "rollout pause web --dry-run", "restart web --dry-run",
    "scale web --replicas=1 --dry-run", "recover web/0 --dry-run", f"drain {NODE} --dry-run", "move web/0 --dry-run", "delete web --dry-run", "doctor",
    "history web/0", "history web/0#1", "history -o json", "events web/0 -o yaml", "get nothing", "explain ds", "describe ds", "tree ds", "wait web --for=ready --timeout=0.1",
)  # fmt: skip
METRICS: Final = [
    {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "containers": [{"name": "main", "usage": {"cpu": "1", "memory": "1Gi"}}],
    }
    for name in ("web-0", "web-1-1")
]
RAW: Final = ("logs", "-o yaml", "-o json", "jsonpath", "dashboard", "-o view")
"""Commands that print a document or a log, which its format escapes or which is unchanged."""

PAGES: Final = (
    "", "?as=table", "?as=text", f"sets/{NAMESPACE}/web", f"sets/{NAMESPACE}/web?as=table", f"sets/{NAMESPACE}/web?by=node", f"sets/{NAMESPACE}/web/rollout",
    f"sets/{NAMESPACE}/web/logs", f"sets/{NAMESPACE}/web/history", f"pane/{NAMESPACE}/web/0/0", f"pane/{NAMESPACE}/web/1/1", "topology",
    f"first-error/sets/{NAMESPACE}/web", "search?q=web",
)  # fmt: skip
KEPT_VISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Bridge:
    """A transport in one event loop that sends its requests in the event loop of the API server."""

    def __init__(self, inner: Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def request(self, request: Request) -> Response:
        """Send one request. Requests for pod metrics receive an immediate response, because no node measures them."""
        if request.path.startswith("/apis/metrics.k8s.io/"):
            return Response(200, {}, msgspec.json.encode({"metadata": {}, "items": METRICS}))
        return await self._there(self._inner.request(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Yield a response whose chunks are read in the other loop."""
        context = self._inner.stream(request)
        response = await self._there(context.__aenter__())
        try:
            yield StreamResponse(response.status, response.headers, self._chunks(response))
        finally:
            await self._there(context.__aexit__(None, None, None))

    async def _chunks(self, response: StreamResponse) -> AsyncIterator[bytes]:
        async def take() -> bytes | None:
            return await anext(response.chunks, None)

        while (chunk := await self._there(take())) is not None:
            yield chunk

    async def close(self) -> None:
        """Do nothing, because the other event loop closes the transport."""


class ReadTarget(Target, frozen=True, kw_only=True):
    """The in-memory cluster as a target of commands."""

    transport: Any
    loop: Any

    @asynccontextmanager
    async def session(self, *, outlives: bool = False) -> AsyncIterator[Session]:
        """Yield a session with the cluster."""

        def channels(path: str, query: Any, protocol: str) -> Any:
            raise AssertionError((path, query, protocol))

        yield Session(Client(Bridge(self.transport, self.loop)), NAMESPACE, channels)


async def fill(house: ServedDashboard, random: Random) -> None:
    """Store a LeaderWorkerSet with generated strings in all fields that tenants can write, and hostile objects."""
    text = hostiletexts.text
    settings = {row.annotation: text(random, 300) for row in random.sample(list(SETTINGS), 4)}
    with suppress(KubeError):
        await house.put_set(
            "web", ready=random.choice([0, 1, 2]), annotations=settings | {"example.com/note": text(random)}
        )
    for _ in range(2):
        await attempt(
            house.put_set("web", ready=random.choice([0, 1, 2]), annotations={"example.com/note": text(random)})
        )
    for name in ("web-0", "web-0-1", "web-1", "web-1-1"):
        await attempt(house.set_pod(name, pod_status(random)))
        notes = {
            labels.PROGRESS: text(random, 900),
            labels.HANG: text(random, 9000),
            labels.EXCLUSIVE_TOPOLOGY: text(random, 60),
        }
        change: JSONObject = {"metadata": {"annotations": {key: notes[key] for key in random.sample(list(notes), 2)}}}
        await attempt(house.client.patch(PODS, ObjectKey(NAMESPACE, name), change, kind="merge", manager="test"))
        house.transport.logs[name] = hostiletexts.log(random)
    for number in range(8):
        await attempt(house.client.create(CORE_EVENTS, event(random, number)))
    for number in range(random.choice([0, 5, 20])):
        resource, obj = hostile.make(random, NAMESPACE, number)
        await attempt(house.client.create(resource, obj))
    await attempt(house.client.create(CONTROLLER_REVISIONS, record(random)))
    await attempt(house.client.create(DISAGGREGATED_SETS, disaggregated_set(random)))
    condition = {"type": "Ready", "status": random.choice(["True", "False"]), "reason": "x", "message": text(random)}
    await attempt(
        house.client.patch(
            NODES,
            ObjectKey("", NODE),
            {"status": {"conditions": [condition]}},
            kind="merge",
            subresource="status",
            manager="test",
        )
    )
    conditions = {
        "status": {"conditions": [{**condition, "type": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    }
    await attempt(
        house.client.patch(
            LEADERWORKERSETS,
            ObjectKey(NAMESPACE, "web"),
            conditions,
            kind="merge",
            subresource="status",
            manager="test",
        )
    )


async def attempt(write: Coroutine[Any, Any, object]) -> None:
    """Store an object that the API server may reject."""
    with suppress(KubeError):
        await write


def pod_status(random: Random) -> JSONObject:
    """Return the status of a pod that has crashed, is waiting, or is unschedulable."""
    text = hostiletexts.text
    ended = {
        "exitCode": random.choice([1, 2, 127, 137, 139]),
        "reason": random.choice(["Error", "OOMKilled", "StartError"]),
        "message": text(random),
    }
    ended |= {"finishedAt": "2026-01-01T00:00:00Z", "startedAt": "2026-01-01T00:00:00Z", "containerID": "x://1"}
    reason = random.choice(
        ["CrashLoopBackOff", "ImagePullBackOff", "CreateContainerConfigError", "ErrImagePull", text(random, 60)]
    )
    state = random.choice(
        [{"terminated": ended}, {"waiting": {"reason": reason, "message": text(random)}}, {"running": {}}]
    )
    container = {
        "name": "main",
        "restartCount": random.choice([0, 1, 7]),
        "ready": False,
        "image": text(random, 60),
        "imageID": text(random, 60),
    }
    scheduled = {
        "type": "PodScheduled",
        "status": random.choice(["True", "False"]),
        "reason": "Unschedulable",
        "message": text(random),
    }
    ready = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": text(random)}
    return {
        "phase": random.choice(["Pending", "Running", "Failed"]),
        "message": text(random),
        "reason": random.choice(["", "Evicted", "NodeLost", text(random, 60)]),
        "conditions": [scheduled, ready][: random.randint(0, 2)],
        "containerStatuses": [container | {"state": state, "lastState": random.choice([{}, {"terminated": ended}])}],
    }


def event(random: Random, number: int) -> JSONObject:
    """Return an event for a pod, a StatefulSet, or the LeaderWorkerSet."""
    kind, name = random.choice(
        [("Pod", "web-0"), ("Pod", "web-1-1"), ("StatefulSet", "web"), ("LeaderWorkerSet", "web")]
    )
    reasons = (
        "FailedScheduling",
        "FailedCreate",
        "BackOff",
        "Unhealthy",
        "Pulling",
        "TriggeredScaleUp",
        "Nominated",
        hostiletexts.text(random, 60),
    )
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"e{number}", "namespace": NAMESPACE},
        "involvedObject": {"kind": kind, "name": name, "namespace": NAMESPACE},
        "type": random.choice(["Warning", "Normal"]),
        "reason": random.choice(reasons),
        "message": hostiletexts.text(random, 1000),
        "lastTimestamp": random.choice(["2026-01-01T00:00:00Z", None]),
        "source": {"component": hostiletexts.text(random, 60)},
    }


def record(random: Random) -> JSONObject:
    """Return a record of recreations, or a similar value."""
    own = {labels.NAME: "web", labels.GROUP_INDEX: hostiletexts.label(random)}
    words = {key: hostiletexts.text(random, 500) for key in (labels.RECREATED_LEADER, labels.FAILED_POD_UID)}
    data: Any = random.choice([{}, [], hostiletexts.text(random), {"failure": hostiletexts.text(random)}])
    metadata = {"name": "web-record", "namespace": NAMESPACE, "labels": own, "annotations": words}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": 1, "data": data}


def disaggregated_set(random: Random) -> JSONObject:
    """Return a DisaggregatedSet with generated role names and status messages."""
    text = hostiletexts.text
    obj = disaggregatedset_object([role(random.choice(["prefill", "0", "x" * 40]), 1), role("decode", 0)])
    obj["metadata"] = {"name": "ds", "namespace": NAMESPACE, "annotations": {"example.com/note": text(random)}}
    condition = {"type": "Progressing", "status": "True", "reason": text(random, 60), "message": text(random)}
    roles = [{"name": text(random, 60), "replicas": random.choice([0, 10**12])}]
    return obj | {"status": {"conditions": [condition], "roleStatuses": roles}}


def command_fault(target: Target, words: Sequence[str]) -> str:
    """Run a read command. Return its failure, or an empty string if it succeeds or reports a user error."""
    began = time.process_time()
    command = app.lws.get_command(click.Context(app.lws), words[0])
    assert command is not None
    result = CliRunner().invoke(command, list(words[1:]), obj=target, standalone_mode=False)
    taken = time.process_time() - began
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        expected = (errors.CommandError, KubeError, OSError, click.ClickException, click.exceptions.Exit)
        raised = flatten(error) if isinstance(error, Exception) else [error]
        if isinstance(error, click.UsageError):
            return f"does not exist: {error.message}"
        if not all(isinstance(leaf, expected) for leaf in raised):
            return f"raised {error!r}"
    if taken > LONGEST:
        return f"took {taken:.1f} s"
    line = " ".join(words)
    if not any(word in line for word in RAW):
        harmful = {character for character in result.output if unicodedata.category(character) in KEPT_VISIBLE} - {"\n"}
        return f"printed {harmful}" if harmful else ""
    return ""


def seeded(scenario: Callable[[Random, Path], Coroutine[Any, Any, None]], usual: int, tmp_path: Path) -> None:
    """Run a scenario with each seed. Error messages contain the seed."""
    for seed in seeds(usual):
        directory = tmp_path / str(seed)
        directory.mkdir()
        try:
            asyncio.run(scenario(Random(seed), directory))
        except Exception as error:
            raise AssertionError(f"seed {seed} (again: SEEDS={seed}-{seed + 1})") from error
        gc.collect()
        gc.freeze()  # otherwise, a garbage collection of hundreds of clusters would count as part of the page


@pytest.mark.slow
def test_every_command_shows_hostile_texts(tmp_path: Path) -> None:
    async def scenario(random: Random, _: Path) -> None:
        async with open_house(seconds=600) as house:
            await fill(house, random)
            target = ReadTarget(transport=house.transport, loop=asyncio.get_running_loop())
            for command in COMMANDS:
                words = command.split(" ")
                fault = await asyncio.wait_for(asyncio.to_thread(command_fault, target, words), FROZEN)
                assert not fault, (command, fault)

    seeded(scenario, 2, tmp_path)


@pytest.mark.slow
def test_every_page_shows_hostile_texts(tmp_path: Path) -> None:
    async def scenario(random: Random, _: Path) -> None:
        async with open_house(seconds=600) as house:
            await fill(house, random)
            await until(lambda: len(house.model.snapshot.views) > 0, "the set")
            application = house.dashboard.application()
            application.freeze()
            own = {
                "Host": f"127.0.0.1:{house.dashboard.port}",
                "Cookie": f"{COOKIE}={house.dashboard.secrets.session_token}",
                "Sec-Fetch-Site": "same-origin",
            }
            for page in PAGES:
                began = time.process_time()
                status, text = await asyncio.wait_for(
                    ask(application, "GET", house.dashboard.request_checks.base + page, own), FROZEN
                )
                assert time.process_time() - began < LONGEST, page
                assert status == 200, (page, status)
                assert "cannot be rendered" not in text, (page, text[:3000])
                harmful = {character for character in text if unicodedata.category(character) in KEPT_VISIBLE} - {
                    "\n",
                    "\t",
                }
                assert not harmful, (page, harmful)
            assert house.model.snapshot.connection_error == ""

    seeded(scenario, 2, tmp_path)


@pytest.mark.slow
def test_every_failure_with_hostile_texts_is_recorded(tmp_path: Path) -> None:
    async def scenario(random: Random, directory: Path) -> None:
        async with open_house(seconds=600) as house:

            def read(_pod: JSONObject, _container: str, lines: int, size: int) -> Sequence[bytes]:
                return [b"\n".join(hostiletexts.log(random).split(b"\n")[-lines:])[-size:] for _ in range(2)]

            await fill(house, random)
            async with recorder.recording(house.client, Store(directory), read, SystemClock()):
                now = SystemClock().now().isoformat(timespec="seconds")
                status = pod_status(random)
                ended = {"exitCode": 1, "reason": "Error", "message": hostiletexts.text(random), "finishedAt": now}
                container = {
                    "name": "main",
                    "restartCount": 1,
                    "ready": False,
                    "image": "",
                    "imageID": "",
                    "state": {"terminated": ended},
                }
                await house.set_pod("web-0", status | {"phase": "Running", "containerStatuses": [container]})
                # The generated status of another pod might also contain a failure.
                await until(lambda: any(place.group == "0" for place in filestore.places(directory)), "the episode")
            place = next(place for place in filestore.places(directory) if place.group == "0")
            episode = filestore.read(place)
            assert episode is not None
            shown = "\n".join(episodetable.episode_lines(episode, SystemClock().now()))
            assert "cannot be shown" not in shown
            assert "web-0" in shown

    seeded(scenario, 2, tmp_path)
