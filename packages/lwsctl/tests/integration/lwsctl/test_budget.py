"""Tests the restart budget: `maxGroupRestarts`, evidence, `Degraded` and `recover`.

See contract-newest, section 8.
"""

import json
from typing import Any, Final

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, revision_of, shows
from tests.integration.lws import test_hash as keyed
from tests.integration.lws.recreation import replaced
from tests.integration.lwsctl.explanations import follow, named, remedy
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NAMESPACES, PODS, STATEFULSETS
from kuberuntime.plan import Propagation
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.commands.rollout.recover import recover
from lwsctl.cli.commands.rollout.rolloutstatus import RolloutFollower
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts.grouprestart import Restart, RestartRequest
from lwsctl.views.selection import Selection

AT_ONCE: Final = {labels.RESTART_BACKOFF: "off"}
EXCEEDED: Final = "ReplicaRestartBudgetExceeded"
RECOVER: Final = {"metadata": {"annotations": {labels.RECOVER: "true"}}}


def limited(limit: int, **fields: Any) -> JSONObject:
    known: dict[str, Any] = {"size": 2, "annotations": AT_ONCE} | fields
    return lws(template={"maxGroupRestarts": limit}, **known)


def counts(state: State) -> dict[str, int]:
    """Return the counts of the current revision by group."""
    text = meta.annotations(state.leaderworkersets["web"]).get(labels.GROUP_RESTART_COUNTS, "{}")
    return {key.rpartition("/")[2]: count for key, count in json.loads(text).items()}


def is_kept(pod: JSONObject) -> bool:
    return labels.GROUP_RESTART_BUDGET_CLEANUP in (meta.metadata(pod).get("finalizers") or [])


def degraded(state: State) -> str:
    found = meta.find_condition(state.leaderworkersets["web"], "Degraded")
    assert found is not None
    return str(found["status"])


def assert_exhausted(state: State, *pods: str) -> None:
    """Assert that exactly these pods are terminating evidence, according to the LeaderWorkerSet."""
    kept = {name for name, pod in state.of("web").items() if is_kept(pod)}
    assert kept == set(pods)
    assert all(meta.is_deleting(state.pods[pod]) for pod in pods)
    leader = state.pods[pods[0]]
    assert meta.annotations(leader)[labels.GROUP_RESTART_BUDGET_EXHAUSTED] == "true"
    assert degraded(state) == "True"


def assert_still(state: State) -> None:
    """Assert that only the stopped groups are not ready."""
    found = {
        one["type"]: (one["status"], one["reason"]) for one in state.leaderworkersets["web"]["status"]["conditions"]
    }
    assert found["Available"] == found["Progressing"] == ("False", EXCEEDED)


async def exhaust(space: LiveScenario, group: int) -> State:
    """Let a group without remaining restarts fail, and wait until its pods are preserved as evidence."""
    await space.fail(f"web-{group}-1")
    return await space.until(lambda state: assert_exhausted(state, f"web-{group}", f"web-{group}-1"))


async def test_group_becomes_evidence_when_its_restarts_are_used_up(space: LiveScenario) -> None:
    """Simultaneous failures count once (N-RB-1, N-RB-3, N-RB-4, N-RB-5, N-RB-16, N-AT-19, N-AT-20, N-ST-12)."""
    before = await space.bring_up(limited(1))
    assert labels.GROUP_RESTART_COUNTS not in meta.annotations(before.leaderworkersets["web"])
    for pod in ("web-0-1", "web-0", "web-0-1"):
        await space.fail(pod)
    state = await replaced(space, before, "web-0", "web-0-1")
    assert counts(state) == {"0": 1}
    evidence = await exhaust(space, 0)
    await space.until(assert_still)

    await space.manager.stop()
    await space.manager.start()
    await space.fail("web-1-1")
    after = await space.until(lambda now: assert_only_new(state, now, "web-1", "web-1-1"))
    assert_exhausted(after, "web-0", "web-0-1")
    assert counts(after) == {"0": 1, "1": 1}
    (note,) = after.notes(EXCEEDED)
    assert note == "Restart budget exhausted; terminated group 0 and stopped automatic recovery"

    await space.patch({"metadata": {"annotations": {labels.RECOVER: "yes"}}}, "web-0", resource=PODS)
    assert_exhausted(await space.until(lambda now: assert_only_new(state, now, "web-1", "web-1-1")), "web-0", "web-0-1")
    await space.patch(RECOVER, "web-0", resource=PODS)
    whole = await space.settled()
    assert counts(whole) == {"1": 1}
    assert degraded(whole) == "False"
    assert (
        not evidence.uids("web").items()
        & {pod: uid for pod, uid in whole.uids("web").items() if "web-0" in pod}.items()
    )


def assert_only_new(before: State, state: State, *names: str) -> None:
    """Assert that exactly these pods were replaced and are ready."""
    old = before.uids("web")
    assert {pod for pod, uid in state.uids("web").items() if old.get(pod) != uid} == set(names)
    assert all(is_ready(state.pods[pod]) for pod in names)


async def test_new_template_replaces_an_exhausted_group(space: LiveScenario) -> None:
    """The rollout deletes the pods of the exhausted group in order (N-AT-21, N-RB-6, N-RB-7, N-RB-8, N-RB-12)."""
    await space.bring_up(limited(0, replicas=3))
    await exhaust(space, 1)
    await space.replace_worker_template(pod_template("app:2"))
    state = await space.settled()
    assert degraded(state) == "False"
    assert counts(state) == {}
    assert len(state.notes(EXCEEDED)) == 1


async def test_partition_keeps_the_evidence_below_it(space: LiveScenario) -> None:
    """The evidence remains until the partition decreases (N-RB-6, section 10)."""
    before = await space.bring_up(limited(0, replicas=3))
    await exhaust(space, 0)
    await space.edit(rolloutStrategy={"rollingUpdateConfiguration": {"partition": 2}})
    await space.replace_worker_template(pod_template("app:2"))
    old = revision_of(before.pods["web-2"])

    def is_rolled(state: State) -> None:
        assert revision_of(state.pods["web-2"]) != old
        assert is_ready(state.pods["web-2-1"])
        assert_exhausted(state, "web-0", "web-0-1")

    await space.until(is_rolled)
    await space.edit(rolloutStrategy={"rollingUpdateConfiguration": {"partition": 0}})
    await space.settled()


async def test_scaling_down_deletes_evidence(space: LiveScenario) -> None:
    """Scaling down deletes evidence (N-RB-6, N-RB-11)."""
    before = await space.bring_up(limited(1, replicas=3))
    await space.fail("web-2-1")
    await replaced(space, before, "web-2", "web-2-1")
    await exhaust(space, 2)
    await space.scale(2)
    state = await space.settled()
    assert counts(state) == {}
    await space.scale(3)
    await space.settled()


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_deleting_the_leaderworkerset_deletes_evidence(space: LiveScenario, propagation: Propagation) -> None:
    """A new LeaderWorkerSet with the same name starts without evidence (N-RB-5)."""
    await space.bring_up(limited(0))
    await exhaust(space, 0)
    await space.delete("web", propagation=propagation)
    if propagation == "Foreground":
        await space.until(
            shows(lambda state: (state.leaderworkersets, state.of("web"), state.statefulsets), ({}, {}, {}))
        )
    await space.bring_up(limited(0))


async def test_deleting_the_namespace_deletes_evidence(space: LiveScenario) -> None:
    """Evidence does not block the deletion of a namespace, because the LeaderWorkerSet is deleted as well."""
    await space.bring_up(limited(0))
    await exhaust(space, 0)
    await space.client.delete(NAMESPACES, space.key(space.namespace)._replace(namespace=""))
    await space.until(shows(lambda state: (state.leaderworkersets, state.pods), ({}, {})))


async def test_deleting_the_leader_statefulset_deletes_evidence(space: LiveScenario) -> None:
    before = await space.bring_up(limited(0))
    await exhaust(space, 0)
    await space.delete("web", STATEFULSETS, propagation="Foreground")

    def is_new(state: State) -> None:
        assert not before.uids("web").items() & state.uids("web").items()
        assert all(map(is_ready, state.pods.values()))
        assert len(state.pods) == 4

    await space.until(is_new)


async def test_removing_the_finalizer_of_a_leader_deletes_its_group(space: LiveScenario) -> None:
    """Workers are deleted with their leader."""
    await space.bring_up(limited(0))
    await exhaust(space, 0)
    kept = meta.metadata(await space.get(PODS, "web-0"))["finalizers"]
    others = [one for one in kept if one != labels.GROUP_RESTART_BUDGET_CLEANUP]
    await space.patch({"metadata": {"finalizers": others}}, "web-0", resource=PODS)
    await space.settled()


async def test_restart_limit_annotation_equals_the_field(space: LiveScenario) -> None:
    """Both annotations of earlier versions are still supported: the limit, and the value that resumes all groups."""
    before = await space.bring_up(lws(size=2, annotations=AT_ONCE | {labels.MAX_GROUP_RESTARTS: "1"}))
    await space.fail("web-0-1")
    await replaced(space, before, "web-0", "web-0-1")
    await exhaust(space, 0)
    await space.patch({"metadata": {"annotations": {labels.MAX_GROUP_RESTARTS: "5"}}})
    await space.patch({"metadata": {"annotations": {labels.RESUME_GROUP_RESTARTS: "1"}}})
    state = await space.settled()
    assert counts(state) == {}


async def test_groups_are_not_restarted_when_counts_are_unreadable(space: LiveScenario) -> None:
    """A group without remaining restarts is not restarted (N-RB-10)."""
    before = await space.bring_up(limited(3))
    await space.patch({"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: "null"}}})
    await space.fail("web-0-1")
    await space.fail("web-1-1")
    assert space.state.uids("web") == before.uids("web")
    await space.patch({"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: None}}})
    state = await replaced(space, before, "web-0", "web-0-1", "web-1", "web-1-1")
    assert counts(state) == {"0": 1, "1": 1}


async def test_group_that_the_go_manager_exhausted_is_adopted(space: LiveScenario) -> None:
    """The group has the marks, finalizers and counts of the Go manager, but no record of this manager.

    Rules: N-RB-4, N-RB-5.
    """
    before = await space.bring_up(limited(0))
    key = f"{revision_of(before.pods['web-0'])}/0"
    await space.patch({"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: f'{{"{key}":0}}'}}})
    kept = {"finalizers": [labels.GROUP_RESTART_BUDGET_CLEANUP]}
    marked = kept | {"annotations": {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}}
    await space.patch({"metadata": marked}, "web-0", resource=PODS)
    await space.until(lambda state: assert_exhausted(state, "web-0", "web-0-1"))
    await space.until(assert_still)
    await space.patch(RECOVER, "web-0", resource=PODS)
    assert counts(await space.settled()) == {}


async def test_restart_limit_requires_a_policy_that_recreates(space: LiveScenario) -> None:
    """A restart limit requires a policy that recreates groups (N-VAL-6)."""
    with pytest.raises(APIError, match="maxGroupRestarts is only supported when restartPolicy recreates the group"):
        await space.create(lws(template={"maxGroupRestarts": 1, "restartPolicy": "None"}))


@remedy("LWS-E079")
async def test_commands_explain_and_recover_an_exhausted_group(space: LiveScenario, code: str) -> None:
    """`lws explain`, `lws rollout status` and `lws recover` show the group, which is not restarted again."""
    await space.bring_up(limited(0))
    await exhaust(space, 0)
    await space.until(assert_still)
    session = session_of(space)
    with pytest.raises(CommandError, match="group web/0 is exhausted"):
        await Restart(session, RestartRequest("web", (0,), 1)).preview()
    with pytest.raises(CommandError, match="web/1 is not exhausted; no changes were made"):
        await recover(session, Selection("web", 1))
    assert await Restart(session, RestartRequest("web", (1,))).run(60) == "web group 1 restarted"
    status = await RolloutFollower(session, space.key("web"), 60).current_progress()
    assert "no restarts remain for group 0; to recover, run `lws recover web`" in status

    assert await recover(session, Selection("web", None), is_trial=True) == "web group 0 recovered (dry run)"
    assert_exhausted(space.state, "web-0", "web-0-1")
    await follow(space, await named(space, code), "or recover the group")
    await space.settled()
    with pytest.raises(CommandError, match="web has no exhausted groups"):
        await recover(session, Selection("web", None))


async def exhaust_keyed(space: LiveScenario, before: State, leader: str) -> State:
    """Let the group of a leader with a random key fail until it is exhausted."""
    worker = keyed.worker_of(before, leader)
    await space.fail(worker)
    return await space.until(lambda state: assert_exhausted(state, leader, worker))


async def test_exhausted_group_with_a_random_key_keeps_its_place(space: LiveScenario) -> None:
    """With both policies, the replacement leader waits (N-RB-13, N-RB-15, N-ST-4, N-ST-5)."""
    await space.create(limited(0, replicas=2, **keyed.HASH))
    before = await keyed.settled(space, 2, 2)
    leader = keyed.leaders(before)[0]
    await exhaust_keyed(space, before, leader)

    def waits(state: State) -> None:
        assert_still(state)
        new = next(iter(set(keyed.leaders(state)) - set(keyed.leaders(before))), "")
        assert meta.spec(state.pods[new])["schedulingGates"]

    await space.until(waits)
    await space.edit(groupReplacementPolicy="Immediate")
    await space.fail(keyed.worker_of(before, keyed.leaders(before)[1]))
    both = {name for name, pod in before.of("web").items()}
    await space.until(lambda state: assert_all_kept(state, both))
    for one in keyed.leaders(before):
        await space.patch(RECOVER, one, resource=PODS)
    after = await keyed.settled(space, 2, 2)
    assert degraded(after) == "False"
    assert not before.uids("web").items() & after.uids("web").items()


def assert_all_kept(state: State, pods: set[str]) -> None:
    """Assert that exactly these pods remain."""
    assert {name for name, pod in state.of("web").items() if is_kept(pod)} == pods


async def test_restart_counts_pass_to_the_replacement_group(space: LiveScenario) -> None:
    """The next leader continues with the count of the previous leader (N-RB-13, N-RB-14)."""
    await space.create(limited(2, replicas=2, **keyed.HASH))
    state = await keyed.settled(space, 2, 2)
    failing = keyed.leaders(state)[0]
    for used in (1, 2):
        await space.fail(keyed.worker_of(state, failing))
        known = set(keyed.leaders(state))
        state = await keyed.replaced(space, state, 1)
        (failing,) = set(keyed.leaders(state)) - known
        assert counts(state) == {meta.labels(state.pods[failing])[labels.GROUP_INDEX]: used}
    await exhaust_keyed(space, state, failing)


async def test_exhausted_group_is_deleted_when_scaled_down(space: LiveScenario) -> None:
    """The group is also deleted while other groups are being replaced (N-AT-14, N-RB-6)."""
    await space.create(limited(0, replicas=3, **keyed.HASH))
    before = await keyed.settled(space, 3, 2)
    await exhaust_keyed(space, before, keyed.leaders(before)[0])
    await space.delete(keyed.leaders(before)[1], PODS)
    await keyed.edit(space, replicas=2)
    state = await keyed.settled(space, 2, 2, limit=60)
    assert counts(state) == {}


async def test_template_or_deletion_removes_evidence_of_random_keys(space: LiveScenario) -> None:
    """A new template or a deletion removes the evidence of groups with random keys (N-RB-6, N-AT-21)."""
    await space.create(limited(0, replicas=2, **keyed.HASH))
    before = await keyed.settled(space, 2, 2)
    await exhaust_keyed(space, before, keyed.leaders(before)[0])
    await keyed.edit(space, leaderWorkerTemplate={"workerTemplate": pod_template("app:2")})
    state = await keyed.settled(space, 2, 2, limit=60)
    await exhaust_keyed(space, state, keyed.leaders(state)[0])
    await space.delete("web", LEADERWORKERSETS)

    def is_gone(now: State) -> None:
        assert (now.leaderworkersets, now.of("web")) == ({}, {})

    await space.until(is_gone)
