"""Causes in the manager and its dependencies: changes that no controller acts on. Pure."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, resources, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import reading, revisions
from leaderworkerset.diagnosis.finding import Finding, Subject, cause
from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.diagnosis.ranks import quote
from leaderworkerset.views.events.warningevents import LONGEST_SILENCE
from leaderworkerset.views.groups import NOT_CREATED
from leaderworkerset.views.wording import duration

SILENCE: Final = timedelta(seconds=10)
"""The time that a controller may take before it counts as silent; usually it takes a fraction of a second."""

BUSY: Final = timedelta(minutes=1)
"""The time that the StatefulSet controller may take: after many failed syncs it retries late."""

BRIEF: Final = timedelta(seconds=3)
"""The time for which a finalizer may block a deletion before it is reported."""

OWN_FINALIZERS: Final = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers that the garbage collector removes by itself."""


def own(observed: Observed) -> Subject:
    """Return the LeaderWorkerSet or DisaggregatedSet as a subject."""
    return Subject(kind="DisaggregatedSet" if observed.of_set else "LeaderWorkerSet", name=observed.view.name)


@cause(
    code="LWS-E001",
    title="a finalizer blocks the deletion",
    meaning="The LeaderWorkerSet is being deleted, and a finalizer of another component blocks that.",
    remedy="Find out which component removes that finalizer, and why it does not. Remove the finalizer yourself only if that component was removed permanently.",
)
def held_by_finalizer(observed: Observed) -> Finding | None:
    """Find a LeaderWorkerSet whose deletion only a finalizer of another component blocks."""
    obj = observed.view.object
    finalizers = [name for name in meta.metadata(obj).get("finalizers") or [] if name not in OWN_FINALIZERS]
    since = observed.since(meta.metadata(obj).get("deletionTimestamp"))
    if since is None or since < BRIEF or not finalizers:
        return None
    names = ", ".join(finalizers)
    return Finding(
        subject=own(observed),
        sentence=f"{observed.view.name} has been terminating for {duration(since)}, blocked by finalizer {names}",
        evidence=(f"metadata.finalizers: {names}",),
        steps=(f"find out which component removes {names}, and why it does not",),
    )


@cause(
    code="LWS-E056",
    title="a field cannot be read",
    meaning="The manager cannot read a field or an annotation of the LeaderWorkerSet, or a label of a leader pod. It changes nothing until it can, and tries again.",
    remedy="Correct the field. An annotation or label that the manager writes can be removed: counts of restarts then begin at 0.",
)
def field_is_unreadable(observed: Observed) -> Finding | None:
    """Find a field that the manager cannot read, in the object itself or in the manager's event."""
    view = observed.view
    if observed.of_set is not None or meta.is_deleting(view.object):
        return None
    why, evidence = reading.unreadable(view.object), "the object as stored"
    if not why:
        warnings = observed.warnings.about(view.namespace, "LeaderWorkerSet", view.name)
        events = [warning for warning in warnings if warning.reason == decisionevents.unreadable.reason]
        newest = max(events, key=lambda event: event.last, default=None)
        if newest is None or newest.uid != meta.uid(view.object) or observed.now - newest.last > LONGEST_SILENCE:
            return None
        why, evidence = newest.message, f"event {newest.reason} of LeaderWorkerSet {view.name}"
    return Finding(
        subject=own(observed),
        sentence=f"the manager does not act on {view.name}: {quote(why)}",
        evidence=(evidence,),
        steps=("correct the field, or remove the annotation",),
    )


def last_change(obj: JSONObject) -> str:
    """Return when the spec was last written or scaled, by the managed fields; otherwise the creation time."""
    entries = meta.metadata(obj).get("managedFields") or []
    times = [str(entry.get("time") or "") for entry in entries if entry.get("subresource") != "status"]
    return max([*times, meta.created(obj)])


def unobserved_for(observed: Observed) -> timedelta | None:
    """Return how long the manager has not acted on the newest spec; None if it has, or may still do so."""
    obj = observed.view.object
    if meta.is_deleting(obj) or meta.is_observed(obj) or not observed.knows(resources.CORE_EVENTS):
        return None
    changed = last_change(obj)
    warnings = observed.warnings.about(observed.view.namespace, own(observed).kind, observed.view.name)
    if any(timestamps.render(warning.last) >= changed for warning in warnings if warning.reason != "BackOff"):
        return None
    since = observed.since(changed)
    return since if since is not None and since >= SILENCE else None


class Undone(Struct, frozen=True):
    """An action that a running manager would have taken by now: a sentence and its evidence."""

    sentence: str
    evidence: str


def unacted(observed: Observed) -> Undone | None:
    """Return the newest spec if no controller acted on it."""
    silence = unobserved_for(observed)
    if silence is None:
        return None
    obj = observed.view.object
    observed_generation = meta.status(obj).get("observedGeneration", 0)
    return Undone(
        f"the newest spec of {observed.view.name} has not been acted on for {duration(silence)}",
        f"metadata.generation {meta.generation(obj)}, status.observedGeneration {observed_generation}",
    )


def unmade(observed: Observed) -> Undone | None:
    """Return the workers of a group that were not created, although their leader runs."""
    if not observed.knows(resources.STATEFULSETS) or meta.is_deleting(observed.view.object):
        return None
    for group in observed.view.groups:
        leader = group.leader if group.leader and group.leader.node else None
        missing = any(rank.index and rank.object is None and rank.why == NOT_CREATED for rank in group.ranks)
        age = observed.since(leader.created) if leader else None
        if leader is None or not missing or age is None or age < BUSY:
            continue
        if groupname.find_workers(leader.object or {}, observed.get(resources.STATEFULSETS)) is None:
            sentence = f"the workers of group {group.name} have not been created for {duration(age)}"
            name = groupname.host(leader.object or {})
            return Undone(sentence, f"leader {leader.pod} has a node, and there is no StatefulSet {name}")
    return None


def _silent(observed: Observed, undone: Undone, why: str, evidence: tuple[str, ...]) -> Finding:
    return Finding(
        subject=own(observed),
        sentence=f"{why}: {undone.sentence}",
        evidence=(undone.evidence, *evidence),
        steps=(
            f"{observed.commands.lws} doctor",
            f"{observed.plain_kubectl} get deployments,pods -A -l control-plane=controller-manager",
        ),
    )


@cause(
    code="LWS-E003",
    title="the manager does not run",
    meaning="The Deployment of the manager has no ready replica, so nothing happens to LeaderWorkerSets.",
    remedy="Check the pods of the manager: why they do not start, or why they are not ready.",
)
def manager_is_down(observed: Observed) -> Finding | None:
    """Find a manager whose Deployment has no ready replica."""
    undone = unacted(observed) or unmade(observed)
    if undone is None:
        return None
    for deployment in observed.get(resources.DEPLOYMENTS):
        if not meta.status(deployment).get("readyReplicas"):
            replicas = meta.spec(deployment).get("replicas", 1)
            evidence = (f"Deployment {meta.key(deployment)}: 0 of {replicas} replicas ready",)
            return _silent(observed, undone, "the manager does not run", evidence)
    return None


def lease_state(lease: JSONObject, observed: Observed) -> str:
    """Return why a lease has no leader; empty if it is held."""
    spec = meta.spec(lease)
    holder = str(spec.get("holderIdentity") or "")
    if not holder:
        return f"Lease {meta.key(lease)} has no holder"
    age = observed.since(spec.get("renewTime"))
    if age is not None and age > timedelta(seconds=int(spec.get("leaseDurationSeconds") or 0)):
        return f"Lease {meta.key(lease)} of {holder} has not been renewed for {duration(age)}"
    return ""


@cause(
    code="LWS-E004",
    title="no manager is the leader",
    meaning="Replicas elect the active replica by a Lease, and the Lease has no holder.",
    remedy="Read the logs of the manager: whether it reaches the API server and may write the Lease.",
)
def nobody_leads(observed: Observed) -> Finding | None:
    """Find a lease without a holder, which means that no replica of the manager acts."""
    undone = unacted(observed) or unmade(observed)
    leases = observed.get(resources.LEASES)
    states = [lease_state(lease, observed) for lease in leases]
    if undone is None or not leases or not all(states):
        return None
    return _silent(observed, undone, "no manager is the leader", tuple(states))


@cause(
    code="LWS-E005",
    title="no manager acts on the newest spec",
    meaning="The spec was changed a while ago, and nothing observed the change.",
    remedy="Check that a manager runs and leads, and read its logs. Without one, install it: `lws install`.",
)
def manager_is_silent(observed: Observed) -> Finding | None:
    """Find a change that no controller acts on, for whatever reason."""
    undone = unacted(observed)
    if undone is None:
        return None
    are_known = observed.knows(resources.DEPLOYMENTS) and observed.knows(resources.LEASES)
    is_absent = are_known and not observed.get(resources.DEPLOYMENTS) and not observed.get(resources.LEASES)
    evidence = ("there is neither a Deployment nor a Lease of the manager",) if is_absent else ()
    return _silent(observed, undone, "no manager acts", evidence)


@cause(
    code="LWS-E006",
    title="the installed definition is older than lws",
    meaning="The CustomResourceDefinition on the server lacks fields that this version has; the server drops them.",
    remedy="Install the manager and its definitions in the version of this command: `lws install`.",
)
def outdated_definition(observed: Observed) -> Finding | None:
    """Find a definition on the server that lacks fields of this version, so that applied fields are dropped."""
    name = f"{LEADERWORKERSETS.plural}.{LEADERWORKERSETS.group}"
    definition = observed.by_name(resources.CUSTOM_RESOURCE_DEFINITIONS, name)
    if definition is None:
        return None
    missing = sorted(_fields(leaderworkerset_crd()) - _fields(definition), key=lambda field: (field.count("."), field))
    if not missing:
        return None
    return Finding(
        subject=Subject(kind="CustomResourceDefinition", name=name),
        sentence=f"the definition of LeaderWorkerSets is older than this lws: fields of specs are dropped, as {missing[0]}",
        evidence=(f"CustomResourceDefinition {name} has no {', '.join(missing[:5])}",),
        steps=(f"{observed.commands.lws} install",),
    )


def _fields(crd: JSONObject) -> set[str]:
    """Return the fields of the spec and of the group template in a definition."""
    for version in meta.spec(crd).get("versions") or []:
        if version.get("name") == LEADERWORKERSETS.version:
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            spec = _properties(_properties(schema).get("spec") or {})
            template = _properties(spec.get("leaderWorkerTemplate") or {})
            return {f"spec.{field}" for field in spec} | {f"spec.leaderWorkerTemplate.{field}" for field in template}
    return set()


def _properties(schema: JSONObject) -> JSONObject:
    return schema.get("properties") or {}


@cause(
    code="LWS-E014",
    title="no controller acts on a StatefulSet",
    meaning="A StatefulSet was written, and the StatefulSet controller of the cluster did not observe it.",
    remedy="Check kube-controller-manager. After many failed syncs it retries late, without a lasting error.",
)
def statefulset_without_controller(observed: Observed) -> Finding | None:
    """Find a StatefulSet whose newest spec its controller has not observed; a deletion also raises the generation."""
    for statefulset in observed.get(resources.STATEFULSETS):
        if meta.is_deleting(statefulset):
            continue
        observed_generation = int(meta.status(statefulset).get("observedGeneration") or 0)
        age = observed.since(last_change(statefulset))
        if observed_generation < meta.generation(statefulset) and age is not None and age >= BUSY:
            return Finding(
                subject=Subject(kind="StatefulSet", name=meta.name(statefulset)),
                sentence=f"the StatefulSet controller has not acted on StatefulSet {meta.name(statefulset)} for {duration(age)}",
                evidence=(
                    f"metadata.generation {meta.generation(statefulset)}, status.observedGeneration {observed_generation}",
                ),
                steps=(
                    observed.kubectl(f"describe statefulset {meta.name(statefulset)}"),
                    "check that the StatefulSet controller (of kube-controller-manager) runs, and has not too much to do",
                ),
            )
    return None


@cause(
    code="LWS-E015",
    title="the revision of a group is missing",
    meaning="Workers are created from the ControllerRevision of their leader, and it was deleted.",
    remedy="Delete the leader pod: the group is recreated from a revision that exists.",
)
def revision_is_missing(observed: Observed) -> Finding | None:
    """Find a leader whose revision was deleted, so that its workers cannot be created."""
    if not observed.knows(resources.CONTROLLER_REVISIONS):
        return None
    keys = {
        groupname.revision(revision)
        for revision in revisions.owned(observed.get(resources.CONTROLLER_REVISIONS), observed.view.object)
    }
    for group in observed.view.groups:
        leader = group.leader
        lacks = any(rank.object is None and rank.why == NOT_CREATED for rank in group.ranks)
        if leader is None or leader.object is None or not lacks or not group.revision or group.revision in keys:
            continue
        return Finding(
            subject=Subject(kind="Pod", name=leader.pod, group=group.name, rank=0),
            sentence=f"revision {group.revision} of leader {leader.pod} does not exist, so its workers cannot be created",
            evidence=(f"no ControllerRevision has label {labels.TEMPLATE_REVISION_HASH}={group.revision}",),
            steps=(observed.lws(f"restart {observed.view.name}/{group.name}"),),
        )
    return None
