"""Tests the termination of `lws run`.

All workloads are deleted at once with a timeout, and remaining objects are reported.
"""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace
from testkit.fakes import ScriptedTransport, respond
from testkit.virtualtime import run
from tests.explanations.builders import observed, ready

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube import workloads
from lwsctl.cli.commands.local.run import LAST_WORDS, RunInputs, print_last_output, unmet_condition
from lwsctl.cli.views.live import display
from lwsctl.model.failurehistory import Crashes
from lwsctl.observation.conditionwatch import watch_conditions

KEYS = tuple((LEADERWORKERSETS, ObjectKey("default", f"web-{index}")) for index in range(24))


class SlowTransport(ScriptedTransport):
    """Responds to each request after a delay."""

    def __init__(self, seconds: float) -> None:
        super().__init__(*(respond(200, {}) for _ in KEYS))
        self._seconds = seconds

    async def request(self, request: Request) -> Response:
        response = await super().request(request)
        await asyncio.sleep(self._seconds)
        return response


@pytest.mark.parametrize(("seconds", "taken"), [(2.0, 2.0), (60.0, LAST_WORDS)])
def test_stop_deletes_all_sets_at_once_within_a_limit(seconds: float, taken: float) -> None:
    async def scenario() -> float:
        transport = SlowTransport(seconds)
        began = asyncio.get_running_loop().time()
        async with watch_conditions() as objects:
            await print_last_output(objects, RunInputs(Client(transport), KEYS, [], display([])))
        assert len(transport.requests) == len(KEYS)
        return asyncio.get_running_loop().time() - began

    assert run(scenario()) == pytest.approx(taken, abs=0.5)


def test_ranks_are_killed_when_their_last_words_are_over() -> None:
    """The cluster must not exceed the time in the note about Ctrl-C, so a run stops within five seconds."""
    assert workloads.GRACE_AT_END.total_seconds() <= LAST_WORDS <= 3


def test_timeout_of_a_ready_group_that_failed_names_the_failure() -> None:
    plain, now = observed([ready(), ready(0, 1)]).view, SystemClock().now()
    status = {"conditions": [{"type": "Available", "status": "True"}]}
    view = replace(plain, ready=1, object=plain.object | {"status": plain.object.get("status", {}) | status})
    assert view.is_ready
    crashes = Crashes(count=1, first=now, last=now, longest_run=timedelta(seconds=4), stable_since=now, is_ready=True)
    failed = replace(view, groups=tuple(replace(group, crashes=crashes) for group in view.groups))
    proof = timedelta(seconds=10)
    failure = "; group 0 of web failed, and has not been ready for long enough"
    assert unmet_condition(failed, proof, is_done=False) == unmet_condition(view, proof, is_done=False) + failure
    assert unmet_condition(failed, timedelta(), is_done=False) == unmet_condition(view, proof, is_done=False)
