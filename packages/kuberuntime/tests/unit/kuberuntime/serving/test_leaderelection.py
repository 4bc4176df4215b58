"""Tests that there is at most one leader, even if candidates are stopped, killed, paused or disconnected."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st
from testkit.fakes import failure, respond
from testkit.transports import RequestTransport
from testkit.virtualtime import START, VirtualClock, run

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.controller.eventrecorder import microtime
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.serving.leaderelection import (
    ElectionSettings,
    LeaderElection,
    LeaseUpdate,
    ObservedLease,
    Wait,
    decide,
    observe,
    released_spec,
)

pytestmark = pytest.mark.virtual_time

KEY = ObjectKey("lws-system", "lock")
NOW = microtime(START)


def settings(identity: str = "me") -> ElectionSettings:
    return ElectionSettings(KEY, identity)


def lease(**spec: Any) -> JSONObject:
    full = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "r", "leaseTransitions": 3}
    return {"metadata": {"name": "lock", "resourceVersion": "1"}, "spec": full | spec}


class FixedClock(VirtualClock):
    """A clock that shows a fixed time."""

    def __init__(self, at: float) -> None:
        super().__init__()
        self._at = at

    def monotonic(self) -> float:
        return self._at


@pytest.mark.parametrize(
    ("found", "seen_at", "now", "decision"),
    [
        (None, None, 0.0, "claim"),
        (lease(), 0.0, 14.9, "wait"),
        (lease(), 0.0, 15.0, "claim"),
        (lease(leaseDurationSeconds=60), 0.0, 59.0, "wait"),
        (lease(), None, 1000.0, "wait"),
        (lease(holderIdentity=""), 0.0, 0.0, "claim"),
        (lease(holderIdentity="me"), 0.0, 0.0, "claim"),
    ],
    ids=["no lease", "held", "over", "its own duration counts", "never seen before", "released", "ours"],
)
def test_lease_is_claimed_only_when_free_or_expired(
    found: JSONObject | None, seen_at: float | None, now: float, decision: str
) -> None:
    seen = None if found is None or seen_at is None else ObservedLease(found["spec"], seen_at)
    decided = decide(settings(), found, seen, FixedClock(now))
    assert isinstance(decided, LeaseUpdate if decision == "claim" else Wait)


def test_claim_counts_transitions_and_keeps_the_acquire_time() -> None:
    taken = decide(settings(), lease(), ObservedLease(lease()["spec"], 0.0), FixedClock(20.0))
    renewed = decide(settings(), lease(holderIdentity="me", acquireTime="then"), None, FixedClock(0.0))
    first = decide(settings(), None, None, FixedClock(0.0))
    assert isinstance(taken, LeaseUpdate)
    assert isinstance(renewed, LeaseUpdate)
    assert isinstance(first, LeaseUpdate)
    assert (taken.spec["leaseTransitions"], taken.spec["acquireTime"]) == (4, taken.spec["renewTime"])
    assert (renewed.spec["leaseTransitions"], renewed.spec["acquireTime"]) == (3, "then")
    assert (first.spec["leaseTransitions"], first.replaces) == (0, None)


def test_age_of_a_lease_restarts_only_when_it_changes() -> None:
    """Wall clocks are ignored. A renew time an hour in the past or future is an ordinary change."""
    first = observe(None, lease(), 1.0)
    assert observe(first, lease(), 5.0) == first
    assert observe(first, lease(renewTime="1970-01-01T00:00:00.000000Z"), 5.0).at == 5.0


def test_released_lease_has_no_holder() -> None:
    freed = released_spec(lease(), START)
    assert (freed["holderIdentity"], freed["leaseDurationSeconds"], freed["leaseTransitions"]) == ("", 1, 3)


class LeaseServer:
    """Serves one lease with optimistic concurrency. A transport can be disconnected from it."""

    def __init__(self) -> None:
        self.lease: JSONObject | None = None
        self.version = 0
        self.writes: list[str] = []
        self.reads = 0
        self.written = asyncio.Event()

    def lose(self) -> None:
        """Delete the lease."""
        self.lease = None

    def serve(self, request: Request) -> Response:
        if request.method == "GET":
            self.reads += 1
            return failure(404, "NotFound") if self.lease is None else respond(200, self.lease)
        sent = msgspec.json.decode(request.body)
        if self.lease is None and request.method == "PUT":
            return failure(404, "NotFound")
        if self.lease is not None and sent["metadata"].get("resourceVersion") != str(self.version):
            return failure(409, "Conflict" if request.method == "PUT" else "AlreadyExists")
        self.version += 1
        self.lease = sent | {"metadata": sent["metadata"] | {"resourceVersion": str(self.version)}}
        self.writes.append(str(sent["spec"]["holderIdentity"]))
        self.written.set()
        return respond(200, self.lease)


class Line(RequestTransport):
    """A candidate's connection to the server. A request takes 10 ms."""

    def __init__(self, server: LeaseServer) -> None:
        self.server = server
        self.is_cut = False
        self.delay = 0.01
        self.way_back = 0.0

    async def request(self, request: Request) -> Response:
        await asyncio.sleep(self.delay)
        if self.is_cut:
            raise ConnectionFailedError("cut")
        response = self.server.serve(request)
        await asyncio.sleep(self.way_back)
        return response


class Candidate:
    """A candidate of the election that records when it acts."""

    def __init__(self, name: str, server: LeaseServer, acting: dict[str, float]) -> None:
        self.name = name
        self.line = Line(server)
        self.clock = VirtualClock()
        self.states: list[bool] = []
        self._acting = acting
        self.election = LeaderElection(Client(self.line), settings(name), self.clock, self, jitter=lambda: 0.5)

    def leading(self, *, is_leader: bool) -> None:
        self.states.append(is_leader)

    async def lead(self) -> None:
        assert not self._acting, f"{self.name} acts beside {self._acting}"
        self._acting[self.name] = self.clock.monotonic()
        try:
            await asyncio.Event().wait()
        finally:
            del self._acting[self.name]

    async def run(self) -> None:
        await self.election.run(self.lead)


async def test_clean_stop_hands_the_lease_over_immediately() -> None:
    """The lease is released when the process exits normally (R-MGR-3, R-OP-12)."""
    server, acting = LeaseServer(), dict[str, float]()
    first, second = (Candidate(name, server, acting) for name in ("first", "second"))
    task = asyncio.create_task(first.run())
    await asyncio.sleep(1)
    other = asyncio.create_task(second.run())
    await asyncio.sleep(60)
    assert list(acting) == ["first"]
    stopped_at = first.clock.monotonic()
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(5)
    assert list(acting) == ["second"]
    assert acting["second"] - stopped_at < 2.5
    assert first.states == [False, True, False]
    other.cancel()
    await asyncio.wait([other])
    assert server.writes[-1] == ""


async def test_isolated_leader_stops_before_a_new_leader_starts() -> None:
    server, acting = LeaseServer(), dict[str, float]()
    first, second = (Candidate(name, server, acting) for name in ("first", "second"))
    tasks = [asyncio.create_task(first.run())]
    await asyncio.sleep(1)
    tasks.append(asyncio.create_task(second.run()))
    await asyncio.sleep(20)
    cut_at = first.clock.monotonic()
    first.line.is_cut = True
    await asyncio.sleep(settings().tenure + 0.1)
    assert not acting
    assert not first.election.is_leader
    await asyncio.sleep(8)
    assert list(acting) == ["second"]
    assert 15 <= acting["second"] - cut_at + 2 < 20
    first.line.is_cut = False
    await asyncio.sleep(60)
    assert list(acting) == ["second"]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@pytest.mark.parametrize("delay", [2.0, 4.5], ids=["2 s", "4.5 s"])
async def test_leader_keeps_the_lease_when_the_server_is_slow(delay: float) -> None:
    """With the default times, a request may take 5 s, as in client-go, because a renewal is a single write."""
    server, acting = LeaseServer(), dict[str, float]()
    only = Candidate("only", server, acting)
    task = asyncio.create_task(only.run())
    await asyncio.sleep(5)
    reads = server.reads
    only.line.delay = delay
    await asyncio.sleep(240)
    assert only.states == [False, True]
    assert server.reads == reads
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("delay", [6.0, 9.0], ids=["6 s", "9 s"])
async def test_differs_from_upstream_leader_waits_for_a_late_answer(delay: float) -> None:
    """A manager keeps the lease if the API server responds after 9.5 s.

    client-go cancels requests after 5 s (ADR 31).
    """
    server, acting = LeaseServer(), dict[str, float]()
    only = Candidate("only", server, acting)
    task = asyncio.create_task(only.run())
    for _ in range(5):
        server.written.clear()
        await server.written.wait()
        only.line.delay = delay
        await asyncio.sleep(9.5)
        only.line.delay = 0.01
        await asyncio.sleep(5)
    assert only.states == [False, True]
    task.cancel()
    await asyncio.wait([task])


async def test_leader_keeps_the_lease_when_an_answer_is_lost() -> None:
    """The server performs a renewal, but the response is lost. The next renewal conflicts and rereads the lease."""
    server, acting = LeaseServer(), dict[str, float]()
    only = Candidate("only", server, acting)
    task = asyncio.create_task(only.run())
    await asyncio.sleep(5)
    only.line.way_back = 1000.0
    server.written.clear()
    await server.written.wait()
    only.line.way_back = 0.0
    await asyncio.sleep(60)
    assert only.states == [False, True]
    task.cancel()
    await asyncio.wait([task])


async def test_leader_creates_the_lease_again_when_it_is_deleted() -> None:
    server, acting = LeaseServer(), dict[str, float]()
    only = Candidate("only", server, acting)
    task = asyncio.create_task(only.run())
    await asyncio.sleep(5)
    server.lose()
    await asyncio.sleep(3)
    assert vars(server)["lease"] is not None
    assert only.states == [False, True]
    task.cancel()
    await asyncio.wait([task])


def test_leadership_stops_before_the_lease_expires() -> None:
    slow = ElectionSettings(KEY, "me", lease_duration=137.0, renew_deadline=107.0, retry_period=26.0)
    assert (settings().tenure, slow.tenure) == (12.0, 122.0)


async def test_missing_answer_does_not_extend_the_tenure() -> None:
    server, acting = LeaseServer(), dict[str, float]()
    only = Candidate("only", server, acting)
    task = asyncio.create_task(only.run())
    await asyncio.sleep(5)
    only.line.delay = 1000.0
    await asyncio.sleep(settings().tenure + 0.1)
    assert not acting
    task.cancel()
    await asyncio.wait([task])


async def test_leader_stopped_without_an_answer_reports_its_end() -> None:
    """The release is cancelled in time. Before Python 3.11.3, its time limit aborted the cleanup."""
    only = Candidate("only", LeaseServer(), {})
    task = asyncio.create_task(only.run())
    await asyncio.sleep(5)
    only.line.delay = 1000.0
    task.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()
    assert only.states == [False, True, False]


async def test_long_retry_period_does_not_delay_the_exit() -> None:
    """The operator retries every 26 s, but exits within 10 s, even if the server does not respond (R-OP-13)."""
    only = Candidate("only", LeaseServer(), {})
    slow = ElectionSettings(KEY, "only", lease_duration=137.0, renew_deadline=107.0, retry_period=26.0)
    election = LeaderElection(Client(only.line), slow, only.clock, only)
    task = asyncio.create_task(election.run(only.lead))
    await asyncio.sleep(5)
    only.line.delay = 1000.0
    task.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()


@pytest.mark.parametrize("thief", [None, "thief"])
async def test_leader_stopped_during_a_renewal_releases_the_lease(thief: str | None) -> None:
    """The server performs the renewal, but its response arrives too late."""
    server = LeaseServer()
    only = Candidate("only", server, {})
    task = asyncio.create_task(only.run())
    await asyncio.sleep(5)
    only.line.way_back = 0.5
    server.written.clear()
    await server.written.wait()
    if thief is not None:
        steal(server, thief)
    only.line.way_back = 0.0
    task.cancel()
    await asyncio.wait([task])
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == (thief or "")


def steal(server: LeaseServer, thief: str) -> None:
    """Assign the lease to another holder, as only an incorrect clock or a manual change could."""
    assert server.lease is not None
    server.version += 1
    spec = server.lease["spec"] | {"holderIdentity": thief}
    metadata = server.lease["metadata"] | {"resourceVersion": str(server.version)}
    server.lease = server.lease | {"metadata": metadata, "spec": spec}


async def test_leader_stops_after_its_lease_was_taken() -> None:
    server, acting = LeaseServer(), dict[str, float]()
    only = Candidate("only", server, acting)
    task = asyncio.create_task(only.run())
    await asyncio.sleep(5)
    steal(server, "thief")
    await asyncio.sleep(2.1)
    assert not acting
    await asyncio.sleep(30)
    assert list(acting) == ["only"]
    task.cancel()
    await asyncio.wait([task])


async def test_lease_is_released_when_the_work_ends() -> None:
    server = LeaseServer()
    candidate = Candidate("only", server, {})

    async def work() -> None:
        await asyncio.sleep(3)

    await candidate.election.run(work)
    assert server.writes[-1] == ""
    assert candidate.clock.monotonic() < 3.2


async def test_failing_work_ends_the_election_and_releases_the_lease() -> None:
    server = LeaseServer()

    async def work() -> None:
        raise RuntimeError("broken")

    with pytest.raises(ExceptionGroup, match="unhandled"):
        await Candidate("only", server, {}).election.run(work)
    assert server.writes[-1] == ""


async def test_clock_skew_of_an_hour_is_harmless() -> None:
    class LateClock(VirtualClock):
        def now(self) -> Any:
            return super().now() - timedelta(hours=1)

    server, acting = LeaseServer(), dict[str, float]()
    first, second = (Candidate(name, server, acting) for name in ("first", "second"))
    second.election = LeaderElection(Client(second.line), settings("second"), LateClock(), second)
    tasks = [asyncio.create_task(first.run())]
    await asyncio.sleep(1)
    tasks.append(asyncio.create_task(second.run()))
    await asyncio.sleep(120)
    assert list(acting) == ["first"]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@settings_of_hypothesis(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(["cut", "mend", "slow", "quick", "kill", "stop", "start"]),
            st.floats(0.0, 25.0),
        ),
        max_size=15,
    )
)
@pytest.mark.slow
def test_at_most_one_candidate_acts_and_one_finally_does(happenings: list[tuple[int, str, float]]) -> None:
    """`Candidate.lead` asserts that it acts alone.

    Three candidates are disconnected, slowed, killed and restarted.
    """

    async def scenario() -> None:
        server, acting = LeaseServer(), dict[str, float]()
        candidates = [Candidate(name, server, acting) for name in ("a", "b", "c")]
        tasks = {one.name: asyncio.create_task(one.run()) for one in candidates}
        for index, what, seconds in happenings:
            await happen(candidates[index], what, tasks)
            await asyncio.sleep(seconds)
        for one in candidates:
            await happen(one, "mend", tasks)
            await happen(one, "start", tasks)
        await asyncio.sleep(60)
        assert len(acting) == 1
        for task in tasks.values():
            task.cancel()
        for task in tasks.values():
            with suppress(asyncio.CancelledError):
                await task

    run(scenario())


async def happen(candidate: Candidate, what: str, tasks: dict[str, "asyncio.Task[None]"]) -> None:
    match what:
        case "cut" | "mend":
            candidate.line.is_cut = what == "cut"
            candidate.line.delay = 0.01
        case "slow":
            candidate.line.delay = 7.0
        case "quick":
            candidate.line.delay = 0.01
        case "kill":
            candidate.line.is_cut = True  # it cannot release
            await _cancel(tasks[candidate.name])
        case "stop":
            await _cancel(tasks[candidate.name])
        case "start" if (task := tasks[candidate.name]).done():
            if not task.cancelled():
                task.result()  # it acted at the same time as another leader
            candidate.line.is_cut = False
            tasks[candidate.name] = asyncio.create_task(candidate.run())


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
