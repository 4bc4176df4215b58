"""Tests watches that wait for conditions.

A forbidden watch is an immediate error, but an optional one is omitted. Slow checks run less often.
"""

import pytest
from testkit.fakes import SmallServer, failure

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects.resources import CORE_EVENTS, PODS
from lwsctl.observation.conditionwatch import LONGEST_PAUSE, Supplement, remaining_pause, watch_conditions

pytestmark = pytest.mark.virtual_time


async def test_forbidden_watch_fails_with_its_error() -> None:
    server = SmallServer()
    server.refuse = lambda _: failure(403, "Forbidden", "cannot watch pods")
    with pytest.raises(ExceptionGroup) as raised:
        async with watch_conditions(Informer(Client(server), Selection(PODS))):
            raise AssertionError
    (error,) = raised.value.exceptions
    assert isinstance(error, ForbiddenError)


async def test_forbidden_supplementary_watch_is_omitted() -> None:
    pods, events = SmallServer(), SmallServer()
    pods.put("web-0")
    events.refuse = lambda _: failure(403, "Forbidden", "cannot watch events")
    informer, supplement = Informer(Client(pods), PODS), Supplement(Client(events), Selection(CORE_EVENTS))
    async with watch_conditions(informer, supplement) as objects:
        await objects.wait_for(lambda: supplement.list_objects() or (True if events.requests else None), every=1)
        pods.put("web-1")
        await objects.wait_for(lambda: True if len(informer.store.list()) == 2 else None)
    assert (supplement.list_objects(), len(events.requests)) == ([], 1)


@pytest.mark.parametrize("status", [None, 401, 403], ids=["known", "unauthorized", "forbidden"])
async def test_wait_begins_when_needed_objects_are_known_or_rejected(status: int | None) -> None:
    records = SmallServer()
    records.put("web-0-recreations")
    if status is not None:
        records.refuse = lambda _: failure(status, "Refused", "cannot watch records")
    supplement = Supplement(Client(records), Selection(PODS), is_needed=True)
    async with watch_conditions(supplement):
        assert len(supplement.list_objects()) == (status is None)


@pytest.mark.parametrize(
    ("took", "since", "expected"),
    [
        (0.02, 0.0, 0.06),
        (0.02, 0.05, 0.01),
        (0.02, 0.06, 0.0),
        (0.02, 9.0, 0.0),
        (1.0, 0.0, LONGEST_PAUSE),
        (0.0, 0.0, 0.0),
    ],
    ids=["at once", "within the pause", "at its end", "long after", "a check of a second", "a check of no time"],
)
def test_change_waits_for_the_rest_of_the_pause(took: float, since: float, expected: float) -> None:
    assert remaining_pause(took, since) == pytest.approx(expected)
