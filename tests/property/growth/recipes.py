"""How each public function of the core, and of the admission webhooks, is called in a `World`.

`functions()` finds them by walking the packages, so that one without a recipe here is noticed.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from types import ModuleType
from typing import Final, TypeAlias

from tests import builders
from tests.property.growth.restarts import GIVEN_UP, RESTARTS
from tests.property.growth.shapes import World

from kuberuntime.objects import meta
from leaderworkerset import core
from leaderworkerset.api import labels
from leaderworkerset.api.conditions import AVAILABLE
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.core import decisionevents
from leaderworkerset.core.admission import leaderworkerset as admission
from leaderworkerset.core.admission import pod as pod_admission
from leaderworkerset.core.admission import queueing
from leaderworkerset.core.denial import DeniedError
from leaderworkerset.core.gang import builtin, coscheduling, demand, fit, gate, native, provider, volcano
from leaderworkerset.core.gang.gangs import AUTO, PROVIDERS, Gangs
from leaderworkerset.core.leaderworkerset import (
    budget,
    edition,
    fold,
    groupfacts,
    reconcile,
    revisionhistory,
    revisions,
    rollingupdate,
    services,
    statefulsets,
    status,
    templates,
)
from leaderworkerset.core.pod import reconcile as pod_reconcile
from leaderworkerset.core.pod import statefulset
from leaderworkerset.core.policies import (
    accelerators,
    affinity,
    edits,
    environment,
    exclusive,
    failures,
    gang,
    identity,
    numbers,
    policy,
    recreation,
    restartpolicy,
    startup,
    subdomain,
    subgroups,
)
from leaderworkerset.core.policies.accelerators import Slice
from leaderworkerset.core.restarts import failure
from leaderworkerset.core.restarts.settings import DEFAULTS
from leaderworkerset.kinds.managed import MANAGED
from leaderworkerset.webhooks import handlers, review

Recipe: TypeAlias = Callable[[World], object]

NOW = builders.NOW
WEBHOOKS: Final = ("leaderworkerset.webhooks.handlers", "leaderworkerset.webhooks.review")


SETS: Final = (
    "core.disaggregatedset.",
    "core.admission.disaggregatedset.",
    "webhooks.handlers.validate_disaggregatedset",
)
"""DisaggregatedSets have a world of their own: `test_sets.py`."""


def functions() -> set[str]:
    """Return the names of all public functions, methods and properties, but for those of DisaggregatedSets."""
    packages = pkgutil.walk_packages(core.__path__, f"{core.__name__}.")
    modules = [importlib.import_module(name) for name in (*(found.name for found in packages), *WEBHOOKS)]
    return {name for module in modules for name in _public(module) if not name.startswith(SETS)}


def _public(module: ModuleType) -> Iterator[str]:
    prefix = module.__name__.removeprefix("leaderworkerset.")
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield f"{prefix}.{name}"
        elif inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            members = [member for member, what in vars(value).items() if _is_written(what)]
            yield from (f"{prefix}.{name}.{member}" for member in members if not member.startswith("_"))


def _is_written(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, property | staticmethod | classmethod)


def or_denied(decide: Callable[[], object]) -> object:
    """Return what is decided, or the text of the denial."""
    try:
        return decide()
    except DeniedError as denied:
        return str(denied)


def _each(ask: Callable[[groupfacts.GroupFacts], object]) -> Recipe:
    return lambda world: [ask(group) for group in world.groups]


def _edit_containers(world: World) -> object:
    numbers_ = count()
    return edits.with_each_container(world.leader, lambda container: container | {"number": next(numbers_)})


def _variables(world: World) -> object:
    text = ",".join(str(i) for i in world.many("pods"))
    ports = tuple(str(i) for i in world.many("accelerators"))
    made = Slice(name="web-0", hostnames=text, addresses=text, ports=ports, first_id=0)
    return [made.variables(process) for process in range(len(ports))]


def _built_template(world: World) -> object:
    return templates.build_pod_template(
        world.template, path="spec", own_labels=world.labels, own_annotations=world.labels
    )


def _recreation(world: World) -> recreation.Recreation:
    return recreation.following(None, world.leader, failure.describe(world.worker), DEFAULTS, NOW)


def _answer(path: str) -> Recipe:
    return lambda world: review.answer(world.body, MANAGED.decisions[path])


ADMISSION: Final[Mapping[str, Recipe]] = {
    "leaderworkerset.default_leaderworkerset": lambda w: admission.default_leaderworkerset(w.posted),
    "leaderworkerset.validate_leaderworkerset": lambda w: list(
        map(str, admission.validate_leaderworkerset(w.lws, decode(w.edited)))
    ),
    "leaderworkerset.null_subdomain": lambda w: list(admission.null_subdomain(w.posted)),
    "queueing.warnings": lambda w: queueing.warnings(w.lws),
    "pod.admit_pod": lambda w: [
        or_denied(partial(pod_admission.admit_pod, w.leader)),
        or_denied(partial(pod_admission.admit_pod, w.worker)),
    ],
}


def _in_subgroups(pod: meta.JSONObject) -> meta.JSONObject:
    """Return the pod as that of a group with subgroups of one."""
    metadata = pod["metadata"]
    added = {labels.SUBGROUP_SIZE: "1", labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "rack"}
    return pod | {"metadata": metadata | {"annotations": metadata["annotations"] | added}}


DECISIONS: Final[Mapping[str, Recipe]] = {
    "edition.Edition.of": lambda w: edition.Edition.of(w.posted, w.revision),
    "edition.Identity.of": lambda w: edition.Identity.of(w.statefulset),
    "fold.Folded.of": _each(fold.Folded.of),
    "fold.Folded.available": lambda w: w.folded.available(2),
    "fold.Folded.ready": lambda w: w.folded.ready(2),
    "fold.Folded.updated": lambda w: w.folded.updated(2, w.key),
    "fold.Folded.without_workers": lambda w: w.folded.without_workers(2),
    "fold.Folded.whole": lambda w: w.folded.whole(2),
    "fold.below": lambda w: fold.below(w.folded.members, w.lws.spec.replicas),
    "fold.highest": lambda w: list(fold.highest(w.folded.members)),
    "fold.fold": lambda w: fold.fold(w.groups, "web"),
    "fold.Groups.put": _each(lambda group: fold.Groups("web").put(group.leader, group)),
    "fold.Groups.folded": lambda w: fold.Groups("web").folded(),
    "fold.regular_index": _each(lambda group: fold.regular_index(group, "web", fold.FEWEST)),
    "groupfacts.describe": lambda w: groupfacts.describe(w.leader, w.worker_sets[-1]),
    "groupfacts.describe_workers": lambda w: groupfacts.describe_workers(w.statefulset),
    "groupfacts.own_size": lambda w: groupfacts.own_size(w.leader),
    "groupfacts.is_pod_ready": lambda w: groupfacts.is_pod_ready(w.leader),
    "groupfacts.is_of_one_revision": lambda w: groupfacts.is_of_one_revision(w.statefulset),
    "groupfacts.is_statefulset_ready": lambda w: groupfacts.is_statefulset_ready(w.statefulset),
    "revisionhistory.key_of": lambda w: revisionhistory.key_of(w.revision),
    "revisionhistory.limit": lambda w: revisionhistory.limit(w.posted),
    "revisionhistory.newest": lambda w: revisionhistory.newest(w.revisions, w.key, 10),
    "revisionhistory.selector": lambda _: revisionhistory.selector("web"),
    "revisionhistory.settle": lambda w: revisionhistory.settle(w.posted, w.key, w.revisions, w.revisions),
    "reconcile.decide": lambda w: reconcile.decide(w.observed, NOW),
    "reconcile.reconcile": lambda w: reconcile.reconcile(w.observed, NOW),
    "rollingupdate.choose": lambda w: rollingupdate.choose(
        _helpless(w.statefulset), w.folded, limits=w.limits, size=w.lws.size, key=w.key
    ),
    "rollingupdate.needs_help": lambda w: rollingupdate.needs_help(w.statefulset),
    "revisions.Resolution.found": lambda w: revisions.Resolution.found(w.revision, w.posted, 7),
    "revisions.Resolution.made": lambda w: revisions.Resolution.made(w.posted, w.data, 1),
    "revisions.build": lambda w: revisions.build(w.posted, key=w.key, number=1, data=w.data),
    "revisions.build_content": lambda w: revisions.build_content(w.posted),
    "revisions.build_data": lambda w: revisions.build_data(w.posted),
    "revisions.change_cause": lambda w: revisions.change_cause(w.posted),
    "revisions.correction": lambda w: revisions.correction(w.revision, w.posted, 7),
    "revisions.content_hash": lambda w: revisions.content_hash(w.data),
    "revisions.encode": lambda w: revisions.encode(w.revision, w.data),
    "revisions.find": lambda w: revisions.find(w.revisions, w.key),
    "revisions.has_content": lambda w: revisions.has_content(w.revision, w.edited, revisions.build_data(w.edited)),
    "revisions.key_of": lambda w: revisions.key_of(w.revision),
    "revisions.next_number": lambda w: revisions.next_number(w.revisions),
    "revisions.number_of": lambda w: revisions.number_of(w.revision),
    "revisions.outdated": lambda w: revisions.outdated(w.revisions, w.key),
    "revisions.owned": lambda w: revisions.owned(w.revisions, w.posted),
    "revisions.resolve": lambda w: revisions.resolve(w.edited, w.statefulset, w.revisions),
    "revisions.restore": lambda w: revisions.restore(w.posted, w.revision),
    "budget.Budget.burst": lambda w: w.limits.burst,
    "budget.Budget.max_unavailable": lambda w: w.limits.max_unavailable,
    "budget.Budget.replicas_needed": lambda w: w.limits.replicas_needed(1),
    "fold.States.of": lambda w: fold.States.of({i: fold.GroupState(True, False) for i in range(len(w.groups))}),
    "budget.read": lambda w: budget.read(w.lws.spec),
    "rollingupdate.count_unready": lambda w: rollingupdate.count_unready(w.states, w.lws.spec.replicas),
    "rollingupdate.next_step": lambda w: rollingupdate.next_step(
        w.limits, rollingupdate.Current(w.lws.spec.replicas, 2, str(w.lws.spec.replicas)), w.states
    ),
    "rollingupdate.wait": lambda w: rollingupdate.wait(
        rollingupdate.RolloutStep(rollingupdate.Case.ROLLING, 1, len(w.groups)),
        rollingupdate.Current(len(w.groups), 2, ""),
    ),
    "rollingupdate.rolling_partition": lambda w: rollingupdate.rolling_partition(
        w.limits, rollingupdate.Current(w.lws.spec.replicas, w.lws.spec.replicas, ""), w.states
    ),
    "fold.Folded.states": lambda w: w.folded.states(w.lws.size, w.key),
    "rollingupdate.CaseFacts.needed": lambda w: (
        rollingupdate.CaseFacts(w.limits, rollingupdate.position(w.statefulset), w.states, True, False).needed
    ),
    "rollingupdate.advance": lambda w: rollingupdate.advance(
        w.lws, w.statefulset, w.folded, revisions.Resolution(w.key)
    ),
    "services.build_for_group": lambda w: services.build_for_group(w.leader, "web"),
    "services.build_shared": lambda w: services.build_shared(w.posted),
    "statefulsets.build": lambda w: statefulsets.build(w.posted, w.lws, key=w.key, limits=w.limits, step=w.step),
    "rollingupdate.is_behind": lambda w: rollingupdate.is_behind(w.statefulset),
    "rollingupdate.may_create_older": lambda w: rollingupdate.may_create_older(w.statefulset, w.key),
    "rollingupdate.position": lambda w: rollingupdate.position(w.statefulset),
    "status.assess": lambda w: status.assess(w.lws, w.statefulset, w.folded, w.key, NOW),
    "status.build": lambda w: status.build(w.lws, w.statefulset, status.Counts(), NOW),
    "status.choose": lambda w: status.choose(w.lws, status.Counts()),
    "status.count": lambda w: status.count(w.lws, w.folded, w.key),
    "status.event_note": lambda w: status.event_note(w.lws, w.lws.status, AVAILABLE),
    "status.is_update_done": lambda w: status.is_update_done(w.lws, status.Counts()),
    "status.set_true": lambda w: status.set_true(w.lws.status.conditions, AVAILABLE, 1, NOW),
    "templates.build_pod_template": _built_template,
    "templates.claim_fields": lambda w: templates.claim_fields(w.lws.spec.leader_worker_template, "default"),
    "templates.group_annotations": lambda w: templates.group_annotations(
        w.lws.spec.leader_worker_template, w.lws.annotations
    ),
}


def _helpless(live: meta.JSONObject) -> meta.JSONObject:
    """Return a leader StatefulSet of a cluster that does not know `maxUnavailable`."""
    return live | {"spec": live["spec"] | {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}


PODS: Final[Mapping[str, Recipe]] = {
    "reconcile.is_leader": lambda w: pod_reconcile.is_leader(w.leader),
    "reconcile.reconcile": lambda w: [
        pod_reconcile.reconcile(w.observed_group),
        pod_reconcile.reconcile(w.observed_new_group),
    ],
    "reconcile.require_labels": lambda w: pod_reconcile.require_labels(w.leader),
    "reconcile.wants_lost_nodes": lambda w: pod_reconcile.wants_lost_nodes(w.observed_group),
    "reconcile.wants_node": lambda w: pod_reconcile.wants_node(w.observed_group),
    "statefulset.build": lambda w: statefulset.build(w.lws, w.lws, w.leader, {"rack": "r1"}),
}

LEADER: Final = policy.Member(size=2, worker_index=0, is_leader=True)


def _made(world: World) -> policy.Template:
    return policy.Template(world.lws.spec.leader_worker_template, world.lws.annotations)


def _live(world: World) -> policy.LiveGroup:
    seen = world.observed_group
    return policy.LiveGroup(
        obj=world.posted,
        leader=world.leader,
        now=NOW,
        pods=seen.pods,
        statefulsets=seen.statefulsets,
        node=world.node,
    )


POLICIES: Final[Mapping[str, Recipe]] = {
    "accelerators.Slice.variables": _variables,
    "accelerators.inject": lambda w: or_denied(partial(accelerators.inject, w.leader, size=w.lws.size, is_leader=True)),
    "accelerators.requests_tpus": lambda w: accelerators.requests_tpus(w.leader["spec"]),
    "affinity.with_exclusive_terms": lambda w: affinity.with_exclusive_terms(
        w.leader, key="k", value="v", topology_key="other"
    ),
    "edits.environment": lambda w: edits.environment(w.leader["spec"]["containers"][0]),
    "edits.with_annotations": lambda w: edits.with_annotations(w.leader, w.labels),
    "edits.with_each_container": _edit_containers,
    "edits.with_labels": lambda w: edits.with_labels(w.leader, w.labels),
    "edits.with_spec": lambda w: edits.with_spec(w.leader, {"subdomain": w.text}),
    "environment.build_variables": lambda w: environment.build_variables(w.leader),
    "environment.inject": lambda w: environment.inject(w.leader),
    "numbers.read_annotation": lambda w: numbers.read_annotation(w.leader, labels.SIZE),
    "numbers.read_label": lambda w: or_denied(
        partial(numbers.read_label, {"metadata": {"labels": {"n": "1" * len(w.text)}}}, "n")
    ),
    "identity.group_hash": lambda w: identity.group_hash(w.text),
    "subgroups.join_as_leader": lambda w: subgroups.join_as_leader(_in_subgroups(w.leader)),
    "subgroups.join_as_worker": lambda w: subgroups.join_as_worker(
        _in_subgroups(w.worker), size=w.lws.size, worker_index=w.lws.size - 1
    ),
    "subgroups.subgroup_index": lambda w: subgroups.subgroup_index(w.lws.size, 2, w.lws.size - 1),
    "exclusive.is_exclusive": lambda w: exclusive.is_exclusive(w.lws),
    "exclusive.node_name": lambda w: exclusive.node_name(w.leader),
    "exclusive.node_selector": lambda w: exclusive.node_selector(w.lws, w.leader, w.node),
    "recreation.build": lambda w: recreation.build(w.posted, w.leader, _recreation(w)),
    "recreation.Recreation.again": lambda w: _recreation(w).again(DEFAULTS, NOW),
    "recreation.following": _recreation,
    "recreation.read": lambda w: recreation.read(recreation.build(w.posted, w.leader, _recreation(w))),
    "recreation.record_name": lambda w: recreation.record_name(w.leader),
    "failures.failed_pod": lambda w: failures.failed_pod(w.lws, w.members),
    "failures.has_failed": lambda w: failures.has_failed(w.leader),
    "failures.is_active": lambda w: failures.is_active(w.lws),
    "failures.waits_for_start": lambda w: failures.waits_for_start(w.lws),
    "accelerators.admit": lambda w: or_denied(partial(accelerators.admit, w.leader, LEADER)),
    "edits.non_empty": lambda w: edits.non_empty(w.labels, "absent"),
    "environment.admit": lambda w: environment.admit(w.leader, LEADER),
    "exclusive.admit": lambda w: exclusive.admit(w.leader, LEADER),
    "exclusive.annotations": lambda w: exclusive.annotations(_made(w)),
    "exclusive.decide": lambda w: exclusive.decide(_live(w)),
    "gang.NoGang.decide": lambda w: gang.NO_GANG.decide(_gang_group(w)),
    "gang.NoGang.errors": lambda w: gang.NO_GANG.errors(w.lws, None),
    "gang.NoGang.mark": lambda w: gang.NO_GANG.mark(w.leader, "r"),
    "gang.NoGang.opens_gates": lambda _: gang.NO_GANG.opens_gates,
    "gang.NoGang.outdated": lambda w: gang.NO_GANG.outdated((), ()),
    "gang.NoGang.resources": lambda _: gang.NO_GANG.resources,
    "gang.annotations": lambda w: gang.annotations(_made(w)),
    "gang.inherited": lambda w: gang.inherited(w.leader),
    "gang.members_to_start": lambda w: gang.members_to_start(w.lws),
    "identity.admit": lambda w: identity.admit(w.leader, LEADER),
    "identity.annotations": lambda w: identity.annotations(_made(w)),
    "identity.ordinal": lambda w: identity.ordinal(w.leader),
    "policy.add_nothing": lambda w: policy.add_nothing(_made(w)),
    "policy.keep_pod": lambda w: policy.keep_pod(w.leader, LEADER),
    "restartpolicy.decide": lambda w: restartpolicy.decide(_live(w)),
    "startup.decide": lambda w: startup.decide(_live(w)),
    "subdomain.admit": lambda w: subdomain.admit(w.leader, LEADER),
    "subgroups.admit": lambda w: subgroups.admit(_in_subgroups(w.leader), LEADER),
    "subgroups.annotations": lambda w: subgroups.annotations(_made(w)),
}


def _marked(world: World) -> meta.JSONObject:
    return NATIVE.mark(world.leader, "r")


def _gang_group(world: World) -> gang.GangGroup:
    return gang.GangGroup(_live(world), world.lws)


def _nodes(world: World) -> fit.FreeSpace:
    return fit.free_space(
        [{"metadata": {"name": "n"}, "status": {"allocatable": {"pods": str(len(world.members.pods))}}}], {}
    )


def _gated(world: World) -> gate.ObservedCluster:
    """Return every pod as one of a group that waits."""
    pods = [builtin.link(edits.with_annotations(pod, {labels.GANG_GROUP: "g"}), "g") for pod in world.members.pods]
    return gate.ObservedCluster(nodes=[], used={}, unbound=pods, members=pods)


NATIVE, ALL = Gangs(default="native"), Gangs(default=AUTO, served=tuple(PROVIDERS))

GANG: Final[Mapping[str, Recipe]] = {
    "builtin.errors": lambda w: builtin.errors(w.lws),
    "builtin.is_taken": lambda w: builtin.is_taken(w.leader),
    "builtin.link": lambda w: builtin.link(w.leader, "g"),
    "builtin.suits": lambda w: builtin.suits(w.leader),
    "coscheduling.alike": lambda w: coscheduling.alike(w.lws, coscheduling.ALIKE, "some"),
    "coscheduling.build": lambda w: coscheduling.build(_gang_group(w), "g"),
    "coscheduling.errors": lambda w: coscheduling.errors(w.lws),
    "coscheduling.is_taken": lambda w: coscheduling.is_taken(w.leader),
    "coscheduling.link": lambda w: coscheduling.link(w.leader, "g"),
    "coscheduling.suits": lambda w: coscheduling.suits(w.leader),
    "demand.add": lambda w: demand.add(demand.of_pod(w.leader["spec"])),
    "demand.encode": lambda w: demand.encode(demand.of_group(w.lws)),
    "demand.largest": lambda w: demand.largest(demand.of_pod(w.leader["spec"]), {}),
    "demand.of_group": lambda w: demand.of_group(w.lws),
    "demand.of_pod": lambda w: demand.of_pod(w.leader["spec"]),
    "fit.FreeSpace.place": lambda w: _nodes(w).place(fit.count_needs(w.members.pods)),
    "fit.count_needs": lambda w: fit.count_needs(w.members.pods),
    "fit.read_need": lambda w: fit.read_need(w.leader),
    "fit.read_requests": lambda w: fit.read_requests(w.leader),
    "fit.free_space": _nodes,
    "gangs.Gangs.decide": lambda w: NATIVE.decide(gang.GangGroup(replace(_live(w), leader=_marked(w)), w.lws)),
    "gangs.Gangs.errors": lambda w: ALL.errors(w.lws, None),
    "gangs.Gangs.mark": _marked,
    "gangs.Gangs.opens_gates": lambda _: ALL.opens_gates,
    "gangs.Gangs.outdated": lambda w: NATIVE.outdated(native.build_shared(_gang_group(w)), ()),
    "gangs.Gangs.providers": lambda _: ALL.providers,
    "gangs.Gangs.resources": lambda _: ALL.resources,
    "gate.group_name": lambda w: gate.group_name(w.leader),
    "gate.is_gated": lambda w: gate.is_gated(w.leader),
    "gate.reconcile": lambda w: gate.reconcile(_gated(w)),
    "native.build": lambda w: native.build(_gang_group(w), "g"),
    "native.build_shared": lambda w: native.build_shared(_gang_group(w)),
    "native.errors": lambda w: native.errors(w.lws),
    "native.is_taken": lambda w: native.is_taken(w.leader),
    "native.link": lambda w: native.link(w.leader, "g"),
    "native.suits": lambda w: native.suits(w.leader),
    "provider.Provider.edition": lambda _: PROVIDERS["native"].edition(()),
    "provider.Provider.editions": lambda _: PROVIDERS["native"].editions,
    "provider.Provider.group_objects": lambda _: PROVIDERS["native"].group_objects,
    "provider.Provider.resources": lambda _: PROVIDERS["native"].resources,
    "provider.accept": lambda w: provider.accept(w.lws),
    "provider.group_metadata": lambda w: provider.group_metadata(_gang_group(w), "g"),
    "provider.no_object": lambda w: provider.no_object(_gang_group(w), "g"),
    "provider.no_objects": lambda w: provider.no_objects(_gang_group(w)),
    "provider.refuse_awaiting": lambda w: provider.refuse_awaiting(w.lws, "some"),
    "provider.scheduler_name": lambda w: provider.scheduler_name(w.leader["spec"]),
    "provider.templates": lambda w: list(provider.templates(w.lws)),
    "volcano.build": lambda w: volcano.build(_gang_group(w), "g"),
    "volcano.link": lambda w: volcano.link(w.leader, "g"),
    "volcano.suits": lambda w: volcano.suits(w.leader),
}

EVENTS: Final[Mapping[str, Recipe]] = {
    "decisionevents.backing_off": lambda w: decisionevents.backing_off(w.posted, w.leader, w.text),
    "decisionevents.condition_changed": lambda w: decisionevents.condition_changed(w.posted, "R", w.text),
    "decisionevents.created": lambda w: decisionevents.created(w.posted, w.text, w.leader),
    "decisionevents.creating_revision": lambda w: decisionevents.creating_revision(w.posted, w.revision, w.text),
    "decisionevents.deleting_surge": lambda w: decisionevents.deleting_surge(w.posted, w.text),
    "decisionevents.failed_create": lambda w: decisionevents.failed_create(w.posted, w.text, w.leader),
    "decisionevents.failed_update": lambda w: decisionevents.failed_update(w.posted, w.text),
    "decisionevents.ignored": lambda w: decisionevents.ignored(w.leader, w.posted),
    "decisionevents.recreating_group": lambda w: decisionevents.recreating_group(w.posted, w.leader, w.text),
    "decisionevents.reference": lambda w: decisionevents.reference(w.posted),
    "decisionevents.replacing_group": lambda w: decisionevents.replacing_group(w.posted, w.text),
    "decisionevents.releasing_lost_pod": lambda w: decisionevents.releasing_lost_pod(w.posted, w.leader, w.text),
    "decisionevents.restarts_exhausted": lambda w: decisionevents.restarts_exhausted(w.posted, w.leader, w.text),
    "decisionevents.waiting_for_lost_pod": lambda w: decisionevents.waiting_for_lost_pod(w.posted, w.leader, w.text),
    "decisionevents.updating": lambda w: decisionevents.updating(w.posted, w.text),
}

WEBHOOK: Final[Mapping[str, Recipe]] = {
    "handlers.allow": lambda w: handlers.allow(w.review),
    "handlers.mutate_leaderworkerset": lambda w: handlers.mutate_leaderworkerset(w.review),
    "handlers.leaderworkerset_webhooks": lambda _: len(handlers.leaderworkerset_webhooks(lambda: ALL)),
    "handlers.mutate_pod": lambda w: or_denied(partial(handlers.mutate_pod, w.review_of(w.leader), ALL)),
    "handlers.pod_webhooks": lambda _: len(handlers.pod_webhooks(lambda: ALL)),
    "handlers.validate_leaderworkerset": lambda w: or_denied(partial(handlers.validate_leaderworkerset, w.review, ALL)),
    "review.answer": lambda w: [_answer(path)(w) for path in MANAGED.decisions],
    "review.decode": lambda w: review.decode(w.body),
    "review.encode": lambda w: review.encode(w.posted),
    "review.failed": lambda w: review.failed(w.body, "broken"),
}

RECIPES: Final[Mapping[str, Recipe]] = {
    f"{package}.{name}": recipe
    for package, recipes in (
        ("core.admission", ADMISSION),
        ("core.gang", GANG),
        ("core.leaderworkerset", DECISIONS),
        ("core.leaderworkerset", GIVEN_UP),
        ("core.pod", PODS),
        ("core.policies", POLICIES),
        ("core.restarts", RESTARTS),
        ("core", EVENTS),
        ("webhooks", WEBHOOK),
    )
    for name, recipe in recipes.items()
}
