"""Tests that an outage of the API server logs one line when it starts and one when it ends."""

import asyncio

import pytest
import structlog
from structlog.testing import capture_logs
from testkit.fakes import SmallServer, respond
from testkit.virtualtime import VirtualClock, run

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.outage import Outage
from kuberuntime.client.transport import Request, Response
from kuberuntime.controller.executionerrors import ExecutionError
from kuberuntime.controller.workqueue import WorkQueue, run_workers
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.serving.leaderelection import ElectionSettings, LeaderElection

WATCHES = 10
KEYS = 100


class Silent:
    """Ignores changes of the leader."""

    def leading(self, *, is_leader: bool) -> None:
        """Do nothing."""


def held(request: Request) -> Response | None:
    """Serve a lease that another process holds, regardless of writes to it."""
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 600}
    lease = {"metadata": {"name": "lock", "resourceVersion": "1"}, "spec": spec}
    return respond(200, lease) if request.path.endswith("/lock") else None


def logged(*, outage: Outage | None) -> list[tuple[str, str]]:
    """Return the level and message of each line above debug that is logged in an outage of one minute.

    Watches, an election and a queue log these lines.
    """
    server = SmallServer()
    server.refuse = held

    def client() -> Client:
        return Client(server, outage=outage)

    async def work(key: str) -> None:
        try:
            await client().get(PODS, ObjectKey("default", key))
        except ConnectionFailedError as error:
            raise ExecutionError(f"get {key}", ()) from error

    async def scenario() -> None:
        queue = WorkQueue[str]()
        informers = [Informer(client(), PODS) for _ in range(WATCHES)]
        settings = ElectionSettings(ObjectKey("lws-system", "lock"), "me")
        election = LeaderElection(client(), settings, VirtualClock(), Silent())
        tasks = [asyncio.ensure_future(informer.run()) for informer in informers]
        for informer in informers:
            await informer.wait_synced()
        tasks.append(asyncio.ensure_future(run_workers(queue, work, name="test", workers=2)))
        server.is_down = True
        server.cut()
        tasks.append(asyncio.ensure_future(election.run(forever)))
        for number in range(KEYS):
            server.put(f"pod-{number}")
            queue.add(f"pod-{number}")
        await asyncio.sleep(60)
        server.is_down = False
        await asyncio.sleep(60)
        for task in tasks:
            task.cancel()

    with capture_logs() as lines:
        run(scenario())
    return [(line["log_level"], line["event"]) for line in lines if line["log_level"] != "debug"]


def test_outage_logs_one_line_at_its_start_and_its_end() -> None:
    assert logged(outage=Outage(structlog.get_logger())) == [
        ("warning", "API server does not respond"),
        ("info", "API server responds again"),
    ]


def test_each_retry_logs_a_line_without_an_outage_report() -> None:
    """Commands do not share an outage report. The watch of a user's command logs its own lines."""
    assert [line for line in logged(outage=None) if line[1] == "watch interrupted"]


@pytest.mark.virtual_time
async def forever() -> None:
    await asyncio.Event().wait()


async def test_repeated_outage_is_reported_again() -> None:
    outage = Outage(structlog.get_logger())
    with capture_logs() as lines:
        for _ in range(2):
            outage.record_failure(ConnectionFailedError("refused"))
            outage.record_failure(ConnectionFailedError("refused"))
            await asyncio.sleep(7)
            outage.record_response()
            outage.record_response()
    assert [line.get("error") or line["after"] for line in lines] == ["refused", pytest.approx(7.0, abs=0.2)] * 2
