"""Finds objects that cannot be created because their name is in use or because the API server rejects them.

Pure.

The input is the Warning events of the LeaderWorkerSet, which contain the messages of the API server. A warning
applies while the object is missing.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from re import Match
from typing import Final

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, SERVICES, STATEFULSETS
from leaderworkerset.api import groupname
from leaderworkerset.decisions.admissionchecks import RECONCILE_FAILED, is_reconcile_failing, reconcile_failure_message
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.unreconciled import set_subject
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import RESOURCE_QUOTAS, Observed
from lwsctl.diagnosis.ranks import quote_message
from lwsctl.model.diagnosis import Subject
from lwsctl.model.events.eventrecord import WarningEvent
from lwsctl.model.events.warningevents import LONGEST_SILENCE

TAKEN: Final = re.compile(
    r"Failed to (?:create|update) (?P<what>headless service|worker statefulset|leader statefulset|leader deployment)"
    r"\b.*?: (?P<why>.*(?:is controlled by|has no controller|has controller owner|has spec\.clusterIP).*)"
)
"""The manager's message about an object name that has a different owner."""

PROMPT: Final = timedelta(seconds=5)
"""The maximum time until the StatefulSet controller stores a ControllerRevision."""

REVISIONS_COUNTED: Final = f"count/{CONTROLLER_REVISIONS.group_resource}"
"""The quota resource name for ControllerRevisions."""

OTHER: Final = re.compile(
    r"Failed to create (?P<what>headless service|revision (?P<name>\S+))(?: for error)?: (?P<why>.*)"
)
"""The manager's message about a rejected object that is not a pod or a StatefulSet."""


def _warnings(observed: Observed, pattern: re.Pattern[str]) -> Iterator[tuple[WarningEvent, Match[str]]]:
    """Yield matching warnings about the LeaderWorkerSet that may still apply, the latest first."""
    view = observed.view
    if meta.is_deleting(view.object):
        return
    uid = meta.uid(view.object)
    warnings = observed.warnings.about(view.namespace, "LeaderWorkerSet", view.name)
    for warning in sorted(warnings, key=lambda warning: warning.last, reverse=True):
        match = pattern.fullmatch(warning.message)
        if match is not None and warning.uid == uid and observed.now - warning.last <= LONGEST_SILENCE:
            yield warning, match


def _exists(observed: Observed, warning: WarningEvent, what: str) -> bool:
    """Return whether the object in a warning now exists, if objects of its kind were read."""
    view = observed.view
    owner = ranks.find_pod(view, warning.related)
    if what == "headless service":
        service = observed.by_name(SERVICES, groupname.hostname(owner) if owner else view.name)
        return service is not None and meta.is_controlled(service, owner or view.object)
    if what == "worker statefulset":
        return owner is None or groupname.find_workers(owner, observed.get(STATEFULSETS)) is not None
    workload = observed.leader_deployment if what == "leader deployment" else observed.leader_statefulset
    return workload is not None and not groupname.is_foreign_leader_workload(workload, view.object)


@cause(
    code="LWS-E019",
    title="the name of a required object is in use",
    meaning="An object with the required name exists, but belongs to another owner. For example, group 1 of the LeaderWorkerSet `meet` and the LeaderWorkerSet `meet-1` both require a StatefulSet `meet-1`.",
    remedy="Delete one of the conflicting objects, or recreate one of them with a different name. If the object is a Service, you can also make it headless (`clusterIP: None`) or correct its selector.",
)
def find_name_conflict(observed: Observed) -> Finding | None:
    """Find a StatefulSet or Service with a required name that belongs to a different owner."""
    for warning, match in _warnings(observed, TAKEN):
        if _exists(observed, warning, match["what"]):
            continue
        place = f" of leader {warning.related}" if warning.related else ""
        return Finding(
            subject=set_subject(observed),
            sentence=f"the {match['what']}{place} of {observed.view.name} cannot be created: {quote_message(match['why'])}",
            evidence=(f"event {warning.reason} of LeaderWorkerSet {observed.view.name}",),
            steps=(
                observed.lws("get"),
                f"delete the other object, or recreate {observed.view.name} with a name that does not conflict",
            ),
        )
    return _find_pod_name_conflict(observed)


def _find_pod_name_conflict(observed: Observed) -> Finding | None:
    """Find an unrelated pod that has the name of a rank. The StatefulSet controller creates no event about it."""
    pod = observed.namesake
    controller = meta.controller_of(pod) if pod else None
    if pod is None or meta.is_deleting(pod) or (controller and not groupname.has_foreign_controller(pod)):
        return None
    name = meta.name(pod)
    return Finding(
        subject=Subject(kind="Pod", name=name),
        sentence=f'pod {name} of {observed.view.name} cannot be created: pods "{name}" already exists and {meta.describe_controller(pod)}',
        evidence=(f"pod {name} does not belong to {observed.view.name}",),
        steps=(
            observed.kubectl(f"get pod {name} --show-labels"),
            f"delete pod {name}, or recreate it with another name",
        ),
    )


@cause(
    code="LWS-E028",
    title="the API server rejects an object of the LeaderWorkerSet",
    meaning="The API server rejects a request from the manager to write or delete an object, such as a Service or a ControllerRevision.",
    remedy="Fix the error in the message, for example an exceeded ResourceQuota, or a webhook that rejects the object. If no event shows the cause, read the manager log.",
)
def find_rejected_object(observed: Observed) -> Finding | None:
    """Find a Service or revision that the API server rejects, or a different reconciliation failure."""
    for warning, match in _warnings(observed, OTHER):
        name = match["name"]
        is_there = observed.by_name(CONTROLLER_REVISIONS, name) if name else _exists(observed, warning, match["what"])
        if is_there:
            continue
        kind = (CONTROLLER_REVISIONS if name else SERVICES).kind
        return Finding(
            subject=Subject(kind=kind, name=name or warning.related or observed.view.name),
            sentence=f"a {kind} of {observed.view.name} cannot be created: {quote_message(match['why'])}",
            evidence=(f"event {warning.reason} of LeaderWorkerSet {observed.view.name}",),
            steps=(observed.lws(f"events {observed.view.name} --warnings"), observed.kubectl("describe resourcequota")),
        )
    return _find_rejected_revision(observed) or _find_failed_reconciliation(observed)


def _find_failed_reconciliation(observed: Observed) -> Finding | None:
    """Find a reconciliation that failed for a different reason, according to the LeaderWorkerSet status."""
    obj = observed.view.object
    if observed.set_view is not None or not is_reconcile_failing(obj):
        return None
    return Finding(
        subject=set_subject(observed),
        sentence=f"the last reconciliation of {observed.view.name} failed: {quote_message(reconcile_failure_message(obj))}",
        evidence=(f"condition Progressing: {RECONCILE_FAILED}",),
        steps=(observed.lws(f"events {observed.view.name} --warnings"), "read the log of the manager"),
    )


def statefulsets_without_revision(observed: Observed) -> list[str]:
    """Return StatefulSets for which no revision has been stored for some time.

    The controller does not report this error.
    """
    return [
        meta.name(statefulset)
        for statefulset in observed.get(STATEFULSETS)
        if not meta.status(statefulset).get("updateRevision")
        and (age := observed.time_since(meta.creation_timestamp(statefulset))) is not None
        and age >= PROMPT
    ]


def _find_rejected_revision(observed: Observed) -> Finding | None:
    """Find an exhausted quota because of which the StatefulSet controller cannot create ControllerRevisions."""
    names = statefulsets_without_revision(observed)
    for quota in observed.get(RESOURCE_QUOTAS) if names else ():
        status = meta.status(quota)
        hard, used = ((status.get(part) or {}).get(REVISIONS_COUNTED) for part in ("hard", "used"))
        if hard is not None and used is not None and quantity.parse(used) >= quantity.parse(hard):
            return Finding(
                subject=Subject(kind=STATEFULSETS.kind, name=names[0]),
                sentence=f"ResourceQuota {meta.name(quota)} blocks the ControllerRevision of StatefulSet {names[0]} ({used} of {hard} used), so no pods are created",
                evidence=(f"StatefulSet {names[0]} has no status.updateRevision",),
                steps=(
                    "increase the quota, or delete other ControllerRevisions in the namespace",
                    observed.kubectl(f"describe resourcequota {meta.name(quota)}"),
                ),
            )
    return None
