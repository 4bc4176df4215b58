"""Tests the parts of the operator process that do not need a cluster."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from testkit.fakes import ScriptedTransport

from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.leaderelection import ElectionSettings
from kuberuntime.serving.serving import Listener
from leaderworkerset.operator import operatorprocess
from leaderworkerset.operator.openshift import election_times
from leaderworkerset.operator.operatorprocess import OperatorProcess, OperatorProcessSettings
from leaderworkerset.operator.verbosity import Verbosity


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, (137.0, 107.0, 26.0)),
        ({"controlPlaneTopology": "HighlyAvailable"}, (137.0, 107.0, 26.0)),
        ({"controlPlaneTopology": "SingleReplica"}, (270.0, 240.0, 60.0)),
    ],
)
def test_single_control_plane_node_gets_longer_leases(
    status: dict[str, str], expected: tuple[float, float, float]
) -> None:
    """A cluster with a single control plane node has longer leases (R-OP-12)."""
    assert election_times({"status": status}) == expected


def process_of(directory: Path, server: str) -> OperatorProcess:
    """Return an operator that uses this API server."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    settings = OperatorProcessSettings(namespace="operators", image="lws:1", kubeconfig=str(kubeconfig))
    return OperatorProcess(settings, Verbosity(), SystemClock())


async def election_of(directory: Path, server: str) -> ElectionSettings:
    """Return the leader election settings for this API server."""
    process = process_of(directory, server)
    try:
        return await process._election_settings()
    finally:
        await process._own.close()


def settings_of(directory: Path, code: int, body: dict[str, Any]) -> tuple[ElectionSettings, list[str]]:
    """Return the leader election settings for this response of the API server, and the requested paths."""
    asked: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response(body, status=code)

    async def scenario() -> ElectionSettings:
        application = web.Application()
        application.router.add_get("/{path:.*}", serve)
        async with Listener(application, Address("127.0.0.1", 0)) as listener:
            return await election_of(directory, f"http://127.0.0.1:{listener.port}")

    return asyncio.run(scenario()), asked


def test_operator_starts_without_an_api_server(tmp_path: Path) -> None:
    """If the topology cannot be read, the default times apply (R-OP-12)."""
    with socket.socket() as taken:  # the port is bound, but no process listens
        taken.bind(("127.0.0.1", 0))
        found = asyncio.run(election_of(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert found.retry_period == 5.0


@pytest.mark.slow
def test_unresponsive_api_server_delays_the_start_by_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """During the delay, the operator does not respond to probes or signals.

    Therefore, the delay must be shorter than the grace period.

    Rule R-OP-13.
    """
    assert operatorprocess.TOPOLOGY_SECONDS < 10
    monkeypatch.setattr(operatorprocess, "TOPOLOGY_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()

        async def scenario() -> ElectionSettings:
            async with asyncio.timeout(25):
                return await election_of(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")

        assert asyncio.run(scenario()).retry_period == 5.0


def test_failed_sync_is_retried_within_five_minutes(tmp_path: Path) -> None:
    """The manager does not watch foreign quotas or webhooks, so no event reports their changes (R-OP-13)."""
    delays = [operatorprocess.RETRY.delay(failures) for failures in range(1, 100)]
    assert delays == sorted(delays)
    assert (delays[0], delays[-1]) == (0.005, 300.0)
    process = process_of(tmp_path, "http://127.0.0.1:1")
    for controller in process._controllers(ScriptedTransport())._controllers:
        assert controller._options.backoff == operatorprocess.RETRY


REFUSED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no"}


@pytest.mark.parametrize(
    ("code", "body", "times"),
    [
        (200, {"status": {"controlPlaneTopology": "SingleReplica"}}, (270.0, 240.0, 60.0)),
        (200, {"status": {"controlPlaneTopology": "HighlyAvailable"}}, (137.0, 107.0, 26.0)),
        (404, REFUSED | {"reason": "NotFound", "code": 404}, (30.0, 20.0, 5.0)),
        (403, REFUSED | {"reason": "Forbidden", "code": 403}, (30.0, 20.0, 5.0)),
    ],
    ids=["single", "several", "not served", "not allowed"],
)
def test_lease_times_follow_the_topology_when_readable(
    tmp_path: Path, code: int, body: dict[str, Any], times: tuple[float, float, float]
) -> None:
    """Only one object is read. It may be missing or forbidden (R-OP-12)."""
    found, asked = settings_of(tmp_path, code, body)
    assert asked == ["/apis/config.openshift.io/v1/infrastructures/cluster"]
    assert found.lease == ObjectKey("operators", "openshift-lws-operator-lock")
    assert (found.lease_duration, found.renew_deadline, found.retry_period) == times


@pytest.mark.virtual_time
async def test_operator_exits_when_a_file_changes(tmp_path: Path) -> None:
    """The option `--terminate-on-files` also applies to files that are created later (R-OP-9)."""
    file = tmp_path / "config"

    stopped = asyncio.Event()
    async with operatorprocess.stop_on_file_change([str(file)], stopped):
        await asyncio.sleep(operatorprocess.COMPARE_SECONDS * 3)
        assert not stopped.is_set()
        file.write_text("changed")
        await asyncio.wait_for(stopped.wait(), operatorprocess.COMPARE_SECONDS * 2)
