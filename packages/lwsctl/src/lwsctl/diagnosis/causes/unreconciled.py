"""Finds changes that no controller reconciles, and other problems with the manager and its dependencies. Pure."""

from datetime import timedelta
from typing import Final

from kuberuntime.objects import meta, resources, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.admissionchecks import unreadable_leaderworkerset
from leaderworkerset.decisions.failureevents import unreadable_event
from leaderworkerset.decisions.revisioncontent import owned_revisions
from lwsctl.diagnosis import installationhealth
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import quote_message
from lwsctl.model.diagnosis import Person, Subject
from lwsctl.model.events.warningevents import LONGEST_SILENCE
from lwsctl.model.groups import NOT_CREATED
from lwsctl.views.wording import duration

BUSY: Final = timedelta(minutes=1)
"""The maximum time that the StatefulSet controller needs, including long retry delays after failures."""

BRIEF: Final = timedelta(seconds=3)
"""The time after which a finalizer that blocks a deletion is reported."""

OWN_FINALIZERS: Final = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers that the garbage collector removes automatically."""


def set_subject(observed: Observed) -> Subject:
    """Return the LeaderWorkerSet or DisaggregatedSet as the subject of a sentence."""
    return Subject(kind="DisaggregatedSet" if observed.set_view else "LeaderWorkerSet", name=observed.view.name)


@cause(
    code="LWS-E001",
    title="a finalizer blocks the deletion of an object",
    meaning="The LeaderWorkerSet is being deleted, and a finalizer of another component blocks the deletion.",
    person=Person.ADMINISTRATOR,
    remedy="Find out which component should remove the finalizer, and why the finalizer still exists. Remove the finalizer yourself only if the component was removed "
    "permanently.",
)
def find_blocking_finalizer(observed: Observed) -> Finding | None:
    """Find a LeaderWorkerSet whose deletion only finalizers of other components block."""
    obj = observed.view.object
    finalizers = [name for name in meta.metadata(obj).get("finalizers") or [] if name not in OWN_FINALIZERS]
    since = observed.time_since(meta.metadata(obj).get("deletionTimestamp"))
    if since is None or since < BRIEF or not finalizers:
        return None
    names = ", ".join(finalizers)
    return Finding(
        subject=set_subject(observed),
        sentence=f"{observed.view.name} has been terminating for {duration(since)}, blocked by finalizer {names}",
        evidence=(f"metadata.finalizers: {names}",),
        steps=(f"find out which component removes {names}, and why it has not done so",),
    )


@cause(
    code="LWS-E056",
    title="a field cannot be parsed",
    meaning="The manager cannot parse a field, annotation or label. The manager does not change the object until the value is corrected.",
    remedy="Correct the value that the message shows. If you remove an annotation or label that the manager set, restart counts are reset to 0.",
)
def find_unreadable_field(observed: Observed) -> Finding | None:
    """Find a field that the manager cannot parse, based on the object or on the manager's event."""
    view = observed.view
    if observed.set_view is not None or meta.is_deleting(view.object):
        return None
    why, evidence = unreadable_leaderworkerset(view.object), "the stored object"
    if not why:
        warnings = observed.warnings.about(view.namespace, "LeaderWorkerSet", view.name)
        events = [warning for warning in warnings if warning.reason == unreadable_event.reason]
        newest = max(events, key=lambda event: event.last, default=None)
        if newest is None or newest.uid != meta.uid(view.object) or observed.now - newest.last > LONGEST_SILENCE:
            return None
        if timestamps.render(newest.last) < last_change_time(view.object):  # it was corrected afterwards
            return None
        why, evidence = newest.message, f"event {newest.reason} of LeaderWorkerSet {view.name}"
    return Finding(
        subject=set_subject(observed),
        sentence=f"the manager does not reconcile {view.name}: {quote_message(why)}",
        evidence=(evidence,),
        steps=("correct the field, or remove the annotation",),
    )


def has_timestamps(obj: JSONObject) -> bool:
    """Return whether all spec changes have a timestamp. Changes through `scale` have none in kube-apiserver."""
    entries = meta.metadata(obj).get("managedFields") or []
    return all(entry.get("time") for entry in entries if entry.get("subresource") != "status")


def last_change_time(obj: JSONObject) -> str:
    """Return the time of the last spec or scale change in the managed fields, or the creation time."""
    entries = meta.metadata(obj).get("managedFields") or []
    times = [str(entry.get("time") or "") for entry in entries if entry.get("subresource") != "status"]
    return max([*times, meta.creation_timestamp(obj)])


@cause(
    code="LWS-E006",
    title="the installed CRD is older than lws",
    meaning="The installed CRD does not have all fields that this version supports. The API server drops the fields that are missing in the CRD.",
    person=Person.ADMINISTRATOR,
    remedy="To install the CRDs of this version, run `lws install`.",
)
def find_outdated_crd(observed: Observed) -> Finding | None:
    """Find an installed CRD without fields of this version. The API server drops these fields."""
    name = f"{LEADERWORKERSETS.plural}.{LEADERWORKERSETS.group}"
    definition = observed.by_name(resources.CUSTOM_RESOURCE_DEFINITIONS, name)
    if definition is None:
        return None
    versions = (
        installationhealth.find_version(crd, LEADERWORKERSETS.version) for crd in (leaderworkerset_crd(), definition)
    )
    missing = [field for field in installationhealth.missing_fields(*versions) if field.startswith("spec.")]
    if not missing:
        return None
    return Finding(
        subject=Subject(kind="CustomResourceDefinition", name=name),
        sentence=f"the CRD of LeaderWorkerSets is older than this lws, so fields such as {missing[0]} are dropped",
        evidence=(f"CustomResourceDefinition {name} has no {', '.join(missing[:5])}",),
        steps=(f"{observed.commands.lws} install",),
    )


@cause(
    code="LWS-E014",
    title="no controller reconciles a StatefulSet",
    meaning="A StatefulSet was changed, but the StatefulSet controller of the cluster has not observed the change.",
    person=Person.ADMINISTRATOR,
    remedy="Make sure that kube-controller-manager is running. After many failures, it retries with long delays.",
)
def find_unobserved_statefulset(observed: Observed) -> Finding | None:
    """Find a StatefulSet whose latest spec is not observed. The generation also increases with a deletion."""
    for statefulset in observed.get(resources.STATEFULSETS):
        if meta.is_deleting(statefulset):
            continue
        observed_generation = int(meta.status(statefulset).get("observedGeneration") or 0)
        age = observed.time_since(last_change_time(statefulset))
        if observed_generation < meta.generation(statefulset) and age is not None and age >= BUSY:
            return Finding(
                subject=Subject(kind="StatefulSet", name=meta.name(statefulset)),
                sentence=f"the StatefulSet controller has not observed StatefulSet {meta.name(statefulset)} for {duration(age)}",
                evidence=(
                    f"metadata.generation {meta.generation(statefulset)}, status.observedGeneration {observed_generation}",
                ),
                steps=(
                    observed.kubectl(f"describe statefulset {meta.name(statefulset)}"),
                    "check that kube-controller-manager is running and is not overloaded",
                ),
            )
    return None


@cause(
    code="LWS-E015",
    title="the ControllerRevision of a group is missing",
    meaning="The ControllerRevision of a leader was deleted, so the manager cannot create the workers of the group.",
    remedy="Delete the leader pod. The group is then recreated from an existing revision.",
)
def find_missing_revision(observed: Observed) -> Finding | None:
    """Find a leader whose revision was deleted. Its workers therefore cannot be created."""
    if not observed.was_read(resources.CONTROLLER_REVISIONS):
        return None
    keys = {
        groupname.revision_key(revision)
        for revision in owned_revisions(observed.get(resources.CONTROLLER_REVISIONS), observed.view.object)
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
