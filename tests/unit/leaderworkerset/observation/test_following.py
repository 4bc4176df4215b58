"""Whoever follows what they may not watch learns it at once; what only explains is left out."""

import pytest
from tests.simulation.virtualtime import run
from tests.unit.kuberuntime.fakes import SmallServer, failure

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects.resources import CORE_EVENTS, PODS
from leaderworkerset.observation.following import Supplement, following


def test_what_may_not_be_watched_ends_the_following_with_its_error() -> None:
    async def scenario() -> None:
        server = SmallServer()
        server.refuse = lambda _: failure(403, "Forbidden", "cannot watch pods")
        with pytest.raises(ExceptionGroup) as raised:
            async with following(Informer(Client(server), Selection(PODS))):
                raise AssertionError
        (error,) = raised.value.exceptions
        assert isinstance(error, ForbiddenError)

    run(scenario())


def test_what_explains_and_may_not_be_watched_is_left_out() -> None:
    async def scenario() -> None:
        pods, events = SmallServer(), SmallServer()
        pods.put("web-0")
        events.refuse = lambda _: failure(403, "Forbidden", "cannot watch events")
        informer, supplement = Informer(Client(pods), PODS), Supplement(Client(events), Selection(CORE_EVENTS))
        async with following(informer, supplement) as objects:
            await objects.until(lambda: supplement.ask() or (True if events.requests else None), every=1)
            pods.put("web-1")
            await objects.until(lambda: True if len(informer.store.list()) == 2 else None)
        assert (supplement.ask(), len(events.requests)) == ([], 1)

    run(scenario())
