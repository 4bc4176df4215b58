"""Tests the manager on Kubernetes versions that are tested, untested, or too old."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from testkit.fakes import ScriptedTransport, respond
from testkit.virtualtime import VirtualClock

from kuberuntime.client.client import Client
from leaderworkerset.manager import kubernetesversions
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store


def logged(status: int, body: bytes) -> list[Any]:
    """Return the log entries for this response."""
    client = Client(ScriptedTransport(respond(status, body)))
    with capture_logs() as logs:
        asyncio.run(kubernetesversions.check(client))
    return logs


@pytest.mark.parametrize("version", ["v1.34.4", "v1.36.3", "v1.37.0-gke.1", "v1.36.0+localkube"])
def test_tested_version_logs_nothing(version: str) -> None:
    assert logged(200, b'{"gitVersion": "%s"}' % version.encode()) == []


@pytest.mark.parametrize("body", [b'{"gitVersion": "v1.38.0"}', b'{"gitVersion": "v1.39.4"}', b"{}"])
def test_untested_version_logs_one_warning(body: bytes) -> None:
    (entry,) = logged(200, body)
    assert (entry["log_level"], entry["missing"]) == ("warning", [])


def test_warning_names_what_an_old_version_lacks() -> None:
    (entry,) = logged(200, b'{"gitVersion": "v1.32.5"}')
    assert entry["log_level"] == "warning"
    assert [one.partition(":")[0] for one in entry["missing"]] == [
        "the resize subresource of pods",
        "matchLabelKeys merged into topology spread selectors",
    ]


def test_differs_from_upstream_manager_ends_on_kubernetes_1_26() -> None:
    """On Kubernetes 1.26, the manager exits and logs the required Kubernetes version.

    The Go manager starts, but does not create workers (ADR 42).
    """
    with pytest.raises(
        kubernetesversions.UnsupportedKubernetesError, match=r"does not support spec\.ordinals .* Upgrade .* 1\.27"
    ):
        logged(200, b'{"gitVersion": "v1.26.15"}')


@pytest.mark.parametrize(("status", "body"), [(500, b"{}"), (200, b"<html>")], ids=["an error", "no JSON"])
def test_unreadable_version_does_not_stop_the_manager(status: int, body: bytes) -> None:
    assert [one["log_level"] for one in logged(status, body)] == ["debug"]


@pytest.mark.virtual_time
async def test_required_policies_are_an_error_if_not_served() -> None:
    """The embedded API server does not support CEL. Kubernetes 1.35 does not serve the kind either."""
    server = ApiServer(Store(), builtin.kinds(), VirtualClock())
    await server.start()
    with pytest.raises(
        kubernetesversions.UnsupportedKubernetesError, match=r"podAdmission: Invalid value: .* Use 1\.36"
    ):
        await kubernetesversions.require_pod_policies(Client(InProcessTransport(server, "manager")))
