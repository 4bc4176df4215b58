"""Models a DisaggregatedSet and its objects as dictionaries. Plans are performed action by action.

Groups become ready or do not.

The decisions are the product's own, on whole objects. Only the API server and the LeaderWorkerSet controller are
replaced by minimal models. After each plan the bounds of a rollout are asserted.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec.structs import replace
from tests.builders import NOW
from tests.disaggregated import disaggregatedset_object, role

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.plan import Action, Create, Delete, Patch, PutStatus, flatten
from leaderworkerset.api import disaggregatedset
from leaderworkerset.api.disaggregatedset import REVISION
from leaderworkerset.api.resources import LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.core.disaggregatedset import childsets, rolehash, slicerollout
from leaderworkerset.core.disaggregatedset.childsets import RolePart
from leaderworkerset.core.disaggregatedset.planner import RoleState
from leaderworkerset.core.disaggregatedset.reconcile import ObservedDisaggregatedSet, reconcile

NAMES = ("prefill", "decode", "encode", "draft")


@dataclass
class ModeledFleet:
    """The set, and the objects in the API server."""

    random: Random
    roles: dict[str, JSONObject] = field(default_factory=dict)
    leaderworkersets: dict[ObjectKey, JSONObject] = field(default_factory=dict)
    scalers: dict[ObjectKey, JSONObject] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """The revisions whose groups do not become ready."""
    time: int = 0
    image: int = 1
    revisions: dict[tuple[int | str, ...], str] = field(default_factory=dict)
    """The revision of each combination of image and role order."""
    known: dict[ObjectKey, tuple[JSONObject, RolePart]] = field(default_factory=dict)
    """The last observed facts of objects."""
    rollouts: int = 0
    drains: int = 0
    raises: int = 0

    def __post_init__(self) -> None:
        for name in NAMES[: self.random.randint(2, 4)]:
            self.roles[name] = self.new_role(name)

    def new_role(self, name: str) -> JSONObject:
        """Return a role with random sizes and budgets."""
        choose = self.random
        surge, unavailable = choose.choice([(1, 0), (2, 0), (1, 1), (0, 1), (0, 2), ("25%", "25%"), ("0%", "50%")])
        rollout = None if choose.random() < 0.3 else {"maxSurge": surge, "maxUnavailable": unavailable}
        external = choose.random() < 0.2
        return role(name, choose.randint(1, 9), image=self.image_of(), rollout=rollout, external=external)

    def image_of(self) -> str:
        """Return the image in the newest template."""
        return f"app:{self.image}"

    @property
    def obj(self) -> JSONObject:
        """Return the set as the API server returns it."""
        return disaggregatedset_object(list(self.roles.values()))

    @property
    def revision(self) -> str:
        """Return the newest revision."""
        what: tuple[int | str, ...] = (self.image, *self.roles)
        if what not in self.revisions:
            self.revisions[what] = rolehash.revision_of(list(self.roles.values()))
        return self.revisions[what]

    @property
    def parts(self) -> list[RolePart]:
        """Return the facts about the LeaderWorkerSets."""
        for key, one in self.leaderworkersets.items():
            if self.known.get(key, (None,))[0] is not one:
                self.known[key] = (one, childsets.read_part(one))
        return [self.known[key][1] for key in sorted(self.leaderworkersets)]

    def set_image(self, image: int) -> None:
        """Change the template of every role to a newer or an earlier one."""
        self.image = image
        for name, one in self.roles.items():
            fresh = role(name, image=self.image_of())["spec"]["leaderWorkerTemplate"]
            self.roles[name] = one | {"spec": one["spec"] | {"leaderWorkerTemplate": fresh}}

    def resize(self, name: str, replicas: int) -> None:
        """Request a different size, in the spec or in the scaler."""
        one = self.roles[name]
        scaler = self.scalers.get(ObjectKey("default", f"split-{name}"))
        if scaler is not None and one.get("scaling"):
            self.scalers[meta.key(scaler)] = scaler | {"spec": {"replicas": replicas}}
        self.roles[name] = one | {"spec": one["spec"] | {"replicas": replicas}}

    def tick(self) -> None:
        """Advance time, so that groups become ready. Of broken revisions, only the first group becomes ready."""
        self.time += 1
        for key, one in self.leaderworkersets.items():
            replicas = meta.spec(one)["replicas"]
            is_broken = meta.labels(one)[REVISION] in self.broken
            ready = min(replicas, 1) if is_broken else replicas
            status = {"replicas": replicas, "readyReplicas": ready, "updatedReplicas": replicas}
            self.leaderworkersets[key] = one | {"status": status}

    def step(self, *, actions: int | None = None) -> list[Action]:
        """Compute and perform the plan. If the manager crashes, perform only its first writes.

        Assert the bounds, and return the writes.
        """
        plan = reconcile(
            ObservedDisaggregatedSet(
                disaggregatedset=self.obj,
                leaderworkersets=list(self.leaderworkersets.values()),
                scalers=list(self.scalers.values()),
            ),
            NOW,
        )
        assert plan.error is None
        writes: list[Action] = [
            write for write in flatten(plan.actions) if write_of(write) in {LEADERWORKERSETS, ROLE_SCALERS}
        ]
        before = self.states()
        sizes = {part.key: part.replicas for part in self.parts}
        drained = {part.key for part in self.parts if part.replicas == 0}
        for write in writes[:actions]:
            self.perform(write, drained)
        if before:
            is_whole = actions is None or actions >= len(writes)
            self.check(before, is_whole=is_whole)
            if is_whole:
                self.check_orphans(sizes)
        return writes

    def states(self) -> dict[str, RoleState]:
        """Return the planner's states while old groups exist."""
        old = [part for part in self.parts if part.revision != self.revision and part.replicas >= 0]
        if not any(part.replicas for part in old):
            return {}
        whole = disaggregatedset.decode(self.obj)
        new = {part.role: part for part in self.parts if part.revision == self.revision}
        live = [part for part in old if any(one.replicas for one in old if one.revision == part.revision)]
        names, state = slicerollout.planner_input(whole.roles, live, new, self.wanted())
        return dict(zip(names, state, strict=True))

    def wanted(self) -> dict[str, int]:
        """Return the sizes that the scalers request.

        A new scaler requests as many groups as exist (R-DS-97: 0 stays 0).
        """
        external = [name for name, one in self.roles.items() if one.get("scaling")]
        found = {name: self.scalers.get(ObjectKey("default", f"split-{name}")) for name in external}
        there = {part.role for part in self.parts}
        seeds = {name: childsets.total_replicas(self.parts, name) if name in there else 1 for name in external}
        return {
            name: seeds[name] if scaler is None else meta.spec(scaler)["replicas"] for name, scaler in found.items()
        }

    def perform(self, action: Action, drained: set[ObjectKey]) -> None:
        """Perform an action as the API server does."""
        match action:
            case Create(resource=resource, object=obj, on_success=events):
                self.rollouts += any(event.reason == "RollingUpdateStarted" for event in events)
                kept = self.scalers if resource == ROLE_SCALERS else self.leaderworkersets
                assert meta.key(obj) not in kept
                stamp = {"uid": f"uid-{len(kept)}-{self.time}", "creationTimestamp": f"{self.time:09}"}
                kept[meta.key(obj)] = obj | {"metadata": obj["metadata"] | stamp}
            case Patch(resource=resource, key=key, patch=patch) if resource == LEADERWORKERSETS:
                one = self.leaderworkersets[key]
                metadata = one["metadata"]
                annotations = meta.annotations(one) | (meta.metadata(patch).get("annotations") or {})
                self.leaderworkersets[key] = one | {
                    "metadata": metadata | {"annotations": annotations},
                    "spec": one["spec"] | (patch.get("spec") or {}),
                }
            case Delete(resource=resource, key=key) if resource == LEADERWORKERSETS:
                assert key in drained, f"{key} was deleted with groups"
                del self.leaderworkersets[key]
            case Delete(key=key):
                del self.scalers[key]

    def check(self, before: dict[str, RoleState], *, is_whole: bool) -> None:
        """Assert the limits that a rollout step must respect."""
        after = {name: self.ended(name, state) for name, state in before.items()} | self.states()
        for name, state in before.items():
            now = after[name]
            old, new = now.old, now.new
            assert old <= state.old, f"{name}: old groups grew: {state} to {now}"
            assert new >= state.new, f"{name}: new groups were given back: {state} to {now}"
            if old < state.old:
                self.drains += 1
                if state.has_min_groups:
                    ready = min(new, state.new)
                    assert old + ready >= min(state.min_groups, state.old + state.new), f"{name}: {state} to {now}"
        raised = [name for name, state in before.items() if after[name].new > state.new]
        if raised and is_whole:
            self.raises += 1
            self.check_ratio(before, after, raised)

    def check_ratio(self, before: dict[str, RoleState], after: dict[str, RoleState], raised: list[str]) -> None:
        """Assert that no role is ahead of the others by more than one batch, or exceeds its limit."""
        steps = max(-(-max(state.initial, state.target) // state.batch) for state in before.values())
        slowest = min(min(state.new * steps // state.target, steps) for state in before.values() if state.target)
        revisions = {part.revision for part in self.parts} - {self.revision}
        for name in raised:
            state, new = before[name], after[name].new
            assert new <= -(-(slowest + 1) * state.target // steps), f"{name} is ahead: {before} to {after}"
            allowed = state.target + max(state.surge, 1) + max(0, len(revisions) - 1)
            assert after[name].old + new <= allowed, f"{name} has too many groups: {before} to {after}"
        assert all(after[name].new > 0 for name, state in before.items() if state.target), f"alone: {before} to {after}"

    def check_orphans(self, before: dict[ObjectKey, int]) -> None:
        """Assert that a revision without groups in one role has no groups in any role."""
        for found in childsets.group_by_revision(part for part in self.parts if part.revision != self.revision):
            emptied = [part for part in found if part.replicas == 0 and before.get(part.key, 0) > 0]
            assert not emptied or not any(part.replicas for part in found), f"orphans: {before} to {found}"

    def ended(self, name: str, state: RoleState) -> RoleState:
        """Return the state of a role after its last old group was deleted."""
        new = sum(part.replicas for part in self.parts if part.role == name and part.revision == self.revision)
        return replace(state, old=0, new=new)


def write_of(action: Action) -> Any:
    """Return the resource that an action writes, or None if it does not write. Statuses are not counted."""
    if isinstance(action, PutStatus) or (isinstance(action, Patch) and action.subresource):
        return None
    return getattr(action, "resource", None)
