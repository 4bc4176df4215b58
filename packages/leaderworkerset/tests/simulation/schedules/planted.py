"""Planted bugs: each is a known error of a controller of groups, made by a patch while it is needed.

Nothing here changes the product's code. The schedules find every one of these bugs within a fixed budget, which shows
what a campaign without violations proves.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from msgspec.structs import replace
from tests.simulation.schedules import (
    plantedbudgets,
    plantedgangs,
    plantedinplace,
    plantedkeys,
    plantedmoves,
    plantedrestarts,
    plantedrevisions,
)

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client import requests
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.workqueue import WorkQueue
from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.plan import Delete, Plan, PutStatus, flat, without
from kuberuntime.serving import leaderelection
from kuberuntime.serving.leaderelection import ObservedLease
from leaderworkerset.capabilities import deciding
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.capabilities.history import revisionhistory
from leaderworkerset.capabilities.termination import termination
from leaderworkerset.controllers import leaderworkerset as of_lws
from leaderworkerset.controllers import pod as of_pod
from leaderworkerset.core.leaderworkerset import (
    budget,
    cachedapply,
    outdatedleaders,
    revisions,
    rollingupdate,
    statefulsetleaders,
)
from leaderworkerset.core.pod import reconcile as of_groups
from leaderworkerset.core.policies import failures, restartpolicy
from leaderworkerset.core.policies.recreation import RestartSettings
from leaderworkerset.core.restarts import missingworkers

Plant: TypeAlias = Any
"""A context manager in whose body the bug is there."""


def _deletes_whatever_the_uid() -> Plant:
    """Delete by name, so that a successor of the same name may be deleted."""
    perform = Executor._delete

    async def _delete(self: Executor, action: Delete) -> Any:
        return await perform(self, replace(action, uid=None))

    return patch.object(Executor, "_delete", _delete)


def _deletes_without_grace() -> Plant:
    """Delete leaders without waiting for their processes, so that two of one identity may run."""
    perform = Executor._delete

    async def _delete(self: Executor, action: Delete) -> Any:
        return await perform(self, replace(action, grace_period=0))

    return patch.object(Executor, "_delete", _delete)


def _orphans_workers() -> Plant:
    """Delete leaders without their dependents."""
    perform = Executor._delete

    async def _delete(self: Executor, action: Delete) -> Any:
        return await perform(self, replace(action, propagation="Orphan"))

    return patch.object(Executor, "_delete", _delete)


def _counts_failures_of_predecessors() -> Plant:
    """Mistake a failed pod of the previous incarnation for one of the current: one failure causes two recreations."""
    return patch.object(failures._Group, "has", lambda self, pod: True)


def _recreates_whatever_the_policy() -> Plant:
    """Recreate groups whose restart policy is None."""
    return patch.object(failures, "is_active", lambda lws: True)


def _ignores_restarts() -> Plant:
    """Recreate groups for deleted pods only."""
    return patch.object(failures, "has_failed", lambda *_, **__: False)


def _misses_what_went_unseen() -> Plant:
    """Ignore workers that were deleted while no manager ran, so that groups stay torn."""
    return patch.object(missingworkers, "lost", lambda *_: ())


def _never_backs_off() -> Plant:
    """Recreate a group as often as it fails."""
    return patch.object(RestartSettings, "delay", lambda self, count: timedelta())


def _forgets_recreations() -> Plant:
    """Do not record recreations, so that each one is the first."""
    decide = restartpolicy.decide

    def forgetful(group: Any, *more: Any) -> Any:
        return decide(replace(group, record=None), *more)

    return patch.object(restartpolicy, "decide", forgetful)


def _partition_off_by_one() -> Plant:
    """Replace one group more than may be unavailable."""
    return patch.object(rollingupdate, "_affordable", lambda now, partition: max(partition - 1, 0))


def _ignores_readiness() -> Plant:
    """Replace groups although the previous ones are not ready."""
    return patch.object(rollingupdate, "_affordable", lambda now, partition: 0)


@contextmanager
def _gives_up_the_last_group() -> Iterator[None]:
    """Release the highest group whatever the groups below it are, as long as those above it are ready."""

    def step(limits: Any, current: Any, states: Any) -> int:
        done = rollingupdate._tail(states.ready & states.updated, current.replicas)
        return int(min(max(current.replicas - done - 1, 0), current.partition))

    affordable = patch.object(rollingupdate, "_affordable", lambda now, partition: partition)
    with patch.object(rollingupdate, "rolling_partition", step), affordable:
        yield


def _replaces_one_too_many() -> Plant:
    """Delete one leader more than may be unavailable, regardless of the partition."""
    real = outdatedleaders.choose

    def choose(leaders: Any) -> list[int]:
        looser = replace(leaders.limits, unavailable=leaders.limits.unavailable + 1)
        return real(replace(leaders, limits=looser, now=leaders.now._replace(partition=0)))

    return patch.object(outdatedleaders, "choose", choose)


def _reclaims_surge_early() -> Plant:
    """Delete surge groups immediately."""
    return patch.multiple(
        budget.Budget,
        replicas_needed=lambda self, unready: self.replicas,
    )


def _keeps_surge() -> Plant:
    """Never delete surge groups."""
    return patch.object(budget.Budget, "replicas_needed", lambda self, unready: self.burst)


def _surges_too_far() -> Plant:
    """Create one surge group more than permitted."""
    return patch.object(budget.Budget, "replicas_needed", lambda self, unready: self.burst + bool(unready))


def _rolls_without_holding_back() -> Plant:
    """Set the new template and lower the partition in one step."""

    rows = tuple(
        row._replace(partition=lambda _: 0, replicas=lambda now: now.current.replicas) if row.case == "C2b" else row
        for row in rollingupdate.ROLLOUT
    )
    return patch.object(rollingupdate, "ROLLOUT", rows)


def _builds_workers_of_today() -> Plant:
    """Build the workers of a group of an older revision from the current spec."""
    real = revisions.find

    def find(known: Any, key: str) -> Any:
        return max(known, key=lambda one: one["revision"], default=real(known, key))

    return patch.object(revisions, "find", find)


def _keeps_revisions() -> Plant:
    """Never delete revisions that no group needs."""
    return patch.object(revisionhistory, "settle", lambda obj, key, outdated, known: [])


def _writes_status_over_others() -> Plant:
    """Replace a status without comparing its version."""
    real = requests.update

    def update(resource: Any, obj: Any, *, subresource: str = "") -> Any:
        metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
        return real(resource, obj | {"metadata": metadata} if subresource else obj, subresource=subresource)

    return patch.object(requests, "update", update)


def _never_repairs() -> Plant:
    """Mistake an existing StatefulSet for the desired one."""
    real = cachedapply.follow

    def follow(obj: Any, key: str, replicas: int, partition: int, living: Any, last: Any) -> Any:
        source, _ = real(obj, key, replicas, partition, living, last)
        return source, living is None

    return patch.object(statefulsetleaders, "follow", follow)


def _forgets_what_is_due_later() -> Plant:
    """Drop requeue times, so that delayed work is never done."""
    return _changed_plans(of_pod, lambda plan: replace(plan, requeue_after=None))


def _never_retries() -> Plant:
    """Drop a key whose plan failed."""
    return patch.object(WorkQueue, "add_rate_limited", lambda self, key: 1.0)


def _reports_once() -> Plant:
    """Write a status only if there is none."""

    def kept(plan: Plan) -> Plan:
        actions = plan.actions
        for one in flat(plan.actions):
            if isinstance(one, PutStatus) and one.object.get("metadata", {}).get("generation", 1) > 1:
                actions = without(actions, one)
        return replace(plan, actions=actions)

    def decide(*arguments: Any) -> Any:
        decision = real(*arguments)
        return replace(decision, plan=kept(decision.plan))

    real = deciding.decide
    return patch.object(of_lws, "decide", decide)


def _trusts_wall_clocks() -> Plant:
    """Trust the time that a leader wrote, not the time when a change was observed: different clocks make two leaders."""
    real = leaderelection.decide

    def decide(settings: Any, lease: Any, seen: Any, clock: Clock) -> Any:
        spec = meta.spec(lease) if lease else {}
        renewed = timestamps.parse(spec["renewTime"]) if spec.get("renewTime") else clock.now()
        is_over = (clock.now() - renewed).total_seconds() > settings.lease_duration
        return real(settings, lease, ObservedLease(spec, float("-inf")) if is_over else seen, clock)

    return patch.object(leaderelection, "decide", decide)


@contextmanager
def _trusts_what_is_stored() -> Iterator[None]:
    """Read numbers of any length, in subscribers without a guard."""

    def publish(_self: Informer, change: Change, subscribers: Sequence[Callable[[Change], None]]) -> None:
        for callback in subscribers:
            callback(change)

    def natural(text: str) -> int | None:
        return int(text) if text.isdigit() else None

    with patch.object(Informer, "_publish", publish), patch.object(decimals, "natural", natural):
        yield


def _ends_at_an_update() -> Plant:
    """Fail in a subscriber without a guard when a LeaderWorkerSet is edited."""
    real = Informer._publish

    def publish(self: Informer, change: Change, subscribers: Sequence[Callable[[Change], None]]) -> None:
        if change.old is not None and meta.spec(change.object).keys() & {"leaderWorkerTemplate"}:
            assert meta.generation(change.object) == meta.generation(change.old), "edited"
        real(self, change, subscribers)

    return patch.object(Informer, "_publish", publish)


@contextmanager
def _ends_all_together() -> Iterator[None]:
    """Delete the workers of every leader that ends, whether the set requires it or not."""
    every_set = patch.object(deciding, "concerning_group", lambda group: EXTENSIONS)
    with every_set, patch.object(termination, "is_parallel", lambda *_: True):
        yield


def _leaves_gates_closed() -> Plant:
    """Never give a leader with an index its previous nodes."""
    return patch.object(of_groups, "gate_patches", lambda *_: ())


def _changed_plans(module: Any, change: Callable[[Plan], Plan]) -> Plant:
    real = module.reconcile_group
    return patch.object(module, "reconcile_group", lambda *arguments: change(real(*arguments)))


@dataclass(frozen=True)
class Bug:
    """A bug, and the schedule that is tried first, as FAMILY.BRANCH; `.1` of a named scenario has all its deaths."""

    plant: Callable[[], Plant]
    seed: str


BUGS: Final = {
    one.plant.__name__.strip("_").replace("_", "-"): one
    for one in (
        Bug(_deletes_whatever_the_uid, "2.0"),
        Bug(_deletes_without_grace, "2.0"),
        Bug(_orphans_workers, "roll.0"),
        Bug(_counts_failures_of_predecessors, "roll.0"),
        Bug(_recreates_whatever_the_policy, "1.3"),
        Bug(_ignores_restarts, "fail.0"),
        Bug(_misses_what_went_unseen, "fail unseen.0"),
        Bug(_never_backs_off, "crash loop.0"),
        Bug(_forgets_recreations, "crash loop.0"),
        Bug(_partition_off_by_one, "roll.0"),
        Bug(_ignores_readiness, "roll.0"),
        Bug(_replaces_one_too_many, "roll.0"),
        Bug(_gives_up_the_last_group, "roll broken.0"),
        Bug(_reclaims_surge_early, "surge.0"),
        Bug(_keeps_surge, "surge.0"),
        Bug(_surges_too_far, "surge.0"),
        Bug(_rolls_without_holding_back, "roll.0"),
        Bug(_builds_workers_of_today, "resize gangs.0"),
        Bug(_keeps_revisions, "roll.0"),
        Bug(_writes_status_over_others, "create.0"),
        Bug(_never_repairs, "grow.0"),
        Bug(_forgets_what_is_due_later, "crash loop.0"),
        Bug(_never_retries, "fail unseen.0"),
        Bug(_reports_once, "grow.0"),
        Bug(_trusts_wall_clocks, "clocks2.0"),
        Bug(_trusts_what_is_stored, "1.3"),
        Bug(_ends_at_an_update, "roll.0"),
        Bug(_ends_all_together, "shrink.0"),
        Bug(_leaves_gates_closed, "come back.0"),
        Bug(plantedkeys.trusts_old_counts, "roll by key.0"),
        Bug(plantedkeys.names_tpu_hosts_after_pods, "create by key.0"),
        Bug(plantedkeys.draws_another_key, "create by key.0"),
        Bug(plantedkeys.waits_for_surplus, "fail beside surplus.0"),
        Bug(plantedkeys.lets_all_go_ahead, "roll by key.0"),
        Bug(plantedkeys.reports_a_wait_again, "end one by one.0"),
        Bug(plantedkeys.never_ends_an_update, "roll by key.0"),
        Bug(plantedkeys.builds_by_the_live_size, "resize by key.0"),
        Bug(plantedkeys.shrinks_between_two_steps, "roll and shrink.0"),
        Bug(plantedbudgets.never_counts, "exhaust.0"),
        Bug(plantedbudgets.never_keeps, "exhaust.0"),
        Bug(plantedbudgets.never_releases, "exhaust.0"),
        Bug(plantedbudgets.never_claims, "exhaust by key.0"),
        Bug(plantedinplace.lets_the_partition_fall, "roll in place.0"),
        Bug(plantedinplace.marks_all_at_once, "roll in place.0"),
        Bug(plantedinplace.takes_updates_for_failures, "roll in place.0"),
        Bug(plantedinplace.trusts_readiness_of_before, "grow beyond the nodes.0"),
        Bug(plantedinplace.never_lets_go, "roll in place.0"),
        Bug(plantedinplace.resizes_nothing, "resize in place.0"),
        Bug(plantedinplace.waits_for_what_no_node_has, "grow beyond the nodes.0"),
        Bug(plantedrevisions.takes_a_name_for_its_object, "roll refused.0"),
        Bug(plantedrestarts.tolerates_nothing, "restart in place.0"),
        Bug(plantedrestarts.waits_for_ever, "restart in vain.0"),
        Bug(plantedrestarts.never_sees_ready_pods, "restart in place.0"),
        Bug(plantedmoves.moves_all_at_once, "moves2.1"),
        Bug(plantedmoves.never_moves, "moves2.2"),
        Bug(plantedmoves.forgets_who_is_away, "moves2.1"),
        Bug(plantedgangs.leaves_pod_groups, "fail in gangs.0"),
        Bug(plantedgangs.starts_with_the_first, "create gangs.0"),
        Bug(plantedgangs.asks_for_all_at_once, "resize the whole.0"),
        Bug(plantedgangs.reuses_names, "fail in gangs.0"),
        Bug(plantedgangs.compares_minima, "resize gangs.0"),
        Bug(plantedgangs.serves_leaders_of_before, "replace gangs.0"),
        Bug(plantedgangs.reports_own_objects, "replace gangs.0"),
    )
}
"""All bugs by name."""


@contextmanager
def bug(name: str | None) -> Iterator[None]:
    """Plant one bug in the body; none if there is no name."""
    with BUGS[name].plant() if name else nullcontext():
        yield
