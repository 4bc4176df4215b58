"""Tests the owners, the fields and the deletion of the schedulers' group objects on both clusters."""

from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest
from tests.gangdefinitions import kind_of
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.pools import add_to_pool, bound, half_a_node, is_bound
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, pod_names
from tests.integration.lws.test_hash import HASH, edit, leaders, settled
from tests.integration.lwsctl.explanations import named

from kuberuntime.errors import ForbiddenError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, PRIORITY_CLASSES, Resource
from leaderworkerset.api import labels
from leaderworkerset.core.gang.coscheduling import POD_GROUP
from leaderworkerset.core.gang.gangs import PROVIDERS
from leaderworkerset.core.gang.provider import Provider
from leaderworkerset.core.gang.volcano import GROUP_NAME

OF_OTHERS: Final = pytest.mark.parametrize("running", ["embedded", "kubernetes"], indirect=True)
"""Tests schedulers whose kinds are custom resources, which are the same in each Kubernetes version."""


def link_of(pod: JSONObject) -> str:
    """Return the name of the group object to which a pod refers."""
    native = (meta.spec(pod).get("schedulingGroup") or {}).get("podGroupName", "")
    return str(native or meta.annotations(pod).get(GROUP_NAME) or meta.labels(pod).get(POD_GROUP, ""))


def minimum_of(obj: JSONObject) -> int:
    """Return the number of pods that a group object requires."""
    spec = meta.spec(obj)
    return int(spec["minMember"] if "minMember" in spec else spec["schedulingPolicy"]["gang"]["minCount"])


async def served(space: LiveScenario, provider: str) -> Provider | None:
    """Return the scheduler with the API version that the cluster serves, or None if it serves none."""
    for one in PROVIDERS[provider].versions:
        with suppress(NotFoundError):
            await space.client.list(kind_of(one), namespace=space.namespace)
            return one
    return None


async def objects(space: LiveScenario, provider: str) -> dict[str, JSONObject]:
    """Return the group objects by name."""
    one = await served(space, provider)
    assert one is not None
    found = await space.client.list(kind_of(one), namespace=space.namespace)
    return {meta.name(obj): obj for obj in found.items}


async def until_gone(space: LiveScenario, provider: str) -> None:
    """Wait until the namespace is empty.

    Pods are deleted first, then the objects that the garbage collector deletes.
    """

    def is_empty(state: State) -> None:
        assert not state.pods
        assert not state.statefulsets

    await space.until(is_empty)
    one = await served(space, provider)
    assert one is not None
    for kind in (kind_of(one), one.shared):
        if kind is not None:
            await space.eventually(
                partial(space.client.list, kind, namespace=space.namespace), lambda found: not found.items
            )


async def assert_groups(space: LiveScenario, provider: str, *, minimum: int, names: set[str]) -> dict[str, str]:
    """Assert that each pod refers to its group object, and that the leader controls it. Return the UIDs."""
    pods = space.state.of("web")
    assert pods.keys() == names
    expected = {link_of(pod): meta.uid(pod) for pod in pods.values() if labels.LEADER_NAME not in meta.annotations(pod)}
    found = await space.eventually(lambda: objects(space, provider), lambda found: found.keys() == expected.keys())
    assert {name: (meta.controller_of(obj) or {})["uid"] for name, obj in found.items()} == expected
    assert {minimum_of(obj) for obj in found.values()} == {minimum}
    for name, pod in pods.items():
        leader = pods[meta.annotations(pod).get(labels.LEADER_NAME, name)]
        assert link_of(pod) == link_of(leader)
    return {name: meta.uid(obj) for name, obj in found.items()}


@OF_OTHERS
@pytest.mark.parametrize(
    ("provider", "startup", "minimum"),
    [("volcano", "LeaderCreated", 3), ("volcano", "LeaderReady", 1), ("coscheduling", "LeaderCreated", 3)],
)
async def test_groups_keep_their_objects_through_changes(
    space: LiveScenario, provider: str, startup: str, minimum: int
) -> None:
    """Each group always has one object (R-GANG-2 to R-GANG-7, R-KQ-111 to R-KQ-113, R-KQ-120, R-KQ-121)."""
    await live(space, provider, minimum, lws(annotations={labels.GANG_SCHEDULER: provider}, startupPolicy=startup))


async def live(space: LiveScenario, provider: str, minimum: int, obj: JSONObject) -> None:
    """Apply all types of changes to two groups of three pods."""
    await space.bring_up(obj)
    first = await assert_groups(space, provider, minimum=minimum, names=pod_names("web", 2, 3))

    before = space.state.uids("web")
    await space.delete("web-1-2", PODS)
    await space.until(lambda state: differs(before, state.uids("web"), "web-1"))
    await space.settled()
    second = await assert_groups(space, provider, minimum=minimum, names=pod_names("web", 2, 3))
    assert len(set(second.values()) & set(first.values())) == 1

    await space.replace_worker_template(pod_template("app:2"))
    await space.settled()
    third = await assert_groups(space, provider, minimum=minimum, names=pod_names("web", 2, 3))
    assert not set(third.values()) & set(second.values())

    for replicas in (3, 1):
        await space.edit(replicas=replicas)
        await space.settled()
        await assert_groups(space, provider, minimum=minimum, names=pod_names("web", replicas, 3))
    await space.delete("web")
    await until_gone(space, provider)


@OF_OTHERS
@pytest.mark.parametrize("provider", ["volcano", "coscheduling"])
async def test_groups_with_random_keys_have_one_object_each(space: LiveScenario, provider: str) -> None:
    """Groups are replaced, updated and scaled.

    A group object is deleted with the leader that controls it (N-AT-6).
    """
    await live_by_keys(space, provider, lws(annotations={labels.GANG_SCHEDULER: provider}, **HASH))


async def test_native_groups_with_random_keys_have_one_object_each(space: LiveScenario) -> None:
    """Native groups behave in the same way as groups of other schedulers (N-AT-6)."""
    await _native(space)
    await live_by_keys(space, "native", lws(**HASH))


async def live_by_keys(space: LiveScenario, provider: str, obj: JSONObject) -> None:
    """Apply all types of changes to two groups of three pods with random keys."""
    await space.create(obj)
    before = await settled(space, 2, 3)
    await assert_an_object_each(space, provider, 2)
    await space.delete(leaders(before)[0], PODS)
    await space.until(lambda state: _kept(before, state, 3))
    await settled(space, 2, 3)
    await assert_an_object_each(space, provider, 2)
    await edit(space, leaderWorkerTemplate={"workerTemplate": pod_template("app:2")})
    await settled(space, 2, 3)
    await assert_an_object_each(space, provider, 2)
    for replicas in (3, 1):
        await edit(space, replicas=replicas)
        await settled(space, replicas, 3)
        await assert_an_object_each(space, provider, replicas)
    await space.delete("web")
    await until_gone(space, provider)


def _kept(before: State, after: State, pods: int) -> None:
    assert len(before.uids("web").items() & after.uids("web").items()) == pods


async def assert_an_object_each(space: LiveScenario, provider: str, replicas: int) -> None:
    """Assert that each group has exactly one object, which its leader controls and to which all its pods refer."""
    pods = space.state.of("web")
    expected = {link_of(pods[name]): meta.uid(pods[name]) for name in leaders(space.state)}
    assert len(expected) == replicas
    assert {link_of(pod) for pod in pods.values()} == expected.keys()
    found = await space.eventually(lambda: objects(space, provider), lambda found: found.keys() == expected.keys())
    assert {name: (meta.controller_of(obj) or {})["uid"] for name, obj in found.items()} == expected


def differs(before: dict[str, str], after: dict[str, str], name: str) -> None:
    """Wait for a different pod with this name."""
    assert after.get(name, before[name]) != before[name]


GPU: Final = "nvidia.com/gpu"


def on_gpus(**fields: Any) -> JSONObject:
    """Return a pod template that requests eight accelerators."""
    template = pod_template(**fields)
    template["spec"]["containers"][0]["resources"] = {"limits": {GPU: "8"}, "requests": {GPU: "8"}}
    return template


@OF_OTHERS
async def test_groups_without_enough_accelerators_wait_completely(space: LiveScenario) -> None:
    """Each group of five has a PodGroup, and its scheduler binds all its pods at once (R-OP-62, AT-000-6b)."""
    await space.create(lws(size=5, template={"workerTemplate": on_gpus(schedulerName="volcano")}))

    def all_wait(state: State) -> None:
        assert state.of("web").keys() == pod_names("web", 2, 5)
        assert {meta.status(pod).get("phase") for pod in state.of("web").values()} == {"Pending"}
        assert bound(state, 2) == [0, 0]

    state = await space.until(all_wait)
    found = await space.eventually(lambda: objects(space, "volcano"), lambda found: len(found) == 2)
    assert {minimum_of(obj) for obj in found.values()} == {5}
    assert {meta.spec(obj)["minResources"][GPU] for obj in found.values()} == {"40"}
    assert {link_of(pod) for pod in state.of("web").values()} == found.keys()

    first = link_of(state.pods["web-0"])
    for pod in state.of("web").values():
        if link_of(pod) == first:
            await bind(space, meta.name(pod), "node-0")

    def one_runs(state: State) -> None:
        assert [is_ready(pod) for pod in state.group("web", 0).values()] == [True] * 5
        assert bound(state, 2) == [5, 0]

    await space.until(one_runs)


async def bind(space: LiveScenario, pod: str, node: str) -> None:
    """Assign a pod to a node, in the same way as a scheduler."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": space.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await space.client.create(Resource("", "v1", f"pods/{pod}/binding", "Binding"), binding)


async def test_pods_are_bound_separately_without_a_gang_scheduler(space: LiveScenario) -> None:
    """All pods of a group start together or not at all, but only with a gang scheduler (R-OP-62, AT-000-6c)."""
    await add_to_pool(space, range(2))
    annotations = {labels.GANG_SCHEDULER: "none"}
    await space.create(
        lws(replicas=1, size=5, annotations=annotations, template={"workerTemplate": half_a_node(space)})
    )

    def is_in_part(state: State) -> None:
        assert state.of("web").keys() == pod_names("web", 1, 5)
        assert bound(state, 1) == [4]
        (waiting,) = (pod for pod in state.of("web").values() if not is_bound(pod))
        assert (meta.find_condition(waiting, "PodScheduled") or {})["reason"] == "Unschedulable"

    await space.until(is_in_part)


async def test_unstartable_set_is_rejected(space: LiveScenario) -> None:
    """The error message contains a suggestion (R-KQ-149)."""
    waiting = lws(annotations={labels.GANG_SCHEDULER: "native"}, startupPolicy="LeaderReady")

    with pytest.raises(ForbiddenError, match=r"spec\.startupPolicy.*gang-scheduler: none"):
        await space.create(waiting)

    state = await space.bring_up(lws(annotations={labels.GANG_SCHEDULER: "none"}, startupPolicy="LeaderReady"))
    assert {link_of(pod) for pod in state.pods.values()} == {""}


async def _native(space: LiveScenario) -> Provider:
    """Return the Kubernetes scheduler with the served API version. Skip the test if the cluster does not serve it."""
    return await served(space, "native") or pytest.skip("the embedded cluster's scheduler knows no groups")


async def test_native_groups_keep_their_objects_through_changes(space: LiveScenario) -> None:
    """`auto` selects the native scheduler if the API server serves it (R-KQ-140 to R-KQ-148)."""
    await _native(space)
    await live(space, "native", 3, lws())


async def test_native_groups_have_the_priority_of_their_pods(space: LiveScenario) -> None:
    """The Kubernetes 1.37 scheduler does not bind pods whose priority differs from the priority of their group."""
    await _native(space)
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": space.namespace}}
    await space.client.create(PRIORITY_CLASSES, priority | {"value": 1000})
    state = await space.bring_up(lws(template={"workerTemplate": pod_template(priorityClassName=space.namespace)}))
    assert {meta.spec(pod)["priority"] for pod in state.pods.values()} == {1000}


async def test_native_groups_start_together_or_not_at_all(space: LiveScenario) -> None:
    """Of three groups of four pods on nodes for two groups, two groups run completely.

    After capacity is added, the third one starts (R-KQ-145).
    """
    native = await _native(space)
    await add_to_pool(space, range(4))
    await space.create(lws(replicas=3, size=4, template={"workerTemplate": half_a_node(space)}))

    def two_run(state: State) -> None:
        assert state.of("web").keys() == pod_names("web", 3, 4)
        assert sorted(bound(state, 3)) == [0, 4, 4]

    await space.until(two_run)
    state = space.state
    (waiting,) = (index for index in range(3) if not any(map(is_bound, state.group("web", index).values())))
    name = link_of(state.pods[f"web-{waiting}"])
    tried = await space.eventually(
        lambda: space.get(kind_of(native), name), lambda group: bool(meta.status(group).get("conditions"))
    )
    assert not any(meta.is_condition_true(tried, one) for one in ("PodGroupScheduled", "PodGroupInitiallyScheduled"))
    two_run(space.state)
    told = await named(space, "LWS-E032", f"web/{waiting}")
    assert f"native does not start group {waiting} as a whole: " in told.sentence

    await add_to_pool(space, range(4, 6))

    await space.settled()
    assert bound(space.state, 3) == [4, 4, 4]
