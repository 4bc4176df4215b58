"""Which versions of Kubernetes are tested, and what the log says of others."""

import asyncio

import pytest
from structlog.testing import capture_logs
from testkit.fakes import ScriptedTransport, answer
from tests.controlplane import build

from kuberuntime.client.client import Client
from leaderworkerset.manager import kubernetesversions


def logged(status: int, body: bytes) -> list[str]:
    """Return the levels of what is logged for this answer."""
    client = Client(ScriptedTransport(answer(status, body)))
    with capture_logs() as logs:
        asyncio.run(kubernetesversions.warn(client))
    return [one["log_level"] for one in logs]


def test_the_versions_that_are_named_are_those_that_the_tests_run() -> None:
    assert [f"1.{minor}" for minor in kubernetesversions.TESTED] == [*build.VERSIONS]


@pytest.mark.parametrize("version", ["v1.36.3", "v1.37.0-gke.1", "v1.36.0+localkube"])
def test_nothing_is_logged_of_a_version_that_is_tested(version: str) -> None:
    assert logged(200, b'{"gitVersion": "%s"}' % version.encode()) == []


@pytest.mark.parametrize("body", [b'{"gitVersion": "v1.35.2"}', b'{"gitVersion": "v1.38.0"}', b"{}"])
def test_another_version_is_warned_about_once(body: bytes) -> None:
    assert logged(200, body) == ["warning"]


@pytest.mark.parametrize(("status", "body"), [(500, b"{}"), (200, b"<html>")], ids=["an error", "no JSON"])
def test_a_version_that_cannot_be_read_ends_nothing(status: int, body: bytes) -> None:
    assert logged(status, body) == ["debug"]
