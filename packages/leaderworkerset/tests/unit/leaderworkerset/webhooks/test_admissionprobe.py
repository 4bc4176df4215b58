"""Tests that the response to a dry-run create request shows whether the API server can reach the webhooks."""

import itertools

import pytest
from testkit.fakes import ScriptedTransport, failure, respond

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConnectionFailedError
from leaderworkerset.webhooks import admissionprobe

pytestmark = pytest.mark.virtual_time

NOT_CALLED = failure(500, "InternalError", 'failed calling webhook "mleaderworkerset.kb.io": connection refused')
ADMITTED = respond(201, admissionprobe.PROBE)


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        (ADMITTED, ""),
        (NOT_CALLED, 'failed calling webhook "mleaderworkerset.kb.io": connection refused'),
        (failure(404, "NotFound", "no such kind"), "no such kind"),
        (failure(403, "Forbidden", "may not create"), ""),
        (ConnectionFailedError("refused"), "refused"),
    ],
    ids=["admitted", "not called", "not defined", "not allowed", "no API server"],
)
async def test_obstacle_is_named_when_webhooks_are_not_reached(answered: Response | Exception, expected: str) -> None:
    server = ScriptedTransport(answered)
    assert await admissionprobe.obstacle(Client(server), "lws-system") == expected
    assert ("dryRun", "All") in server.requests[0].query


async def test_wait_completes_when_webhooks_are_reachable() -> None:
    server = ScriptedTransport(NOT_CALLED, NOT_CALLED, ADMITTED)
    await admissionprobe.wait_until_reachable(Client(server), "lws-system", 60.0)
    assert len(server.requests) == 3


async def test_wait_names_the_last_obstacle_when_time_is_over() -> None:
    server = ScriptedTransport(*itertools.repeat(NOT_CALLED, 100))
    with pytest.raises(TimeoutError, match="connection refused"):
        await admissionprobe.wait_until_reachable(Client(server), "lws-system", 5.0)
