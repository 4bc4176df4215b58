"""Calls each entry point of the core and each webhook for a `LargeSet`. The number of calls grows with its size.

`decisions()` finds the entry points by walking the core, so that one without a recipe here is noticed.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace
from tests import builders
from tests.decisions import reconcile as reconcile_set
from tests.property.growth.shapes import LargeSet

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Create, flatten
from leaderworkerset import capabilities, core
from leaderworkerset.api import labels
from leaderworkerset.capabilities import deciding, names
from leaderworkerset.capabilities.disruption import reconcile as disruption
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.lostnodes import forcedeletion
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.core.gang import gate
from leaderworkerset.core.gang.gangs import AUTO, PROVIDERS, Gangs
from leaderworkerset.core.leaderworkerset.decision import PreviousResults
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, describe
from leaderworkerset.core.policies.podedits import with_annotations
from leaderworkerset.core.policies.policy import DeniedError
from leaderworkerset.core.restarts import missingworkers
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import handlers, review

Recipe: TypeAlias = Callable[[LargeSet], object]

NOW: Final = builders.NOW
NATIVE, ALL = Gangs(default="native"), Gangs(default=AUTO, served=tuple(PROVIDERS))
SETS: Final = "core.disaggregatedset.reconcile.reconcile"
"""DisaggregatedSets have a separate test, `test_sets.py`."""


def decisions() -> set[str]:
    """Return the names of all core functions that reconcile an object of a kind."""
    packages = (core, capabilities)
    found = (
        one.name for package in packages for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    modules = [importlib.import_module(name) for name in found]
    return {
        module.__name__.removeprefix("leaderworkerset.") + ".reconcile"
        for module in modules
        if getattr(vars(module).get("reconcile"), "__module__", "") == module.__name__
    }


def or_denied(decide: Callable[[], object]) -> object:
    """Return the decision, or the message of the denial."""
    try:
        return decide()
    except DeniedError as denied:
        return str(denied)


def _sets(world: LargeSet) -> object:
    """Reconcile a LeaderWorkerSet in each state: observed, changed, new, unsupported, exhausted, updated."""
    seen = world.observed
    update = {"rollingUpdate": {"partition": 0}}
    helpless = world.statefulset | {"spec": world.statefulset["spec"] | {"updateStrategy": update}}
    records = [_record(index) for index in world.many("groups")]
    rolled = world.statefulset | {"status": {"currentRevision": "r1", "updateRevision": "r1"}}
    updated = [_updated(world, index) for index in world.many("groups")]
    observed = (
        seen,
        replace(seen, leaderworkerset=world.edited, known=PreviousResults(history=world.revisions)),
        replace(seen, leader_workload=None, revisions=(), groups={}),
        replace(seen, leader_workload=helpless),
        replace(seen, records=records),
        replace(
            seen,
            leader_workload=rolled,
            groups=builders.by_leader(updated),
            known=PreviousResults(history=world.revisions),
            records=records,
        ),
    )
    return [reconcile_set(one, NOW) for one in observed]


def _updated(world: LargeSet, index: int) -> GroupFacts:
    leader = builders.leader_pod(world.posted, index, key=world.key)
    return describe(leader, builders.worker_statefulset(leader, replicas=world.lws.size - 1))


def _record(index: int) -> JSONObject:
    annotations = {labels.RECREATION_STATE: "exhausted", labels.RECREATED_LEADER: f"uid-of-web-{index}"}
    return {
        "metadata": {
            "name": f"web-{index}-recreations",
            "labels": {labels.GROUP_INDEX: str(index)},
            "annotations": annotations,
        }
    }


def _groups(world: LargeSet) -> object:
    """Reconcile a failed group, a new group, a gang group, and a group with stuck pods on a lost node."""
    failed, new = world.observed_group, world.observed_new_group
    objects = replace(failed.objects, pods=[_lost(pod) for pod in failed.objects.pods])
    stuck = replace(failed, objects=objects, facts={names.LOST_NODES: timedelta()})
    return [
        deciding.reconcile_group(failed),
        deciding.reconcile_group(replace(failed, obj=_recreating(world.posted))),
        deciding.reconcile_group(new),
        deciding.reconcile_group(replace(new, leader=NATIVE.mark(world.leader, "r")), NATIVE),
        deciding.reconcile_group(replace(stuck, nodes=dict.fromkeys(forcedeletion.required_nodes(stuck)))),
        missingworkers.deleted_workers(
            missingworkers.CompletionTime("2099-01-01T00:00:00Z", "2099-01-01T00:00:00Z"),
            world.worker_sets[-1],
            world.workers,
        ),
    ]


def _recreating(obj: JSONObject) -> JSONObject:
    template = obj["spec"]["leaderWorkerTemplate"] | {"restartPolicy": "RecreateGroupOnPodRestart"}
    return obj | {"spec": obj["spec"] | {"leaderWorkerTemplate": template}}


def _lost(member: JSONObject) -> JSONObject:
    deleted = {"deletionTimestamp": "2026-03-01T11:00:00Z"}
    return member | {"metadata": member["metadata"] | deleted, "spec": member["spec"] | {"nodeName": "n"}}


def _evictions(world: LargeSet) -> object:
    """Reconcile the disruption budgets of all groups when they are new, all closed, and open."""
    obj = world.posted | {"metadata": world.posted["metadata"] | {"uid": "uid-of-web"}}
    leaders = [builders.leader_pod(world.posted, index, key=world.key) for index in world.many("groups")]
    bare = disruption.ObservedDisruption(obj=obj, leaders=leaders, budgets=(), groups_to_move=(), now=NOW)
    limited = DisruptionSettings(budget="50%", watches_nodes=False)
    made = [one.object for one in flatten(disruption.reconcile(bare, limited).actions) if isinstance(one, Create)]
    closed = [_observed_budget(one, one["spec"]["minAvailable"]) for one in made]
    opened = [_observed_budget(one, 0) for one in made]
    return [disruption.reconcile(replace(bare, budgets=some), limited) for some in (closed, opened)]


def _observed_budget(budget: JSONObject, least: int) -> JSONObject:
    status = {"observedGeneration": 1, "currentHealthy": budget["spec"]["minAvailable"]}
    metadata = budget["metadata"] | {"generation": 1, "uid": f"uid-of-{budget['metadata']['name']}"}
    return budget | {"metadata": metadata, "spec": budget["spec"] | {"minAvailable": least}, "status": status}


def _gate(world: LargeSet) -> object:
    """Reconcile every pod as a member of a group that waits for capacity on a node."""
    group = {labels.GANG_GROUP: "g", labels.SIZE: str(len(world.observed_group.objects.pods))}
    pods = [gate._link(with_annotations(one, group), "g") for one in world.observed_group.objects.pods]
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"pods": str(len(pods))}}}
    return gate.reconcile(gate.ObservedCluster(nodes=[node], used={}, unbound=pods, members=pods))


def _answers(path: str) -> Recipe:
    """Return the webhook requests for a changed LeaderWorkerSet, a new leader and a new worker."""
    return lambda world: [
        review.respond_to_review(body, MANAGED.decisions[path])
        for body in (world.body, *(_question(member) for member in (world.leader, world.worker, in_subgroups(world))))
    ]


def _question(created: JSONObject) -> bytes:
    request = {"uid": "u", "operation": "CREATE", "object": created}
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def in_subgroups(world: LargeSet) -> JSONObject:
    """Return the worker as a member of a group whose subgroups have one pod."""
    return with_annotations(world.worker, {labels.SUBGROUP_SIZE: "1", labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "rack"})


def _gangs(world: LargeSet) -> object:
    """Process a LeaderWorkerSet and a pod with every supported gang scheduler."""
    return [
        or_denied(partial(handlers.validate_leaderworkerset, world.review, ALL)),
        or_denied(partial(handlers.mutate_pod, world.review_of(world.leader), ALL)),
    ]


def _policy(_world: LargeSet) -> object:
    """Restore a missing policy. Its size does not depend on any set."""
    configuration = {"metadata": {"name": "webhooks", "uid": "1"}}
    return podpolicy.reconcile(podpolicy.build(), dict.fromkeys(podpolicy.KINDS), configuration)


RECIPES: Final[Mapping[str, Recipe]] = {
    "core.admission.podpolicy.reconcile": _policy,
    "capabilities.disruption.reconcile.reconcile": _evictions,
    "core.gang.gate.reconcile": _gate,
    "core.leaderworkerset.reconcile.reconcile": _sets,
    "core.pod.reconcile.reconcile": _groups,
    "webhooks.handlers with gang schedulers": _gangs,
    **{path: _answers(path) for path in MANAGED.decisions},
}
