"""Tests that all roles of a DisaggregatedSet are created, updated, scaled and deleted together."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from tests.disaggregated import disaggregatedset_object, role, with_image
from tests.integration.clusters.objects import GATE
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, shows
from tests.integration.lws.rolesizes import ROLES, Sizes, as_counts, followed_sizes, triples_of

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from leaderworkerset.api import groupname
from leaderworkerset.api.disaggregatedset import REVISION, ROLE
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.core.disaggregatedset import rolehash
from leaderworkerset.core.disaggregatedset.roleset import RolePlace, owner_reference
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager import lwsmanager


def the_set(space: LiveScenario) -> JSONObject:
    found = list(space.informers[DISAGGREGATED_SETS].store.list())
    assert len(found) == 1
    return found[0]


async def available(space: LiveScenario) -> State:
    """Wait until the latest version is available, and no object with an old revision remains."""

    def is_available(state: State) -> None:
        found = the_set(space)
        assert meta.status(found).get("observedGeneration") == space.written
        assert meta.is_condition_true(found, "Available"), meta.status(found)
        assert len({meta.labels(one)[REVISION] for one in state.leaderworkersets.values()}) == 1

    return await space.until(is_available)


async def create(space: LiveScenario, roles: Sequence[JSONObject], **spec: Any) -> JSONObject:
    obj = disaggregatedset_object(roles, **spec)
    created = await space.create({**obj, "metadata": {"name": "split"}}, DISAGGREGATED_SETS)
    space.written = meta.generation(created)
    return obj


async def edit(space: LiveScenario, spec: JSONObject) -> None:
    key = space.key("split")
    edited = await space.client.patch(DISAGGREGATED_SETS, key, {"spec": spec}, kind="merge")
    space.written = meta.generation(edited)


async def test_disaggregated_set_creates_its_parts(space: LiveScenario) -> None:
    """A DisaggregatedSet creates its objects.

    See R-DS-14 to R-DS-17, R-DS-31, R-DS-80 to R-DS-83, R-DS-92 to R-DS-95.
    """
    await create(space, [role("prefill", 2, size=2), role("decode", 1)])
    state = await available(space)
    prefix = f"split-0-{revision_of(state)}"
    assert state.leaderworkersets.keys() == {f"{prefix}-prefill", f"{prefix}-decode"}

    def has_services(state: State) -> None:
        assert {f"{prefix}-prefill-prv", f"{prefix}-decode-prv"} <= state.services.keys()

    state = await space.until(has_services)
    pod = state.pods[f"{prefix}-prefill-0-1"]
    assert state.services[f"{prefix}-prefill-prv"]["spec"]["selector"].items() <= meta.labels(pod).items()
    counts = {one["name"]: one["readyReplicas"] for one in meta.status(the_set(space))["roleStatuses"]}
    assert counts == {"prefill": 2, "decode": 1}


def revision_of(state: State) -> str:
    (revision,) = {meta.labels(one)[REVISION] for one in state.leaderworkersets.values()}
    return revision


async def rolled(space: LiveScenario, before: list[JSONObject], after: list[JSONObject]) -> Sizes:
    """Change the image of these roles. Return the sizes during the rollout."""
    await create(space, before)
    sizes = followed_sizes(space, revision_of(await available(space)))
    await edit(space, with_image(disaggregatedset_object(after), "app:2"))
    await available(space)
    return sizes


def rolling(prefill: int, decode: int, *budgets: Mapping[str, int]) -> list[JSONObject]:
    """Return both roles with their budgets."""
    sizes = zip(ROLES, (prefill, decode), budgets or (None, None), strict=True)
    return [role(name, size, rollout=budget) for name, size, budget in sizes]


SURGE_TWO: Final = ({"maxSurge": 2, "maxUnavailable": 0},) * 2
SURGE_TWO_LOSE_ONE: Final = ({"maxSurge": 2, "maxUnavailable": 1},) * 2
NO_SURGE: Final = ({"maxSurge": 0, "maxUnavailable": 2},) * 2


@pytest.mark.parametrize(
    ("before", "after", "trace"),
    [
        (rolling(3, 3), rolling(3, 3), "3,3/0,0 3,3/1,1 2,2/1,1 2,2/2,2 1,1/2,2 1,1/3,3 0,0/3,3"),
        (
            rolling(5, 3, *SURGE_TWO),
            rolling(5, 3, *SURGE_TWO),
            "5,3/0,0 5,3/2,1 4,2/2,1 3,2/2,1 3,2/4,2 2,1/4,2 2,1/5,3 0,0/5,3",
        ),
        (
            rolling(4, 4),
            rolling(6, 6),
            "4,4/0,0 4,4/1,1 4,4/2,2 4,4/3,3 3,3/4,4 2,2/5,5 1,1/6,6 0,0/6,6",
        ),
        (rolling(5, 5), rolling(2, 2), "5,5/0,0 4,4/0,0 3,3/0,0 2,2/0,0 2,2/1,1 1,1/1,1 1,1/2,2 0,0/2,2"),
        (rolling(4, 4, *NO_SURGE), rolling(4, 4, *NO_SURGE), "4,4/0,0 2,2/0,0 2,2/2,2 0,0/2,2 0,0/4,4"),
        (
            rolling(5, 2, *SURGE_TWO_LOSE_ONE),
            rolling(5, 2, *SURGE_TWO_LOSE_ONE),
            "5,2/0,0 5,2/2,1 4,2/2,1 3,2/4,2 2,1/4,2 2,1/5,2 0,0/5,2",
        ),
    ],
    ids=["W1", "W3", "W5", "W6", "W8", "W9"],
)
async def test_rollouts_follow_the_steps_of_the_contract(
    space: LiveScenario, before: list[JSONObject], after: list[JSONObject], trace: str
) -> None:
    """The rollout has the expected steps, even if roles grow, shrink or may not surge.

    See R-DS-35 to R-DS-62, contract 10.
    """
    sizes = await rolled(space, before, after)
    sizes.assert_went_through(trace)

    def is_told(state: State) -> None:
        reasons = {one["reason"] for one in state.events.values() if one["reportingController"] == "disaggregatedset"}
        assert {"RollingUpdateStarted", "ScalingUp", "ScalingDown", "LWSDeleted", "RollingUpdateCompleted"} <= reasons

    await space.until(is_told)


async def test_old_groups_added_during_a_rollout_are_removed(space: LiveScenario) -> None:
    """Groups I(4,4) O(5,5) N(2,2) become 4,4/2,2 when the new groups are ready (R-DS-46, contract 10 W11)."""
    await create(space, rolling(4, 4, *SURGE_TWO))
    old = revision_of(await available(space))
    sizes = followed_sizes(space, old)
    await edit(space, gated(with_image(disaggregatedset_object(rolling(4, 4, *SURGE_TWO)), "app:2")))

    def is_new(pod: JSONObject) -> bool:
        return meta.labels(pod)[REVISION] != old

    def phases(state: State) -> list[str]:
        return [meta.status(pod)["phase"] for pod in filter(is_new, state.pods.values())]

    await space.until(shows(lambda state: phases(state).count("Running"), 4))
    for name in ROLES:
        await space.edit(f"split-0-{old}-{name}", replicas=5)
    await space.until(lambda _: assert_last(sizes, "5,5/2,2"))
    async with space.releasing():
        await space.release(*(name for name, pod in space.state.pods.items() if is_new(pod)))
        await available(space)
    sizes.assert_went_through("4,4/0,0 4,4/2,2 5,5/2,2 4,4/2,2 2,2/2,2 2,2/4,4 0,0/4,4")


def gated(spec: JSONObject) -> JSONObject:
    """Delay the readiness of the pods of all roles until they are released."""
    for one in spec["roles"]:
        one["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["readinessGates"] = [{"conditionType": GATE}]
    return spec


def assert_last(sizes: Sizes, text: str) -> None:
    assert sizes.seen[-1] == as_counts(text)


async def test_new_groups_added_by_hand_start_no_rollout(space: LiveScenario) -> None:
    """N(4,7) T(3,6) without old groups returns to the spec sizes without a rollout (R-DS-31, contract 10 W11)."""
    await create(space, rolling(3, 6))
    state = await available(space)
    revision, before = revision_of(state), state.pods.keys()
    for name, size in zip(ROLES, (4, 7), strict=True):
        await space.edit(f"split-0-{revision}-{name}", replicas=size)

    def is_as_before(state: State) -> None:
        sizes = {meta.labels(one)[ROLE]: meta.spec(one)["replicas"] for one in state.leaderworkersets.values()}
        assert sizes == dict(zip(ROLES, (3, 6), strict=True))
        assert all(meta.generation(one) > 2 for one in state.leaderworkersets.values())
        assert state.pods.keys() == before
        assert revision_of(state) == revision

    uids = {name: meta.uid(pod) for name, pod in state.pods.items()}
    state = await space.until(is_as_before)
    assert {name: meta.uid(pod) for name, pod in state.pods.items()} == uids


@pytest.mark.parametrize(
    ("before", "after", "trace"),
    [
        (rolling(4, 4), rolling(0, 0), "4,4/0,0 0,0/0,0"),
        (rolling(0, 0), rolling(3, 3), "0,0/0,0 0,0/3,3"),
    ],
    ids=["pause", "from nothing"],
)
async def test_scaling_to_or_from_zero_takes_one_step(
    space: LiveScenario, before: list[JSONObject], after: list[JSONObject], trace: str
) -> None:
    """Scaling happens in one step, even if the template also changes (R-DS-31, contract 10 W11)."""
    sizes = await rolled(space, before, after)
    first, last = map(as_counts, trace.split())
    ways = [counts for counts in sizes.seen if counts not in {first, last}]
    # Both roles are written at the same time, but one can be observed first. No size in between is ever requested.
    assert all(value in {start, end} for one in ways for value, start, end in triples_of(one, first, last)), ways
    assert sizes.seen[-1] == last


async def test_autoscaler_scales_one_role_during_a_rollout(space: LiveScenario) -> None:
    """The autoscaler uses `/scale` from the beginning of the rollout (R-DS-2, R-DS-6, R-DS-96 to R-DS-101)."""
    obj = await create(space, [role("prefill", None, external=True), role("decode", 2)])
    await space.until(lambda _: assert_scaler(space))
    key = space.key("split-prefill")
    scale = await space.client.get(ROLE_SCALERS, key, subresource="scale")
    assert scale["spec"]["replicas"] == 1
    await available(space)
    await edit(space, with_image(obj, "app:2"))
    await space.client.patch(ROLE_SCALERS, key, {"spec": {"replicas": 3}}, kind="merge", subresource="scale")
    state = await available(space)
    sizes = {meta.labels(one)[ROLE]: meta.spec(one)["replicas"] for one in state.leaderworkersets.values()}
    assert sizes == {"prefill": 3, "decode": 2}

    def is_reported(_: State) -> None:
        (scaler,) = space.informers[ROLE_SCALERS].store.list()
        assert meta.status(scaler)["replicas"] == 3
        assert meta.is_condition_true(scaler, "Ready")

    await space.until(is_reported)


def assert_scaler(space: LiveScenario) -> None:
    assert space.informers[ROLE_SCALERS].store.list()


async def test_disaggregated_set_of_upstream_is_adopted_unchanged(space: LiveScenario) -> None:
    """The roles' LeaderWorkerSets and pods do not change, even if budgets are copied (R-DS-24, Q-11)."""
    roles = rolling(2, 1, *SURGE_TWO)
    await space.manager.stop()
    obj = await create(space, roles)
    owner = await space.get(DISAGGREGATED_SETS, "split")
    await define_as_the_go_controller(space)
    revision = rolehash.revision_of(meta.spec(owner)["roles"])
    for one in roles:
        place = RolePlace("split", 0, revision, one["name"])
        metadata = {"name": place.name, "labels": place.labels, "ownerReferences": [owner_reference(owner)]}
        kind = {"apiVersion": LEADERWORKERSETS.api_version, "kind": LEADERWORKERSETS.kind}
        template = one["spec"]["leaderWorkerTemplate"]
        injected = template["workerTemplate"] | {"metadata": {"labels": place.labels}}
        spec = one["spec"] | {"leaderWorkerTemplate": template | {"workerTemplate": injected}}
        await space.create(kind | {"metadata": metadata, "spec": spec})
    before = {name: identity(one) for name, one in (await space.until(two_leaderworkersets)).leaderworkersets.items()}

    await space.manager.start()

    state = await available(space)
    assert {name: identity(one) for name, one in state.leaderworkersets.items()} == before
    assert {meta.labels(pod)[REVISION] for pod in state.pods.values()} == {revision}
    await edit(space, with_image(obj, "app:2"))
    assert revision_of(await available(space)) != revision


async def test_differs_from_upstream_orphans_of_a_set_are_adopted(space: LiveScenario) -> None:
    """A recreated DisaggregatedSet adopts objects that remain after `kubectl delete --cascade=orphan`.

    The Go controller fails permanently (R-DS-72, ADR 30).
    """
    roles = rolling(1, 1)
    obj = await create(space, roles)
    before = await space.until(has_two_services)
    await available(space)
    await space.delete("split", DISAGGREGATED_SETS, propagation="Orphan")
    await space.until(lambda _: assert_no_set(space))
    await create(space, roles)

    def adopted(state: State) -> None:
        children = [*state.leaderworkersets.values(), *state.services.values()]
        owned = [child for child in children if meta.is_controlled(child, the_set(space))]
        assert len(owned) == 4

    after = await space.until(adopted)
    await available(space)
    assert {meta.uid(each) for each in after.leaderworkersets.values()} == {
        meta.uid(each) for each in before.leaderworkersets.values()
    }
    await edit(space, with_image(obj, "app:2"))
    await available(space)


def assert_no_set(space: LiveScenario) -> None:
    assert not space.informers[DISAGGREGATED_SETS].store.list()


def has_two_services(state: State) -> None:
    assert sum(name.endswith("-prv") for name in state.services) == 2


def two_leaderworkersets(state: State) -> None:
    assert len(state.leaderworkersets) == 2


def identity(obj: JSONObject) -> tuple[str, int, JSONObject]:
    """Return the fields of a LeaderWorkerSet that an adoption must not change."""
    return meta.uid(obj), meta.generation(obj), meta.labels(obj)


async def define_as_the_go_controller(space: LiveScenario) -> None:
    """Assign the CRD to another installer, like Helm. Then adopt it as `lws install` does."""
    key = ObjectKey("", DISAGGREGATED_SETS.group_resource)
    installed = await space.client.get(CUSTOM_RESOURCE_DEFINITIONS, key)
    kept = {name: installed[name] for name in ("apiVersion", "kind")}
    spec = {"metadata": {"name": key.name}, "spec": meta.spec(installed)}
    await space.client.apply(CUSTOM_RESOURCE_DEFINITIONS, kept | spec, manager="helm")
    for definition in MANAGED.definitions():
        if meta.name(definition) == key.name:
            await space.client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager=lwsmanager.INSTALLER)


async def test_role_with_random_keys_rolls_and_scales_with_others(space: LiveScenario) -> None:
    """The LeaderWorkerSet has the role's policies, and is otherwise unchanged (N-DS-1, N-DS-2, N-AT-9, N-PT-5)."""
    prefill = role("prefill", 2, size=2)
    keyed = prefill | {"spec": prefill["spec"] | {"groupIdentity": "Hash"}}
    obj = await create(space, [keyed, role("decode", 2)])
    before = await available(space)
    first = revision_of(before)
    pods = before.of(f"split-0-{first}-prefill")
    hosts = {f"split-0-{first}-prefill-{groupname.group_label(pod)[:8]}" for pod in pods.values()}
    assert {meta.spec(pod)["hostname"] for pod in pods.values()} == {*hosts, *(f"{host}-1" for host in hosts)}

    policies = {"groupReplacementPolicy": "Immediate", "podTerminationPolicy": "Parallel"}
    await edit(space, {"roles": [keyed | {"spec": keyed["spec"] | policies}, role("decode", 2)]})

    def is_at_once(state: State) -> None:
        live = state.leaderworkersets[f"split-0-{first}-prefill"]
        assert {name: meta.spec(live).get(name) for name in policies} == policies

    await space.until(is_at_once)
    state = await available(space)
    assert revision_of(state) == first
    assert state.uids(f"split-0-{first}-prefill") == before.uids(f"split-0-{first}-prefill")

    await edit(space, with_image(obj, "app:2"))
    second = revision_of(await available(space))
    assert second != first
    grown = [keyed | {"spec": keyed["spec"] | {"replicas": 3}}, role("decode", 2)]
    await edit(space, with_image(obj | {"spec": {"roles": grown}}, "app:2"))
    state = await available(space)
    assert revision_of(state) == second
    assert len(state.of(f"split-0-{second}-prefill")) == 6
    assert "podTerminationPolicy" not in meta.spec(state.leaderworkersets[f"split-0-{second}-prefill"])


async def test_slices_are_added_and_removed(space: LiveScenario) -> None:
    """Slices are added and removed (R-DS-33, R-DS-85)."""
    await create(space, [role("prefill"), role("decode")], slices=2)
    state = await available(space)
    assert {name.split("-")[1] for name in state.leaderworkersets} == {"0", "1"}
    await edit(space, {"slices": 1})
    await available(space)
    await space.until(assert_first_slice)


def assert_first_slice(state: State) -> None:
    assert {name.split("-")[1] for name in state.leaderworkersets} == {"0"}
    assert {name.split("-")[1] for name in state.pods} == {"0"}


async def test_invalid_disaggregated_sets_are_rejected(space: LiveScenario) -> None:
    """Either the schema or the webhook rejects each object (R-DS-4, R-DS-9)."""
    with pytest.raises(APIError, match="zero for all"):
        await create(space, [role("prefill", 0), role("decode", 1)])
    with pytest.raises(APIError, match="partition"):
        await create(space, [role("prefill", 1, rollout={"partition": 1}), role("decode", 1)])


async def test_deleting_a_disaggregated_set_leaves_nothing(space: LiveScenario) -> None:
    """After the deletion of a DisaggregatedSet, no object remains (R-DS-103)."""
    await create(space, [role("prefill", None, external=True), role("decode")])
    await available(space)
    await space.delete("split", DISAGGREGATED_SETS)

    def is_gone(state: State) -> None:
        assert not state.leaderworkersets
        assert not state.pods
        assert not [name for name in state.services if name.startswith("split")]
        assert not space.informers[ROLE_SCALERS].store.list()

    await space.until(is_gone)
