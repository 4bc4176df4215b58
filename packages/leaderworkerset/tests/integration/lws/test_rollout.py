"""Tests which groups rolling updates change, in which order, and how many at once (contract section 5)."""

from functools import partial

import pytest
from tests.controlplane import build
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import Expectation, LiveScenario
from tests.integration.clusters.state import State, conditions, is_ready, pod_names, revision_of, revisions_of, shows
from tests.integration.clusters.versions import has

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, SERVICE_ACCOUNTS
from leaderworkerset.api import kubernetesfeatures, labels


def new_worker(image: str = "app:2", *, gated: bool = False) -> JSONObject:
    """Return a change that sets another image in the worker template."""
    return {"workerTemplate": pod_template(image, gated=gated)}


def ready_groups(state: State, name: str = "web") -> set[int]:
    """Return the indices of groups whose pods all exist, are ready, and have one revision."""
    leaders = [pod for pod in state.of(name).values() if meta.labels(pod)[labels.WORKER_INDEX] == "0"]
    return {int(meta.labels(leader)[labels.GROUP_INDEX]) for leader in leaders if is_group_ready(state, leader)}


def is_group_ready(state: State, leader: JSONObject) -> bool:
    """Return whether all pods of the leader's group are ready and have its revision."""
    group = state.group(meta.labels(leader)[labels.NAME], int(meta.labels(leader)[labels.GROUP_INDEX])).values()
    same = [pod for pod in group if revision_of(pod) == revision_of(leader) and is_ready(pod)]
    return len(same) == int(meta.annotations(leader)[labels.SIZE])


def at_least(number: int) -> Expectation:
    """Return the invariant that the given number of groups is ready."""

    def holds(state: State) -> None:
        assert len(ready_groups(state)) >= number, f"only {sorted(ready_groups(state))} are ready"

    return holds


def images(state: State, name: str = "web") -> dict[str, str]:
    """Return the image of the first container of each pod that is not being deleted."""
    found = state.of(name).items()
    return {pod: obj["spec"]["containers"][0]["image"] for pod, obj in found if not meta.is_deleting(obj)}


def assert_images(state: State, old: set[int], new: set[int], size: int = 2) -> None:
    """Assert that exactly the pods of these groups exist, with the old and the new image."""
    wanted = {pod: image for image, groups in (("app:1", old), ("app:2", new)) for pod in names_of(groups, size)}
    assert images(state) == wanted
    assert not any(map(meta.is_deleting, state.pods.values()))


def names_of(groups: set[int], size: int) -> set[str]:
    """Return the pod names of the given groups."""
    return {pod for pod in pod_names("web", max(groups, default=-1) + 1, size) if int(pod.split("-")[1]) in groups}


@pytest.mark.parametrize("running", ["virtual", *build.CLUSTERS], indirect=True)
@pytest.mark.parametrize(
    ("rollout", "replicas", "available"),
    [
        ({"maxUnavailable": 1}, 4, 3),
        ({"maxUnavailable": 2}, 4, 2),
        ({"maxUnavailable": "50%"}, 5, 3),
        ({"maxUnavailable": 0, "maxSurge": 1}, 3, 3),
        ({"maxUnavailable": 1, "maxSurge": 1}, 3, 2),
        ({"maxUnavailable": 0, "maxSurge": "50%"}, 4, 4),
        ({"maxUnavailable": 10}, 3, 0),
    ],
    ids=["one", "two", "half", "surge of one", "surge and unavailable", "surge of half", "all at once"],
)
async def test_rollout_keeps_the_minimum_of_available_groups(
    space: LiveScenario, rollout: JSONObject, replicas: int, available: int
) -> None:
    """The limits are satisfied at each pod change.

    See R-ARC-4, R-ROLL-1 to R-ROLL-10, R-REV-14, W-1 to W-3, W-7, W-8.

    The StatefulSet controller of Kubernetes 1.37 replaces as many leaders as the budget allows; in 1.36 it replaces one
    (docs/adr/0004).
    """
    before = await space.bring_up(lws(replicas=replicas, size=2, rollout=rollout))
    space.always(at_least(available))
    await space.edit_template(**new_worker())
    after = await space.settled()
    assert not before.uids("web").items() & after.uids("web").items()
    assert set(images(after).values()) == {"app:2"}


@pytest.mark.parametrize("running", ["virtual", *build.CLUSTERS], indirect=True)
@pytest.mark.parametrize("broken", ["web-0-1", "web-0"], ids=["its worker", "its leader"])
async def test_broken_old_group_does_not_block_a_rollout(space: LiveScenario, broken: str) -> None:
    """In the Go controller, the partition remains at 3 permanently.

    This controller replaces the broken group first (docs/adr/0030).
    """
    await space.create(lws(replicas=3, size=2, gated=True))
    async with space.releasing():
        await space.settled()
    await space.close(broken)
    await space.until(lambda state: _assert_ready(state, {1, 2}))
    space.always(at_least(2))
    await space.replace_worker_template(pod_template("app:2"))
    after = await space.settled()
    assert set(images(after).values()) == {"app:2"}


@pytest.mark.parametrize("running", ["virtual", *build.CLUSTERS], indirect=True)
async def test_rollout_keeps_the_last_ready_group(space: LiveScenario) -> None:
    """The new template never becomes ready. The broken group uses it, and the ready group remains (docs/adr/0030)."""
    await space.create(lws(replicas=2, size=2, gated=True))
    async with space.releasing():
        await space.settled()
    await space.close("web-0-1")
    await space.until(lambda state: _assert_ready(state, {1}))
    space.always(at_least(1))
    await space.edit_template(**new_worker(gated=True))

    def is_replaced(state: State, before: str = "") -> None:
        assert_images(state, {1}, {0})
        assert meta.spec(state.statefulsets["web"])["updateStrategy"]["rollingUpdate"]["partition"] == 2
        assert meta.uid(state.pods["web-0"]) != before

    replaced = await space.until(is_replaced)
    await space.delete("web-0", PODS)
    await space.until(partial(is_replaced, before=meta.uid(replaced.pods["web-0"])))
    async with space.releasing():
        after = await space.settled()
    assert set(images(after).values()) == {"app:2"}


def _assert_ready(state: State, groups: set[int]) -> None:
    assert ready_groups(state) == groups
    reported = meta.status(state.leaderworkersets["web"])["readyReplicas"]
    assert reported == len(groups)


@pytest.mark.parametrize("running", build.CLUSTERS, indirect=True)
async def test_statefulsets_have_max_unavailable_when_supported(
    space: LiveScenario, request: pytest.FixtureRequest
) -> None:
    """With the field, the StatefulSet controller replaces all leaders.

    Without it, this controller helps (docs/adr/0004).
    """
    state = await space.bring_up(lws(replicas=1, size=1))
    rolling = meta.spec(state.statefulsets["web"])["updateStrategy"]["rollingUpdate"]
    assert ("maxUnavailable" in rolling) == has(request, kubernetesfeatures.MAX_UNAVAILABLE)


async def test_rollout_proceeds_from_the_last_group_to_the_first(space: LiveScenario) -> None:
    """A rollout continues from the last group to the first (R-ROLL-7, R-LSTS-7, W-1)."""
    await space.bring_up(lws(replicas=3, size=2))
    await space.edit_template(**new_worker(gated=True))
    for index in (2, 1, 0):
        old, new = set(range(index)), set(range(index, 3))
        state = await space.until(partial(assert_images, old=old, new=new))
        assert ready_groups(state) == set(range(3)) - {index}
        await space.release(f"web-{index}", f"web-{index}-1")
    state = await space.settled()
    assert "Updating replica 2" in state.notes("GroupsUpdating")


async def test_status_reports_the_update(space: LiveScenario) -> None:
    """The status contains the progress of the update (R-STAT-8, R-STAT-10 to R-STAT-14, Q-4)."""
    await space.bring_up(lws(replicas=2, size=2))
    await space.edit_template(**new_worker(gated=True))

    def is_updating(state: State) -> None:
        assert_images(state, {0}, {1})
        obj = state.leaderworkersets["web"]
        assert conditions(obj) == {
            "Available": "False",
            "Progressing": "True",
            "UpdateInProgress": "True",
            "Degraded": "False",
        }
        assert (meta.status(obj)["readyReplicas"], meta.status(obj)["updatedReplicas"]) == (1, 1)

    state = await space.until(is_updating)
    updating = meta.find_condition(state.leaderworkersets["web"], "UpdateInProgress")
    assert updating is not None
    assert (updating["reason"], updating["message"]) == ("GroupsUpdating", "Rolling Upgrade is in progress")
    await space.release("web-1", "web-1-1")
    await space.until(lambda state: assert_images(state, set(), {0, 1}))
    await space.release("web-0", "web-0-1")
    state = await space.settled()
    obj = state.leaderworkersets["web"]
    assert conditions(obj) == dict.fromkeys(("Progressing", "UpdateInProgress", "Degraded"), "False") | {
        "Available": "True"
    }


async def test_both_revisions_exist_while_groups_use_them(space: LiveScenario) -> None:
    """Both revisions exist as long as groups use them (R-REV-2, R-REV-10, R-REV-11, R-REV-14)."""
    (first,) = revisions_of(await space.bring_up(lws(replicas=2, size=2)), "web")
    await space.edit_template(**new_worker(gated=True))
    state = await space.until(lambda state: assert_images(state, {0}, {1}))
    old, new = revisions_of(state, "web")
    assert meta.uid(old) == meta.uid(first)
    assert new["revision"] == 2
    await space.release("web-1", "web-1-1")
    await space.until(lambda state: assert_images(state, set(), {0, 1}))
    await space.release("web-0", "web-0-1")
    (left,) = revisions_of(await space.settled(), "web")
    assert meta.uid(left) == meta.uid(new)
    told = {
        f"Creating revision with key {revision_of(old)} for a newly created LeaderWorkerSet",
        f"Creating revision with key {revision_of(new)} for updated LWS",
    }
    await space.until(shows(lambda state: set(state.notes("CreatingRevision")), told))


async def test_partition_holds_the_first_groups_back(space: LiveScenario) -> None:
    """A canary of the last groups is updated first, and the other groups later (R-ROLL-2, R-STAT-7, R-STAT-9, R-STAT-17, W-16)."""
    await space.create(lws(replicas=4, size=2, rollout={"partition": 2}))
    await space.until(lambda state: assert_images(state, {0, 1, 2, 3}, set()))
    await space.edit_template(**new_worker())

    def is_canary(state: State) -> None:
        assert_images(state, {0, 1}, {2, 3})
        obj = state.leaderworkersets["web"]
        assert ready_groups(state) == {0, 1, 2, 3}
        assert conditions(obj)["Available"] == "True"
        assert (meta.status(obj)["readyReplicas"], meta.status(obj)["updatedReplicas"]) == (4, 2)
        assert len(revisions_of(state, "web")) == 2
        assert state.statefulsets["web"]["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 2

    before = (await space.until(is_canary)).uids("web")
    await space.edit(rolloutStrategy={"rollingUpdateConfiguration": {"partition": 0}})
    after = (await space.settled()).uids("web")
    assert {pod for pod in before if before[pod] == after[pod]} == names_of({2, 3}, 2)


async def test_group_below_the_partition_keeps_its_revision(space: LiveScenario) -> None:
    """During an update, a recreated group has the image and size of its revision (R-WSTS-4, R-POD-9, R-REV-12)."""
    await space.create(lws(replicas=2, size=4, rollout={"partition": 1}))
    await space.until(lambda state: assert_images(state, {0, 1}, set(), size=4))
    await space.edit_template(size=3, **new_worker())
    wanted = dict.fromkeys(names_of({0}, 4), "app:1") | dict.fromkeys(names_of({1}, 3), "app:2")

    def is_mixed(state: State) -> None:
        assert images(state) == wanted
        assert all(is_ready(pod) for pod in state.pods.values())

    before = await space.until(is_mixed)
    await space.delete("web-0-1", PODS)

    def is_mixed_again(state: State) -> None:
        is_mixed(state)
        same = before.uids("web").items() & state.uids("web").items()
        assert {pod for pod, _ in same} == names_of({1}, 3)

    state = await space.until(is_mixed_again)
    assert meta.annotations(state.pods["web-0-3"])[labels.SIZE] == "4"


async def test_surge_groups_are_created_first_and_deleted_last(space: LiveScenario) -> None:
    """Surge groups are created first and deleted last (R-ROLL-3, R-ROLL-5, W-7)."""
    await space.bring_up(lws(replicas=2, size=2, rollout={"maxUnavailable": 0, "maxSurge": 1}))
    await space.edit_template(**new_worker(gated=True))
    state = await space.until(lambda state: assert_images(state, {0, 1}, {2}))
    assert ready_groups(state) == {0, 1}
    await space.release("web-2", "web-2-1")
    await space.until(lambda state: assert_images(state, {0}, {1, 2}))
    await space.release("web-1", "web-1-1")
    await space.until(lambda state: assert_images(state, set(), {0, 1, 2}))
    await space.release("web-0", "web-0-1")
    state = await space.settled()
    assert "deleting surge replica web-2" in state.notes("GroupsProgressing")


async def test_scaling_works_during_an_update(space: LiveScenario) -> None:
    """New groups have the new revision.

    If there are fewer groups, the update completes earlier (R-ROLL-5, W-5, W-6).
    """
    await space.bring_up(lws(replicas=3, size=2))
    await space.edit_template(**new_worker(gated=True))
    await space.until(lambda state: assert_images(state, {0, 1}, {2}))
    await space.edit(replicas=4)
    await space.until(lambda state: assert_images(state, {0, 1}, {2, 3}))
    await space.edit(replicas=2)
    await space.until(lambda state: assert_images(state, {0}, {1}))
    async with space.releasing():
        state = await space.settled()
    assert set(images(state).values()) == {"app:2"}


async def test_reverting_works_during_an_update(space: LiveScenario) -> None:
    """The old revision is reused, and groups that were not updated do not change (R-ROLL-10, R-REV-11, Q-5, W-19)."""
    before = await space.bring_up(lws(replicas=3, size=2))
    await space.edit_template(**new_worker("app:broken", gated=True))

    def is_stuck(state: State) -> None:
        assert images(state)["web-2"] == "app:broken"
        assert state.of("web").keys() == pod_names("web", 3, 2)

    await space.until(is_stuck)
    await space.replace_worker_template(pod_template())
    after = await space.settled()
    same = before.uids("web").items() & after.uids("web").items()
    assert {pod for pod, _ in same} == names_of({0, 1}, 2)
    assert revision_of(after.pods["web-2"]) == revision_of(before.pods["web-2"])


@pytest.mark.parametrize(("old", "new"), [(2, 4), (4, 2), (3, 1), (1, 3)])
async def test_new_size_replaces_all_groups(space: LiveScenario, old: int, new: int) -> None:
    """A change to the size causes a rollout, also to and from groups of one pod (R-REV-16, R-WSTS-4, Q-12)."""
    before = await space.bring_up(lws(replicas=2, size=old))
    await space.edit_template(size=new)
    after = await space.settled()
    assert not before.uids("web").items() & after.uids("web").items()
    assert {meta.annotations(pod)[labels.SIZE] for pod in after.pods.values()} == {str(new)}


async def test_differs_from_upstream_service_account_is_removed(space: LiveScenario) -> None:
    """If you remove serviceAccountName from a template, pods use the default service account.

    With the Go controller, the alias `serviceAccount` restores the removed value (ADR 30).
    """
    await space.create(SERVICE_ACCOUNTS.type_meta | {"metadata": {"name": "team"}}, SERVICE_ACCOUNTS)
    named = {"workerTemplate": pod_template(serviceAccountName="team")}
    assert accounts(await space.bring_up(lws(replicas=1, size=2, template=named))) == {"team"}
    await space.replace_worker_template(pod_template())
    state = await space.settled()
    assert accounts(state) == {"default"}
    assert not meta.spec(state.statefulsets["web"])["template"]["spec"].get("serviceAccountName")


def accounts(state: State) -> set[str]:
    return {meta.spec(pod)["serviceAccountName"] for pod in state.of("web").values()}


async def test_leader_template_can_be_added(space: LiveScenario) -> None:
    """A leader template can be added (R-REV-5, R-REV-16, R-VAL-27)."""
    await space.bring_up(lws(replicas=2, size=2))
    await space.edit_template(leaderTemplate=pod_template("leader:1"))
    state = await space.settled()
    wanted = {"web-0": "leader:1", "web-0-1": "app:1", "web-1": "leader:1", "web-1-1": "app:1"}
    assert images(state) == wanted


@pytest.mark.parametrize(
    "change",
    [
        {"startupPolicy": "LeaderReady"},
        {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2, "maxSurge": 1}}},
        {"replicas": 3},
    ],
    ids=["startupPolicy", "rolloutStrategy", "replicas"],
)
async def test_fields_outside_of_the_template_replace_no_pod(space: LiveScenario, change: JSONObject) -> None:
    """A change to fields outside the template does not replace pods (R-REV-16, R-REV-5)."""
    before = await space.bring_up(lws(replicas=2, size=2))
    await space.edit(**change)
    after = await space.settled()
    assert before.uids("web").items() <= after.uids("web").items()
    assert {meta.uid(one) for one in revisions_of(before, "web")} == {
        meta.uid(one) for one in revisions_of(after, "web")
    }


async def test_metadata_changes_replace_no_pod(space: LiveScenario) -> None:
    """Labels and annotations are set on the StatefulSet, not on its pods (R-REV-5, R-LSTS-2)."""
    before = await space.bring_up(lws(replicas=2, size=2))
    await space.patch({"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}})

    def is_copied(state: State) -> None:
        assert meta.labels(state.statefulsets["web"]).get("team") == "a"
        assert meta.annotations(state.statefulsets["web"]).get("note") == "b"

    await space.until(is_copied)
    assert (await space.settled()).uids("web") == before.uids("web")


async def test_restart_policy_change_replaces_groups(space: LiveScenario) -> None:
    """A change to the restart policy replaces groups (R-REV-16)."""
    before = await space.bring_up(lws(replicas=2, size=2))
    await space.edit_template(restartPolicy="None")
    after = await space.settled()
    assert not before.uids("web").items() & after.uids("web").items()


async def test_update_replaces_groups_that_were_never_ready(space: LiveScenario) -> None:
    """The rollout does not wait for groups that have never been ready (R-ROLL-7, W-15, W-24)."""
    await space.create(lws(replicas=2, size=2, gated=True))
    await space.until(lambda state: assert_images(state, {0, 1}, set()))
    await space.replace_worker_template(pod_template("app:2"))
    state = await space.settled()
    assert set(images(state).values()) == {"app:2"}


async def test_subdomain_policy_can_be_changed_and_reverted(space: LiveScenario) -> None:
    """The subdomain policy can be changed and reverted.

    Rules R-SVC-2, R-SVC-3, R-SVC-6, R-ADM-5, R-LSTS-2, R-WSTS-3, R-ENV-2.
    """
    await space.bring_up(lws(replicas=2, size=2))
    await space.edit(networkConfig={"subdomainPolicy": "UniquePerReplica"})
    state = await space.settled()
    assert state.services.keys() == {"web", "web-0", "web-1"}
    for index in range(2):
        service = state.services[f"web-{index}"]
        leader = state.pods[f"web-{index}"]
        assert service["metadata"]["ownerReferences"] == [meta.controller_reference(leader)]
        assert service["spec"]["selector"] == {labels.NAME: "web", labels.GROUP_INDEX: str(index)}
        assert leader["spec"]["subdomain"] == f"web-{index}"
        worker = state.pods[f"web-{index}-1"]
        assert worker["spec"]["subdomain"] == f"web-{index}"
        address = f"web-{index}.web-{index}.{space.namespace}"
        assert worker["spec"]["containers"][0]["env"][0] == {"name": "LWS_LEADER_ADDRESS", "value": address}
    assert state.statefulsets["web"]["spec"]["serviceName"] == "web"
    await space.edit(networkConfig={"subdomainPolicy": "Shared"})
    await space.settled()
    await space.until(shows(lambda state: state.services.keys(), {"web"}))


async def test_unique_services_belong_to_leader_pods(space: LiveScenario) -> None:
    """There is exactly one Service per leader pod. It is deleted with its leader (R-SVC-7)."""
    state = await space.bring_up(lws(replicas=3, size=1, networkConfig={"subdomainPolicy": "UniquePerReplica"}))
    assert state.services.keys() == {"web-0", "web-1", "web-2"}
    await space.edit(replicas=1)
    await space.settled()
    await space.until(shows(lambda state: state.services.keys(), {"web-0"}))
