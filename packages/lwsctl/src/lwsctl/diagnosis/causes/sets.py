"""Finds causes for a DisaggregatedSet itself, in addition to the causes for its LeaderWorkerSets. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api.disaggregatedset import ScalingMode, has_scaler
from leaderworkerset.api.resources import ROLE_SCALERS
from leaderworkerset.decisions.admissionchecks import is_reconcile_failing, reconcile_failure_message
from lwsctl.diagnosis.causes.unreconciled import set_subject
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import quote_message
from lwsctl.model.diagnosis import Subject
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.events.warningevents import LONGEST_SILENCE
from lwsctl.model.health import Verdict
from lwsctl.views.wording import format_count

FAILED_WRITE: Final = re.compile(r"Failed to (create|adopt) (\S+) (\S+): (.*)", re.DOTALL)
"""The controller's message about a failed write of an object of a DisaggregatedSet."""


@cause(
    code="LWS-E016",
    title="the scaler of a role belongs to another owner",
    meaning="The scaling mode of a role is External, but its DisaggregatedSetRoleScaler belongs to another owner. The controller does not change the number of groups of the role.",
    remedy="If the DisaggregatedSetRoleScaler is not required, delete it. The controller then creates a new one. Otherwise, rename the role.",
)
def find_scaler_conflict(observed: Observed) -> Finding | None:
    """Find a role whose scaler name is used by an object with a different owner (R-DS-74)."""
    set_view = observed.set_view
    if set_view is None:
        return None
    for role in _external_role_facts(set_view):
        name = f"{set_view.name}-{role}"
        scaler = observed.by_name(ROLE_SCALERS, name)
        owner = None if scaler is None else meta.controller_of(scaler)
        if scaler is None or (owner or {}).get("uid") == meta.uid(set_view.object):
            continue
        kind = ROLE_SCALERS.kind
        return Finding(
            subject=Subject(kind=kind, name=name),
            sentence=f"role {role} cannot be scaled, because {kind} {name} exists and does not belong to {set_view.name}",
            evidence=(f"{kind} {name} {meta.describe_controller(scaler)}",),
            steps=(
                f"if it is not needed: {observed.kubectl(f'delete {ROLE_SCALERS.plural} {name}')}",
                f"otherwise, rename the role, or set its scaling mode to {ScalingMode.STATIC}",
            ),
        )
    return None


@cause(
    code="LWS-E017",
    title="an object of a DisaggregatedSet cannot be created",
    meaning="The API server rejected an object of the DisaggregatedSet, or an object with the same name belongs to another owner.",
    remedy="Fix the error in the message. Examples are an exceeded quota, a webhook that rejects the object, an invalid value, and an object with another owner.",
)
def find_rejected_part(observed: Observed) -> Finding | None:
    """Find a failed write of an object of the set, or a different error of the reconciliation."""
    set_view = observed.set_view
    if set_view is None or meta.is_deleting(set_view.object):
        return None
    existing = {part.name for part in set_view.parts} | {meta.name(scaler) for scaler in observed.get(ROLE_SCALERS)}
    is_failing = is_reconcile_failing(set_view.object)
    warnings = observed.warnings.about(set_view.namespace, "DisaggregatedSet", set_view.name)
    for warning in sorted(warnings, key=lambda warning: warning.last, reverse=True):
        match = FAILED_WRITE.fullmatch(warning.message)
        is_over = observed.now - warning.last > LONGEST_SILENCE or warning.uid not in {"", meta.uid(set_view.object)}
        if match is None or is_over or match[3] in existing or (match[2] == "Service" and not is_failing):
            continue
        verb, kind, name, why = match.groups()
        return Finding(
            subject=Subject(kind=kind, name=name),
            sentence=f"{kind} {name} of {set_view.name} cannot be {verb.rstrip('e')}ed: {quote_message(why)}",
            evidence=(f"event {warning.reason} of DisaggregatedSet {set_view.name}",),
            steps=(observed.lws(f"describe {set_view.name}"),),
        )
    if not is_failing:
        return None
    return Finding(
        subject=set_subject(observed),
        sentence=f"the last reconciliation of {set_view.name} failed: {quote_message(reconcile_failure_message(set_view.object))}",
        evidence=tuple(_status_facts(set_view.object)),
        steps=(observed.lws(f"events {set_view.name} --warnings"), "read the log of the manager"),
    )


@cause(
    code="LWS-E093",
    title="a DisaggregatedSet is progressing",
    meaning="All LeaderWorkerSets of the DisaggregatedSet are healthy, but a rollout is in progress or a role has too few groups.",
    remedy="Wait.",
    verdict=Verdict.PROGRESSING,
)
def find_ongoing_set_change(observed: Observed) -> Finding | None:
    """Find a set whose status does not report the desired state yet."""
    set_view = observed.set_view
    if set_view is None or set_view.is_settled:
        return None
    if set_view.is_updating and set_view.updated >= set_view.desired:
        text = f"the rollout of {set_view.name} is almost complete: groups of older revisions are being deleted"
    elif set_view.is_updating:
        text = f"a rollout of {set_view.name} is in progress: {set_view.updated} of {format_count(set_view.desired, 'group')} updated"
    else:
        text = f"some roles of {set_view.name} have too few groups: {', '.join(map(str, set_view.roles))} ready"
    return Finding(
        subject=set_subject(observed),
        sentence=text,
        evidence=tuple(_status_facts(set_view.object)),
        steps=(observed.lws(f"rollout status {set_view.name}"),),
    )


def _external_role_facts(set_view: SetView) -> Iterator[str]:
    for role in meta.spec(set_view.object).get("roles") or []:
        if has_scaler(role):
            yield str(role["name"])


def _status_facts(obj: JSONObject) -> Iterator[str]:
    """Yield evidence from the status, which is the `True` condition and the number of groups of each role."""
    for condition in meta.status(obj).get("conditions") or []:
        if condition.get("status") == "True" and condition.get("type") in {"Available", "Progressing"}:
            yield f"condition {condition['type']}: {condition.get('reason', '')}: {mask_message(condition.get('message') or '')}"
    for role in meta.status(obj).get("roleStatuses") or []:
        counts = (f"{role.get(field, 0)} {word}" for field, word in COUNTS)
        yield f"status of role {role.get('name')}: {', '.join(counts)}"


COUNTS: Final = (("replicas", "groups"), ("readyReplicas", "ready"), ("updatedReplicas", "updated"))
