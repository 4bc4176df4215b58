"""Defines planted bugs, which are known errors of group controllers. Each is applied temporarily as a patch.

Nothing here changes the product's code. The schedules find every one of these bugs within a fixed budget, which shows
what a campaign without violations proves.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from msgspec.structs import replace
from tests.simulation.schedules import (
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
from kuberuntime.plan import Delete, Plan, PutStatus, flatten, without
from kuberuntime.serving import leaderelection
from kuberuntime.serving.leaderelection import ObservedLease
from leaderworkerset.api.policytypes import GroupReplacementPolicy
from leaderworkerset.capabilities.history import revisionhistory
from leaderworkerset.capabilities.inplace import inplacepods, inplaceresources
from leaderworkerset.capabilities.restartinplace import allcontainers
from leaderworkerset.capabilities.termination import termination
from leaderworkerset.controllers import leaderworkerset as of_lws
from leaderworkerset.controllers import pod as of_pod
from leaderworkerset.core.gang import preparation, replicas
from leaderworkerset.core.leaderworkerset import (
    budget,
    cachedapply,
    deploymentleaders,
    failedgroups,
    gatedleaders,
    outdatedleaders,
    reconcile,
    revisions,
    rollingupdate,
    statefulsetleaders,
)
from leaderworkerset.core.pod import reconcile as of_groups
from leaderworkerset.core.policies import accelerators, failures, restartpolicy, workloadnames
from leaderworkerset.core.policies.recreation import RestartSettings
from leaderworkerset.core.restarts import missingworkers, retention

Plant: TypeAlias = Any
"""A context manager that plants the bug for the duration of the `with` block."""


def _deletes_whatever_the_uid() -> Plant:
    """Delete by name, so that a replacement with the same name may be deleted."""
    perform = Executor._delete

    async def _delete(self: Executor, action: Delete) -> Any:
        return await perform(self, replace(action, uid=None))

    return patch.object(Executor, "_delete", _delete)


def _deletes_without_grace() -> Plant:
    """Delete leaders without waiting for their processes, so that two pods with the same identity may run."""
    perform = Executor._delete

    async def _delete(self: Executor, action: Delete) -> Any:
        return await perform(self, replace(action, grace_period=0))

    return patch.object(Executor, "_delete", _delete)


def _orphans_workers() -> Plant:
    """Delete leaders but not their dependents."""
    perform = Executor._delete

    async def _delete(self: Executor, action: Delete) -> Any:
        return await perform(self, replace(action, propagation="Orphan"))

    return patch.object(Executor, "_delete", _delete)


def _forgets_recreations() -> Plant:
    """Do not record recreations, so that each recreation counts as the first."""
    decide = restartpolicy.decide

    def forgetful(group: Any, *more: Any) -> Any:
        return decide(replace(group, record=None), *more)

    return patch.object(restartpolicy, "decide", forgetful)


@contextmanager
def _gives_up_the_last_group() -> Iterator[None]:
    """Release the highest group if the groups above it are ready, regardless of the groups below it."""

    def step(limits: Any, current: Any, states: Any) -> int:
        done = rollingupdate._completed_tail(states.ready & states.updated, current.replicas)
        return int(min(max(current.replicas - done - 1, 0), current.partition))

    affordable = patch.object(rollingupdate, "_limit_partition", lambda now, partition: partition)
    with patch.object(rollingupdate, "rolling_partition", step), affordable:
        yield


def _replaces_one_too_many() -> Plant:
    """Delete one leader more than `maxUnavailable` permits, regardless of the partition."""
    real = outdatedleaders.leaders_to_delete

    def choose(leaders: Any) -> list[int]:
        looser = replace(leaders.limits, unavailable=leaders.limits.unavailable + 1)
        return real(replace(leaders, limits=looser, current=leaders.current._replace(partition=0)))

    return patch.object(outdatedleaders, "leaders_to_delete", choose)


def _reclaims_surge_early() -> Plant:
    """Delete surge groups immediately."""
    return patch.multiple(
        budget.Budget,
        replicas_needed=lambda self, unready: self.replicas,
    )


def _rolls_without_holding_back() -> Plant:
    """Set the new template and lower the partition in one step."""

    rows = tuple(
        row._replace(partition=lambda _: 0, replicas=lambda now: now.current.replicas) if row.case == "C2b" else row
        for row in rollingupdate.ROLLOUT
    )
    return patch.object(rollingupdate, "ROLLOUT", rows)


def _builds_workers_of_today() -> Plant:
    """Build the workers of groups with an older revision from the current spec."""
    real = revisions.find_revision

    def find(known: Any, key: str) -> Any:
        return max(known, key=lambda one: one["revision"], default=real(known, key))

    return patch.object(revisions, "find_revision", find)


def _writes_status_over_others() -> Plant:
    """Replace a status without comparing its resource version."""
    real = requests.update

    def update(resource: Any, obj: Any, *, subresource: str = "") -> Any:
        metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
        return real(resource, obj | {"metadata": metadata} if subresource else obj, subresource=subresource)

    return patch.object(requests, "update", update)


def _never_repairs() -> Plant:
    """Use an existing StatefulSet as the desired one."""
    real = cachedapply.next_source

    def follow(obj: Any, key: str, replicas: int, partition: int, living: Any, last: Any) -> Any:
        source, _ = real(obj, key, replicas, partition, living, last)
        return source, living is None

    return patch.object(statefulsetleaders, "next_source", follow)


def _forgets_what_is_due_later() -> Plant:
    """Drop requeue times, so that delayed work is never performed."""
    return _changed_plans(of_pod, lambda plan: replace(plan, requeue_after=None))


def _reports_once() -> Plant:
    """Write no status after the spec has changed."""

    def kept(plan: Plan) -> Plan:
        actions = plan.actions
        for one in flatten(plan.actions):
            if isinstance(one, PutStatus) and one.object.get("metadata", {}).get("generation", 1) > 1:
                actions = without(actions, one)
        return replace(plan, actions=actions)

    def decide(*arguments: Any) -> Any:
        decision = real(*arguments)
        return replace(decision, plan=kept(decision.plan))

    real = reconcile.reconcile
    return patch.object(of_lws, "reconcile", decide)


def _trusts_wall_clocks() -> Plant:
    """Use the time in the lease instead of the time when a change was observed.

    Different clocks then cause two leaders.
    """
    real = leaderelection.decide

    def decide(settings: Any, lease: Any, seen: Any, clock: Clock) -> Any:
        spec = meta.spec(lease) if lease else {}
        renewed = timestamps.parse(spec["renewTime"]) if spec.get("renewTime") else clock.now()
        is_over = (clock.now() - renewed).total_seconds() > settings.lease_duration
        return real(settings, lease, ObservedLease(spec, float("-inf")) if is_over else seen, clock)

    return patch.object(leaderelection, "decide", decide)


@contextmanager
def _trusts_what_is_stored() -> Iterator[None]:
    """Parse numbers of any length in unguarded subscribers."""

    def publish(_self: Informer, change: Change, subscribers: Sequence[Callable[[Change], None]]) -> None:
        for callback in subscribers:
            callback(change)

    def natural(text: str) -> int | None:
        return int(text) if text.isdigit() else None

    with patch.object(Informer, "_publish", publish), patch.object(decimals, "natural", natural):
        yield


def _ends_at_an_update() -> Plant:
    """Raise an error in an unguarded subscriber when a LeaderWorkerSet is changed."""
    real = Informer._publish

    def publish(self: Informer, change: Change, subscribers: Sequence[Callable[[Change], None]]) -> None:
        if change.old is not None and meta.spec(change.object).keys() & {"leaderWorkerTemplate"}:
            assert meta.generation(change.object) == meta.generation(change.old), "edited"
        real(self, change, subscribers)

    return patch.object(Informer, "_publish", publish)


@contextmanager
def _ends_all_together() -> Iterator[None]:
    """Delete the workers of every leader that terminates, even if the set does not require it."""
    with patch.object(termination, "is_parallel", lambda *_: True):
        yield


def _changed_plans(module: Any, change: Callable[[Plan], Plan]) -> Plant:
    real = module.reconcile_group
    return patch.object(module, "reconcile_group", lambda *arguments: change(real(*arguments)))


def replaced(*attribute: Any) -> Callable[[], Plant]:
    """Return a bug that replaces an attribute with a value."""
    return partial(patch.object, *attribute)


@dataclass(frozen=True)
class Bug:
    """A bug, and the schedule that is tried first, as FAMILY.BRANCH.

    For a named scenario, `.1` plays all its crashes.
    """

    plant: Callable[[], Plant]
    seed: str


BUGS: Final = {
    "deletes-whatever-the-uid": Bug(_deletes_whatever_the_uid, "2.0"),
    "deletes-without-grace": Bug(_deletes_without_grace, "2.0"),
    "orphans-workers": Bug(_orphans_workers, "roll.0"),
    "counts-failures-of-predecessors": Bug(replaced(failures._Group, "contains", lambda self, pod: True), "roll.0"),
    "recreates-whatever-the-policy": Bug(replaced(failures, "recreates_groups", lambda lws: True), "1.3"),
    "ignores-restarts": Bug(replaced(failures, "has_failed", lambda *_, **__: False), "fail.0"),
    "misses-what-went-unseen": Bug(replaced(missingworkers, "deleted_workers", lambda *_: ()), "fail unseen.0"),
    "never-backs-off": Bug(replaced(RestartSettings, "delay", lambda self, count: timedelta()), "crash loop.0"),
    "forgets-recreations": Bug(_forgets_recreations, "crash loop.0"),
    "partition-off-by-one": Bug(
        replaced(rollingupdate, "_limit_partition", lambda now, partition: max(partition - 1, 0)), "roll.0"
    ),
    "ignores-readiness": Bug(replaced(rollingupdate, "_limit_partition", lambda now, partition: 0), "roll.0"),
    "replaces-one-too-many": Bug(_replaces_one_too_many, "roll.0"),
    "gives-up-the-last-group": Bug(_gives_up_the_last_group, "roll broken.0"),
    "reclaims-surge-early": Bug(_reclaims_surge_early, "surge.0"),
    "keeps-surge": Bug(replaced(budget.Budget, "replicas_needed", lambda self, unready: self.max_groups), "surge.0"),
    "surges-too-far": Bug(
        replaced(budget.Budget, "replicas_needed", lambda self, unready: self.max_groups + bool(unready)), "surge.0"
    ),
    "rolls-without-holding-back": Bug(_rolls_without_holding_back, "roll.0"),
    "builds-workers-of-today": Bug(_builds_workers_of_today, "resize gangs.0"),
    "keeps-revisions": Bug(replaced(revisionhistory, "update_history", lambda obj, key, outdated, known: []), "roll.0"),
    "writes-status-over-others": Bug(_writes_status_over_others, "create.0"),
    "never-repairs": Bug(_never_repairs, "grow.0"),
    "forgets-what-is-due-later": Bug(_forgets_what_is_due_later, "crash loop.0"),
    "never-retries": Bug(replaced(WorkQueue, "add_rate_limited", lambda self, key: 1.0), "fail unseen.0"),
    "reports-once": Bug(_reports_once, "grow.0"),
    "trusts-wall-clocks": Bug(_trusts_wall_clocks, "clocks2.0"),
    "trusts-what-is-stored": Bug(_trusts_what_is_stored, "1.3"),
    "ends-at-an-update": Bug(_ends_at_an_update, "roll.0"),
    "ends-all-together": Bug(_ends_all_together, "shrink.0"),
    "leaves-gates-closed": Bug(replaced(of_groups, "gate_patches", lambda *_: ()), "come back.0"),
    "trusts-old-counts": Bug(plantedkeys.trusts_old_counts, "roll by key.0"),
    "names-tpu-hosts-after-pods": Bug(
        replaced(accelerators, "groupname", SimpleNamespace(host=meta.name)), "create by key.0"
    ),
    "draws-another-key": Bug(plantedkeys.draws_another_key, "create by key.0"),
    "waits-for-surplus": Bug(plantedkeys.waits_for_surplus, "fail beside surplus.0"),
    "lets-all-go-ahead": Bug(
        replaced(GroupReplacementPolicy, "waits_for_termination", property(lambda self: False)), "roll by key.0"
    ),
    "reports-a-wait-again": Bug(replaced(gatedleaders, "_replaced_group", lambda leader: ""), "end one by one.0"),
    "never-ends-an-update": Bug(plantedkeys.never_ends_an_update, "roll by key.0"),
    "builds-by-the-live-size": Bug(plantedkeys.builds_by_the_live_size, "resize by key.0"),
    "shrinks-between-two-steps": Bug(
        replaced(deploymentleaders, "deployment_replicas", lambda lws, *_: lws.spec.replicas), "roll and shrink.0"
    ),
    "never-counts": Bug(replaced(restartpolicy, "_count_restart", lambda group, new: ()), "exhaust.0"),
    "never-keeps": Bug(replaced(retention, "add_finalizer", lambda pods: ()), "exhaust.0"),
    "never-releases": Bug(replaced(retention, "remove_finalizer", lambda pods: ()), "exhaust.0"),
    "never-claims": Bug(
        replaced(failedgroups, "_assign_counts", lambda counts, admitted, owners: dict(counts)), "exhaust by key.0"
    ),
    "lets-the-partition-fall": Bug(plantedinplace.lets_the_partition_fall, "roll in place.0"),
    "marks-all-at-once": Bug(plantedinplace.marks_all_at_once, "roll in place.0"),
    "takes-updates-for-failures": Bug(replaced(inplacepods, "expected_restarts", lambda pod: {}), "roll in place.0"),
    "trusts-readiness-of-before": Bug(
        replaced(inplacepods, "is_update_complete", lambda pod: True), "grow beyond the nodes.0"
    ),
    "never-lets-go": Bug(plantedinplace.never_lets_go, "roll in place.0"),
    "resizes-nothing": Bug(
        replaced(inplaceresources, "missing_quantities", lambda pod, amounts: {}), "resize in place.0"
    ),
    "waits-for-what-no-node-has": Bug(
        replaced(inplaceresources, "rejection", lambda pod: ""), "grow beyond the nodes.0"
    ),
    "takes-a-name-for-its-object": Bug(plantedrevisions.takes_a_name_for_its_object, "roll refused.0"),
    "tolerates-nothing": Bug(replaced(allcontainers, "time_to_ready", lambda annotations: None), "restart in place.0"),
    "waits-for-ever": Bug(plantedrestarts.waits_for_ever, "restart in vain.0"),
    "never-sees-ready-pods": Bug(plantedrestarts.never_sees_ready_pods, "restart in place.0"),
    "moves-all-at-once": Bug(plantedmoves.moves_all_at_once, "moves2.1"),
    "never-moves": Bug(plantedmoves.never_moves, "moves2.2"),
    "forgets-who-is-away": Bug(plantedmoves.forgets_who_is_away, "moves2.1"),
    "leaves-pod-groups": Bug(
        replaced(preparation, "_delete_unused_pod_groups", lambda whole, needed: ()), "fail in gangs.0"
    ),
    "starts-with-the-first": Bug(plantedgangs.starts_with_the_first, "create gangs.0"),
    "asks-for-all-at-once": Bug(
        replaced(preparation, "_reachable_min_count", lambda whole, part: part.min_count), "resize the whole.0"
    ),
    "reuses-names": Bug(replaced(workloadnames, "with_incarnation", lambda name, request: name), "fail in gangs.0"),
    "compares-minima": Bug(plantedgangs.compares_minima, "resize gangs.0"),
    "serves-leaders-of-before": Bug(
        replaced(replicas, "_has_other_pod_group", lambda leader, begin, level: False), "replace gangs.0"
    ),
    "reports-own-objects": Bug(plantedgangs.reports_own_objects, "replace gangs.0"),
}
"""All planted bugs by name."""


@contextmanager
def bug(name: str | None) -> Iterator[None]:
    """Plant one bug for the duration of the `with` block, or no bug without a name."""
    with BUGS[name].plant() if name else nullcontext():
        yield
