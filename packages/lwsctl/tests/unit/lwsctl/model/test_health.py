"""Tests the status with tables: the selection, the recorded failures, and the tolerance for starts."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.explanations.builders import NOW, ago, container, ended, lws, placed, ready, recreated
from tests.explanations.builders import observed as observed_of

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.recreationrecord import RecreationState
from lwsctl.model.failurehistory import Crashes
from lwsctl.model.groups import Group
from lwsctl.model.health import URGENCY, HealthFacts, Verdict, derive_verdict
from lwsctl.views import unmetconditions


def at(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def failures(count: int = 2, ready_for: float | None = 5, longest: float | None = 2, **fields: Any) -> Crashes:
    """Return failures, the last of which occurred 90 seconds ago."""
    return Crashes(
        count=count,
        first=at(300),
        last=at(90),
        longest_run=None if longest is None else timedelta(seconds=longest),
        stable_since=None if ready_for is None else at(ready_for),
        **{"is_ready": ready_for is not None} | fields,
    )


TABLE: dict[str, tuple[HealthFacts, Verdict]] = {
    "ready": (HealthFacts(is_ready=True), Verdict.HEALTHY),
    "complete": (HealthFacts(is_complete=True), Verdict.COMPLETE),
    "complete after failures": (HealthFacts(is_complete=True, crashes=(failures(),)), Verdict.COMPLETE),
    "no cause": (HealthFacts(), Verdict.UNKNOWN),
    "no cause, events not read": (HealthFacts(is_read=False), Verdict.UNREAD),
    "cause": (HealthFacts(cause=Verdict.STUCK), Verdict.STUCK),
    "ready, and a group must move": (HealthFacts(is_ready=True, cause=Verdict.PROGRESSING), Verdict.PROGRESSING),
    "loads": (HealthFacts(cause=Verdict.STARTING), Verdict.STARTING),
    "ready after the first failure": (HealthFacts(is_ready=True, crashes=(failures(1),)), Verdict.PROGRESSING),
    "ready after two failures": (HealthFacts(is_ready=True, crashes=(failures(2),)), Verdict.CRASHING),
    "loads after two failures": (
        HealthFacts(cause=Verdict.STARTING, crashes=(failures(2, ready_for=None),)),
        Verdict.CRASHING,
    ),
    "two failures, now without a node": (HealthFacts(cause=Verdict.STUCK, crashes=(failures(2),)), Verdict.STUCK),
    "one failure that is a crash": (HealthFacts(cause=Verdict.CRASHING, crashes=(failures(1),)), Verdict.CRASHING),
    "one group of two fails": (HealthFacts(is_ready=True, crashes=(failures(2, 3600), failures(2))), Verdict.CRASHING),
    "ready for long after failures": (
        HealthFacts(is_ready=True, crashes=(failures(9, ready_for=61),)),
        Verdict.HEALTHY,
    ),
}


@pytest.mark.parametrize(("facts", "verdict"), TABLE.values(), ids=TABLE)
def test_verdict_follows_from_facts(facts: HealthFacts, verdict: Verdict) -> None:
    assert derive_verdict(facts, NOW) is verdict


def test_each_verdict_has_an_urgency() -> None:
    assert set(URGENCY) == set(Verdict)
    assert URGENCY.index(Verdict.CRASHING) < URGENCY.index(Verdict.UNREAD) < URGENCY.index(Verdict.PROGRESSING)


MEMORY: dict[str, tuple[Crashes, bool]] = {
    "ready for less than a minute": (failures(ready_for=59), False),
    "ready for a minute": (failures(ready_for=60), True),
    "ready for less than its longest run": (failures(ready_for=120, longest=180), False),
    "ready for longer than its longest run": (failures(ready_for=181, longest=180), True),
    "failed after hours": (failures(ready_for=60, longest=7200), True),
    "unknown run": (failures(ready_for=60, longest=None), True),
    "runs, and is not ready": (failures(ready_for=61, is_ready=False), True),
    "runs, not ready, unknown run": (failures(ready_for=70, longest=None, is_ready=False), False),
    "does not run": (failures(ready_for=None), False),
    "condemned": (failures(ready_for=3600, is_condemned=True), False),
}


@pytest.mark.parametrize(("crashes", "are_over"), MEMORY.values(), ids=MEMORY)
def test_failures_are_over_after_a_longer_ready_time(crashes: Crashes, are_over: bool) -> None:
    assert crashes.are_over(NOW) is are_over


def test_group_that_waits_for_its_recreation_is_not_ready() -> None:
    situation = recreated([ready(), ready(0, 1)], leader="web-0-uid", state=RecreationState.WAITING, due=98)
    (group,) = situation.view.groups
    assert [rank.is_ready for rank in group.ranks] == [True, True]
    assert (group.is_ready, group.is_condemned) == (False, True)


def group(*pods: JSONObject) -> Group:
    return observed_of(pods).view.groups[0]


def running(restarts: int = 0, last: JSONObject | None = None, since: float = 30) -> JSONObject:
    return {"containerStatuses": [container("main", restarts, last, running={"startedAt": ago(since)})]}


def test_restart_in_place_is_remembered() -> None:
    end = ended(3, 40) | {"startedAt": ago(45)}
    crashes = group(placed(ready=True, status=running(4, end)), ready(0, 1)).crashes
    assert crashes is not None
    assert (crashes.count, crashes.longest_run, crashes.last) == (4, timedelta(seconds=5), at(40))
    assert crashes.stable_since == at(30)


def test_restarts_in_place_that_are_configured_are_no_loop() -> None:
    end = ended(137, 40, "RestartingAllContainers")
    crashes = group(placed(ready=True, status=running(4, end)), ready(0, 1)).crashes
    assert crashes is not None
    assert crashes.count == 1


def test_restart_of_a_node_is_not_a_failure() -> None:
    assert group(placed(ready=True, status=running(0, ended(255, 40))), ready(0, 1)).crashes is None


@pytest.mark.parametrize("reason", ["", ": EvictionByEvictionAPI", ": PreemptionByScheduler", ": Evicted"])
def test_only_an_eviction_by_a_kubelet_is_a_group_failure(reason: str) -> None:
    group = recreated([ready(), ready(0, 1)], failure=f"deleted{reason}").view.groups[0]
    assert (group.crashes is not None) is (reason == ": Evicted")


@pytest.mark.parametrize(("since", "is_over"), [(19, False), (21, True)])
def test_evicted_group_must_stay_until_the_kubelet_looks_again(since: float, is_over: bool) -> None:
    pods = [placed(0, rank, ready=True, status=running(since=since), made=since) for rank in range(2)]
    crashes = recreated(pods, failure="deleted: Evicted: used 60Mi").view.groups[0].crashes
    assert crashes is not None
    assert crashes.are_over(NOW, timedelta(seconds=10)) is is_over


def unready(changed: float, started: float = 100, made: float = 110, **spec: Any) -> JSONObject:
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": ago(changed)}
    status = running(since=started) | {"conditions": [condition]}
    return placed(0, 1, made=made, status=status, spec={"containers": [{"name": "main", **spec}]})


STARTUP = {"startupProbe": {"periodSeconds": 10, "failureThreshold": 180}}
STARTS: dict[str, tuple[JSONObject, bool]] = {
    "never ready": (unready(105), True),
    "ready before": (unready(20), False),
    "beyond the patience": (unready(900, 890, 900), False),
    "beyond ten minutes, within its startup probe": (unready(900, 890, 900, **STARTUP), True),
}


@pytest.mark.parametrize(("pod", "may_start"), STARTS.values(), ids=STARTS)
def test_rank_that_was_never_ready_is_starting(pod: JSONObject, may_start: bool) -> None:
    assert (group(ready(), pod).ranks[1].startup is not None) is may_start


def test_start_may_take_twice_as_long_as_the_last_one() -> None:
    slow = {"type": "Ready", "status": "True", "lastTransitionTime": ago(3600)}
    other = placed(1, 1, made=4500, ready=True, status=running(since=4490) | {"conditions": [slow]})
    startup = observed_of([ready(), unready(905, 890, 900), other], of=lws(2)).view.groups[0].ranks[1].startup
    assert startup is not None
    assert (startup.other_start, startup.patience) == (timedelta(seconds=900), timedelta(seconds=1800))


@pytest.mark.parametrize(("since", "least", "lacks"), [(4, 10, True), (11, 10, False), (11, 30, True)])
def test_ready_must_last_after_a_failure(since: float, least: float, lacks: bool) -> None:
    """Without failures, the state ready takes effect immediately."""
    failed = placed(ready=True, status=running(1, ended(3, since + 1) | {"startedAt": ago(since + 6)}, since))
    view = observed_of([failed, ready(0, 1)]).view
    missing_text = unmetconditions.missing_for_lasting(view, NOW, timedelta(seconds=least))
    assert missing_text == ("group 0 of web failed, and has not been ready for long enough" if lacks else None)
    assert unmetconditions.missing_for_lasting(observed_of([ready(), ready(0, 1)]).view, NOW) is None


@pytest.mark.parametrize(
    ("condition", "least", "lacks"),
    [("ready", 10, True), ("ready", 0, False), ("condition=Available", 10, False), ("replicas=1", 10, False)],
)
def test_only_ready_must_last(condition: str, least: float, lacks: bool) -> None:
    """With a time of 0, and for other conditions, the current state takes effect."""
    failed = placed(ready=True, status=running(1, ended(3, 5) | {"startedAt": ago(10)}, 4))
    available = {"readyReplicas": 1, "conditions": [{"type": "Available", "status": "True", "observedGeneration": 1}]}
    view = observed_of([failed, ready(0, 1)], of=lws(status=available)).view
    lacking = unmetconditions.condition_check(condition, lambda: NOW, timedelta(seconds=least))(view)
    assert (lacking is not None and "not been ready for long enough" in lacking) is lacks
    assert unmetconditions.missing_for_lasting(view, NOW, kept_back=1) is None
