"""Tests `lws explain` on both clusters. Each fault is created, and its code is reported within seconds."""

import asyncio

import pytest
from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import (
    ASKED_AGAIN,
    HELD,
    NAMED_WITHIN,
    asking,
    diagnosis,
    follow,
    named,
    of_kubernetes,
    remedy,
    template,
    unreachable_webhook,
    warned,
)
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime import timeouts
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NAMESPACES, PODS, SERVICES, Resource
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.cli import targets
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.sets.causes import CauseMonitor
from lwsctl.cli.sets.diagnoses import explain, stuck_notes, survey
from lwsctl.cli.targets import parse
from lwsctl.diagnosis.causes.managers import SILENCE
from lwsctl.diagnosis.diagnose import worst
from lwsctl.diagnosis.document import headline, overview_lines
from lwsctl.diagnosis.observed import RESOURCE_QUOTAS
from lwsctl.model.health import Verdict
from lwsctl.observation.lists import Lists


async def test_explain_reports_a_healthy_set_group_and_rank(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=2, size=2))
    for target in ("web", "web/1", "web/1/1"):
        told = await diagnosis(space, target)
        assert (told.verdict, told.code) == (Verdict.HEALTHY, ""), told
    assert (await diagnosis(space)).sentence == "2 of 2 groups ready, all at the latest revision"


async def test_explain_covers_surge_groups_and_ranks_of_older_sizes(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=3, rollout={"maxSurge": 1, "maxUnavailable": 0}))
    smaller = [
        {"op": "replace", "path": "/spec/leaderWorkerTemplate/size", "value": 2},
        {"op": "replace", "path": "/spec/leaderWorkerTemplate/workerTemplate", "value": pod_template(gated=True)},
    ]
    await space.patch(smaller)
    await space.until(lambda state: assert_is_held(state, "web-1-1"))
    assert (await diagnosis(space, "web/1")).verdict is not Verdict.HEALTHY
    assert (await diagnosis(space, "web/0/2")).target == "web/0/2"
    for target in ("web/2", "web/1/2", "web/0/3"):
        with pytest.raises(CommandError, match=f"{target} does not exist; web has 2 groups"):
            await diagnosis(space, target)


def assert_is_held(state: State, pod: str) -> None:
    assert not meta.is_condition_true(state.pods[pod], "Ready")


async def test_explain_names_an_exhausted_quota(space: LiveScenario) -> None:
    of_kubernetes(space)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "1"}},
    }
    await space.create(quota, RESOURCE_QUOTAS)
    await space.until(lambda state: None)
    await space.eventually(lambda: space.get(RESOURCE_QUOTAS, "small"), lambda one: bool(meta.status(one).get("hard")))
    await space.create(lws(replicas=1, size=3))
    await space.until(warned("exceeded quota"))
    told = await named(space, "LWS-E020")
    assert told.verdict is Verdict.STUCK
    assert "ResourceQuota small does not allow pod web-0-" in told.sentence
    assert "it requests pods=1, pods=1 of pods=1 is used" in told.sentence


async def test_explain_names_a_quota_of_revisions(space: LiveScenario) -> None:
    """The manager's revision is allowed. The StatefulSet controller's revision is rejected without an event."""
    of_kubernetes(space)
    hard = {"count/controllerrevisions.apps": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    await space.create(quota, RESOURCE_QUOTAS)
    await space.eventually(lambda: space.get(RESOURCE_QUOTAS, "few"), lambda one: bool(meta.status(one).get("hard")))
    await space.create(lws(replicas=1, size=2))
    told = await named(space, "LWS-E028", seconds=30)
    assert "ResourceQuota few blocks the ControllerRevision of StatefulSet web (1 of 1 used)" in told.sentence


@remedy("LWS-E022")
async def test_explain_names_a_limit_range(space: LiveScenario, code: str) -> None:
    of_kubernetes(space)
    limits = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "max"}, "spec": limits}
    await space.create(limit_range, Resource("", "v1", "limitranges", "LimitRange"))
    await space.create(lws(replicas=1, size=2, template=asking(cpu="2")))
    await space.until(warned("maximum cpu usage"))
    assert "maximum cpu usage per Container is 1" in (await named(space, code)).sentence
    await space.replace_worker_template(asking(cpu="1")["workerTemplate"])
    await space.settled()


@remedy("LWS-E023")
async def test_explain_names_pod_security(space: LiveScenario, code: str) -> None:
    of_kubernetes(space)
    restricted = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await space.client.patch(NAMESPACES, ObjectKey("", space.namespace), restricted, kind="merge")
    await space.create(lws(replicas=1, size=2))
    await space.until(warned("violates PodSecurity"))
    told = await named(space, code)
    assert "Pod Security level restricted:" in told.sentence
    assert told.steps[0] == "set securityContext in the template of web"
    admitted = pod_template(securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert all(field in told.sentence for field in (*own, "runAsNonRoot", "seccompProfile"))
    admitted["spec"]["containers"][0]["securityContext"] = own
    await space.replace_worker_template(admitted)
    await space.settled()


@remedy("LWS-E025")
async def test_explain_names_a_missing_service_account(space: LiveScenario, code: str) -> None:
    of_kubernetes(space)
    await space.create(lws(replicas=1, size=2, template=template(serviceAccountName="nobody")))
    await space.until(warned('serviceaccount "nobody" not found'))
    told = await named(space, code)
    assert "service account nobody does not exist" in told.sentence
    await follow(space, told, "create serviceaccount")
    await space.settled()


async def test_explain_names_a_missing_priority_class(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=2, template=template(priorityClassName="urgent")))
    await space.until(warned("urgent"))
    told = await named(space, "LWS-E026")
    assert told.sentence == "PriorityClass urgent does not exist, so pod web-0 cannot be created"


async def test_explain_names_an_unreachable_webhook(space: LiveScenario) -> None:
    async with unreachable_webhook(space):
        await space.create(lws(replicas=1, size=2))
        await space.until(warned("unreachable.example.com"))
        told = await named(space, "LWS-E008")
    assert told.sentence == "webhook unreachable.example.com cannot be reached, so pod web-0 cannot be created"


async def test_explain_names_an_invalid_template(space: LiveScenario) -> None:
    found = pod_template()
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 99999}]
    await space.create(lws(replicas=1, size=2, template={"workerTemplate": found}))
    await space.until(warned("99999"))
    assert "must be between 1 and 65535" in (await named(space, "LWS-E012")).sentence


@remedy("LWS-E052")
async def test_explain_names_a_finalizer_of_a_pod(space: LiveScenario, code: str) -> None:
    await space.bring_up(lws(replicas=1, size=2))
    await space.patch({"metadata": {"finalizers": [HELD]}}, "web-0-1", resource=PODS)
    await space.delete("web-0-1", PODS)
    try:

        def is_late(state: State) -> None:
            assert meta.is_deleting(state.pods["web-0-1"])

        await space.until(is_late)
        told = await named(space, code, "web/0/1", seconds=NAMED_WITHIN + 2)  # its grace period is 1 s
    finally:
        await space.patch({"metadata": {"finalizers": None}}, "web-0-1", resource=PODS)
    assert f"pod web-0-1 is terminating, and finalizer {HELD} has blocked its deletion" in told.sentence
    await space.settled()


async def test_explain_names_a_finalizer_of_the_set(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=1))
    await space.patch({"metadata": {"finalizers": [HELD]}})
    await space.delete("web")
    try:
        told = await named(space, "LWS-E001", seconds=3 + NAMED_WITHIN)  # a finalizer can delay the deletion for 3 s
        assert f"blocked by finalizer {HELD}" in told.sentence
    finally:
        await space.patch({"metadata": {"finalizers": None}})


@remedy("LWS-E074")
async def test_explain_names_a_readiness_gate(space: LiveScenario, code: str) -> None:
    await space.create(lws(replicas=1, size=1, gated=True))

    def runs(state: State) -> None:
        assert meta.is_condition_true(state.pods["web-0"], "ContainersReady")

    await space.until(runs)
    told = await named(space, code)
    assert told.sentence.endswith("of pod web-0 is not satisfied, although all its containers are ready")
    await space.release("web-0")
    await space.settled()


@remedy("LWS-E083")
async def test_explain_names_a_service_that_hides_starting_ranks(space: LiveScenario, code: str) -> None:
    await space.create(lws(replicas=1, size=2, gated=True))

    def runs(state: State) -> None:
        assert meta.is_condition_true(state.pods["web-0"], "ContainersReady")
        assert state.services["web"]

    await space.until(runs)
    await space.patch({"spec": {"publishNotReadyAddresses": False}}, resource=SERVICES)
    told = await named(space, code)
    assert "Service web publishes only ready ranks" in told.sentence
    assert told.steps[0].startswith("delete Service web")
    await space.delete("web", SERVICES)

    def is_right(state: State) -> None:
        assert meta.spec(state.services["web"])["publishNotReadyAddresses"]

    await space.until(is_right)
    async with space.releasing():
        await space.release("web-0", "web-0-1")
        await space.settled()


async def test_explain_names_a_partition(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=3, size=1))
    await space.edit(
        rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 2}},
        leaderWorkerTemplate={"workerTemplate": pod_template("app:2")},
    )

    def is_held(state: State) -> None:
        found = state.leaderworkersets["web"]
        assert meta.status(found).get("updatedReplicas") == 1
        assert meta.status(found).get("readyReplicas") == 3

    await space.until(is_held)
    told = await named(space, "LWS-E085")
    assert told.verdict is Verdict.PROGRESSING
    assert told.sentence == "partition 2 blocks the rollout: 1 of 3 groups updated"


async def test_explain_names_a_manager_that_does_not_act(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=1))
    await space.manager.stop()
    try:
        await space.patch({"spec": {"replicas": 2}})
        told = await named(space, "LWS-E005", late=SILENCE)
    finally:
        await space.manager.start()
    assert "no manager is active: the latest spec of web has not been observed for" in told.sentence
    assert await space.get(LEADERWORKERSETS, "web")


async def test_explain_lists_the_worst_part_first(space: LiveScenario) -> None:
    roles = [role("prefill", 1), role("decode", 1)]
    roles[1]["spec"]["leaderWorkerTemplate"] |= template(priorityClassName="urgent")
    await space.create(disaggregatedset_object(roles) | {"metadata": {"name": "split"}}, DISAGGREGATED_SETS)
    await space.until(warned("urgent"))
    async with timeouts.within(NAMED_WITHIN * 2):
        found = await explain(session_of(space), parse("split"))
        while worst(found).code != "LWS-E026":
            await asyncio.sleep(ASKED_AGAIN)
            found = await explain(session_of(space), parse("split"))
    assert worst(found).target.endswith("-decode")
    assert len(found) == 2
    with pytest.raises(UsageError, match="split is a DisaggregatedSet; specify one of its LeaderWorkerSets"):
        await explain(session_of(space), parse("split/0"))


async def test_other_commands_report_the_cause_of_explain(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=2, template=template(priorityClassName="urgent")))
    await space.until(warned("urgent"))
    told = await named(space, "LWS-E026")
    said = await CauseMonitor(session_of(space), "web", print).final_cause()
    assert said == f"\n{headline(told)}\nuse `lws -n {space.namespace} explain web` for details"
    title = "web is stuck (LWS-E026): the priority class does not exist"
    session = session_of(space)
    whole = await targets.read_view(session, await targets.find(session, "web"))
    assert await stuck_notes(session, Lists(space.client), space.namespace, [], [whole]) == [
        f"{title}; use `lws -n {space.namespace} explain web` for details"
    ]
    assert await CauseMonitor(session_of(space), "nobody", print).final_cause() == ""


async def test_explain_without_a_name_lists_the_worst_first(space: LiveScenario) -> None:
    session = session_of(space)
    assert await survey(session, space.namespace) == []
    await space.bring_up(lws(replicas=1, size=1))
    await space.create(lws(name="late", replicas=1, size=2, template=template(priorityClassName="urgent")))
    roles = [role("prefill", 1), role("decode", 1)]
    roles[1]["spec"]["leaderWorkerTemplate"] |= template(schedulingGates=[{"name": HELD}])
    await space.create(disaggregatedset_object(roles) | {"metadata": {"name": "split"}}, DISAGGREGATED_SETS)
    async with timeouts.within(NAMED_WITHIN * 4):
        found = await survey(session, space.namespace)
        while {one.code for one in found} != {"LWS-E026", "LWS-E031", ""} or found[-1].target != "web":
            await asyncio.sleep(ASKED_AGAIN)
            found = await survey(session, space.namespace)
    assert {one.namespace for one in found} == {space.namespace}
    assert [one.owner for one in found if "split" in one.target] == ["split", "split"]
    assert overview_lines(found)[-1] == "1 of 3 sets healthy: web"
    everywhere = [one for one in await survey(session, "") if one.namespace == space.namespace]
    assert [(one.target, one.code) for one in everywhere] == [(one.target, one.code) for one in found]
    alone = [await explain(session, parse(one.target)) for one in found]
    assert [one.code for (one,) in alone] == [one.code for one in found]
    assert await survey(session, space.namespace, "no-such-label") == []
