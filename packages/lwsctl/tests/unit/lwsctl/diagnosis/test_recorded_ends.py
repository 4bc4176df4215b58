"""Tests groups between two failures. The record of the last failure is evaluated like the failure itself."""

import pytest
from tests.explanations.builders import (
    NOW,
    ago,
    container,
    ended,
    event,
    keyed,
    lws,
    observed,
    placed,
    pod,
    ready,
    recreated,
)
from tests.unit.lwsctl.diagnosis.test_containerrefusals import MESSAGES, RUN, told

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, NODES
from leaderworkerset.api import labels
from leaderworkerset.api.recreationrecord import Failure
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.recreation import RestartSettings
from leaderworkerset.core.restarts import failure
from lwsctl.model.health import Verdict

HOOK = 'Exec lifecycle hook ([/bin/fail]) for Container "main" in Pod "web-0_prod(1)" failed - error: exit status 1'

PHASES: dict[str, list[JSONObject]] = {
    "no pod": [],
    "not scheduled": [pod(made=1), pod(0, 1, made=1)],
    "being created": [placed(made=2, status={"phase": "Pending"}), placed(0, 1, made=2, status={"phase": "Pending"})],
}
"""The pods of a group in the first seconds after its recreation."""


def record(failed: JSONObject, leader: JSONObject, times: int = 2) -> JSONObject:
    """Return the record of a group that was recreated `count` times because of this pod."""
    known = None
    cause: Failure = failure.describe(failed)
    for _ in range(times):
        known = recreation.next_recreation(known, leader, cause, RestartSettings(has_backoff=False), NOW)
    assert known is not None
    return recreation.build(lws(), leader, known)


def failed_pod(status: JSONObject, **metadata: str) -> JSONObject:
    """Return the failed former leader of group 0."""
    own = {"uid": "former"} | metadata
    return placed(metadata=own, status={"containerStatuses": [status]})


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("reason", "message", "code", "step"), [row for row in MESSAGES if row[0] == RUN])
def test_rejected_start_keeps_its_cause_after_a_recreation(
    reason: str, message: str, code: str, step: str, phase: str
) -> None:
    assert reason == RUN
    end = ended(128, reason="StartError", message=message)
    former = failed_pod(container(restarts=1, last=end, waiting={"reason": "CrashLoopBackOff"}))
    found = told(observed(PHASES[phase], {CONTROLLER_REVISIONS: [record(former, former)]}))
    assert (found.code, found.verdict) == (code, Verdict.STUCK), found
    assert step.split(" on node ", maxsplit=1)[0] in found.steps[0]
    assert "  " not in found.sentence


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("code", [0, 137])
def test_failed_start_hook_keeps_its_cause_after_a_recreation(code: int, phase: str) -> None:
    end = ended(code, reason="Error" if code else "Completed")
    former = failed_pod(container(restarts=1, last=end, waiting={"reason": "CrashLoopBackOff"}))
    events = [event("Pod", "web-0", "FailedPostStartHook", HOOK, uid="former", seconds=20)]
    situation = observed(PHASES[phase], {CONTROLLER_REVISIONS: [record(former, former)], CORE_EVENTS: events})
    assert (told(situation).code, told(situation).verdict) == ("LWS-E115", Verdict.STUCK)


def test_hook_of_an_earlier_pod_does_not_explain_a_later_failure() -> None:
    former = failed_pod(container(restarts=1, last=ended(3), waiting={"reason": "CrashLoopBackOff"}))
    events = [event("Pod", "web-0", "FailedPostStartHook", HOOK, uid="an earlier one", seconds=200)]
    found = told(observed([], {CONTROLLER_REVISIONS: [record(former, former)], CORE_EVENTS: events}))
    assert found.code == "LWS-E071"


KILLS = {
    "liveness probe": ("Killing", "Container main failed liveness probe, will be restarted", "LWS-E072"),
    "startup probe": ("Killing", "Container main failed startup probe, will be restarted", "LWS-E072"),
    "postStart hook": ("FailedPostStartHook", "PostStartHook failed", "LWS-E115"),
}


@pytest.mark.parametrize("killed", KILLS)
@pytest.mark.parametrize("times", [1, 2])
def test_ready_group_remembers_the_kill_of_the_kubelet(killed: str, times: int) -> None:
    """The first recreation is reported as progress. After the second recreation, the group is in a crash loop."""
    reason, message, code = KILLS[killed]
    former = failed_pod(container(restarts=1, last=ended(0, reason="Completed")))
    events = [event("Pod", "web-0", reason, message, uid="former", seconds=20)]
    pods = [ready(0, 0, made=5), ready(0, 1, made=5)]
    for member in pods:
        member["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] = ago(5)
    objects = {CONTROLLER_REVISIONS: [record(former, former, times)], CORE_EVENTS: events}
    found = told(observed(pods, objects))
    assert (found.code, found.verdict) == (
        ("LWS-E081", Verdict.PROGRESSING) if times == 1 else (code, Verdict.CRASHING)
    )
    assert killed in found.sentence
    assert not any("exit code" in step for step in found.steps)
    if times == 1:
        reason = f"(the {killed} failed, so the kubelet killed the container; main: exit code 0, Completed)"
        assert reason in found.sentence


@pytest.mark.parametrize("phase", PHASES)
def test_injected_container_keeps_its_cause_after_a_recreation(phase: str) -> None:
    former = failed_pod(container("istio-proxy", restarts=1, last=ended(1), waiting={"reason": "CrashLoopBackOff"}))
    pods = [
        member
        | {
            "spec": member["spec"]
            | {"containers": [*member["spec"]["containers"], {"name": "istio-proxy", "image": "p"}]}
        }
        for member in PHASES[phase]
    ]
    found = told(observed(pods, {CONTROLLER_REVISIONS: [record(former, former)]}))
    assert (found.code, found.verdict) == ("LWS-E111", Verdict.STUCK)
    assert found.sentence == "injected container istio-proxy of pod web-0 fails with exit code 1 (Error)"


def test_group_with_a_new_key_remembers_its_predecessor() -> None:
    """The leader has a different name and key. The annotation contains the name of the leader that it replaces."""
    former = keyed(1)
    former["status"]["containerStatuses"] = [container(restarts=1, last=ended(1, message="KeyError: 'rank'"))]
    successor = keyed(2, made=5)
    successor["metadata"]["annotations"] = {labels.REPLACES: meta.name(former)}
    successor["metadata"]["uid"] = UID("successor")
    of = lws(1, 1, groupIdentity="Hash", status={"readyReplicas": 1, "updatedReplicas": 1})
    found = told(observed([successor], {CONTROLLER_REVISIONS: [record(former, former)]}, of=of))
    assert (found.code, found.verdict) == ("LWS-E071", Verdict.CRASHING)
    assert found.sentence.endswith("crashed with exit code 1 (Error): KeyError: 'rank'")
    assert found.subject is not None
    assert found.subject.name == meta.name(successor)


def test_failed_sidecar_is_not_called_an_init_container() -> None:
    template = {"containers": [{"name": "main"}], "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}
    of = lws(template={"workerTemplate": {"spec": template}})
    status = {"phase": "Pending", "initContainerStatuses": [container("proxy", 2, terminated=ended(1))]}
    sidecar = placed(spec=template, status=status)
    assert told(observed([sidecar, ready(0, 1)], of=of)).code == "LWS-E071"
    assert told(recreated([], failure="proxy: exit code 1, Error", of=of)).code == "LWS-E071"


def test_slow_end_names_grace_period_and_end() -> None:
    metadata = {"deletionTimestamp": ago(-555), "deletionGracePeriodSeconds": 600}
    found = told(observed([placed(metadata=metadata), ready(0, 1)]))
    assert (found.code, found.verdict) == ("LWS-E121", Verdict.PROGRESSING)
    assert (
        found.sentence
        == "pod web-0 has been terminating for 45s (grace period 10m); node node-0 kills its containers in 9m15s"
    )
    quick = {"deletionTimestamp": ago(-25), "deletionGracePeriodSeconds": 30}
    assert told(observed([placed(metadata=quick), ready(0, 1)])).code != "LWS-E121"


@pytest.mark.parametrize(("late", "is_stuck"), [(20, False), (31, True)])
def test_overloaded_node_can_terminate_a_pod_later(late: float, is_stuck: bool) -> None:
    ending = placed(metadata={"deletionTimestamp": ago(late), "deletionGracePeriodSeconds": 2})
    assert (told(observed([ending, ready(0, 1)])).code == "LWS-E053") is is_stuck


def test_amounts_of_storage_have_units() -> None:
    told_by = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient ephemeral-storage.",
    }
    requests = {"requests": {"ephemeral-storage": "100Gi"}}
    waiting = pod(spec={"containers": [{"name": "main", "resources": requests}]}, status={"conditions": [told_by]})
    node = {"metadata": {"name": "node-0"}, "spec": {}, "status": {"allocatable": {"ephemeral-storage": "47093746742"}}}
    found = told(observed([waiting], {NODES: [node]}, running=[]))
    assert found.code == "LWS-E048"
    assert "it requests 100Gi, and the largest node has 43.9Gi (56.1Gi missing)" in found.sentence
