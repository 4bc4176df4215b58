"""Finds a manager that is not running, is not the leader, or does not reconcile. Pure.

The input is changes that a running manager would have reconciled (the latest spec, missing workers, pods that its
webhook must admit), its Deployment, and its Lease.
"""

import re
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, resources, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname
from lwsctl.diagnosis import installationhealth
from lwsctl.diagnosis.causes.unreconciled import BUSY, has_timestamps, last_change_time, set_subject
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import READ
from lwsctl.diagnosis.ranks import is_missing
from lwsctl.model.diagnosis import Person
from lwsctl.model.groups import NOT_CREATED
from lwsctl.model.health import Verdict
from lwsctl.views.wording import duration

SILENCE: Final = timedelta(seconds=10)
"""The time after which a controller is considered inactive. It usually needs a fraction of a second."""


def unobserved_time(observed: Observed) -> timedelta | None:
    """Return the time since the latest spec should have been reconciled, or None if it is not overdue.

    The duration starts at the last change with a timestamp. kube-apiserver does not set timestamps for changes
    through `scale`.
    """
    obj = observed.view.object
    if meta.is_deleting(obj) or meta.is_observed(obj) or not observed.was_read(resources.CORE_EVENTS):
        return None
    changed = last_change_time(obj)
    warnings = observed.warnings.about(observed.view.namespace, set_subject(observed).kind, observed.view.name)
    if any(timestamps.render(warning.last) >= changed for warning in warnings if warning.reason != "BackOff"):
        return None
    since = observed.time_since(changed)
    return since if since is not None and since >= SILENCE else None


class MissedAction(Struct, frozen=True):
    """A sentence and the evidence about an action that a running manager would have completed."""

    sentence: str
    evidence: str


def find_unreconciled_spec(observed: Observed) -> MissedAction | None:
    """Return the latest spec if no controller has reconciled it."""
    silence = unobserved_time(observed)
    if silence is None:
        return None
    obj = observed.view.object
    observed_generation = meta.status(obj).get("observedGeneration", 0)
    length = f" for {duration(silence)}" if has_timestamps(obj) else ", and the time of the last scaling is unknown"
    return MissedAction(
        f"the latest spec of {observed.view.name} has not been observed{length}",
        f"metadata.generation {meta.generation(obj)}, status.observedGeneration {observed_generation}",
    )


def find_missing_workers(observed: Observed) -> MissedAction | None:
    """Return the missing workers of a group whose leader is running."""
    if not observed.was_read(resources.STATEFULSETS) or meta.is_deleting(observed.view.object):
        return None
    for group in observed.view.groups:
        leader = group.leader if group.leader and group.leader.node else None
        missing = any(rank.index and rank.object is None and rank.why == NOT_CREATED for rank in group.ranks)
        age = observed.time_since(leader.created) if leader else None
        if leader is None or not missing or age is None or age < BUSY:
            continue
        if groupname.find_workers(leader.object or {}, observed.get(resources.STATEFULSETS)) is None:
            sentence = f"the workers of group {group.name} have not been created for {duration(age)}"
            name = groupname.hostname(leader.object or {})
            return MissedAction(sentence, f"leader {leader.pod} has a node, but StatefulSet {name} does not exist")
    return None


OWN_WEBHOOK: Final = re.compile(
    r"failed calling webhook \"(?P<webhook>[^\"]+)\".*?https://lws-webhook-service\.(?P<namespace>[^./\s]+)\."
)
"""The API server's message that it cannot connect to the webhook of the manager or of another product."""


def find_rejected_pod(observed: Observed) -> MissedAction | None:
    """Return a pod that is rejected because the API server cannot connect to the manager's webhook."""
    for rank in observed.ranks_at(is_missing):
        if match := OWN_WEBHOOK.search(rank.why[:READ]):
            evidence = f"{rank.pod}: failed calling webhook {match['webhook']} in namespace {match['namespace']}"
            return MissedAction(f"pod {rank.pod} cannot be created without its webhook {match['webhook']}", evidence)
    return None


def first_missed_action(observed: Observed) -> MissedAction | None:
    """Return the first action that a running manager would have completed."""
    return find_unreconciled_spec(observed) or find_missing_workers(observed) or find_rejected_pod(observed)


def _unresponsive_manager(
    observed: Observed, undone: MissedAction, why: str, evidence: tuple[str, ...], steps: tuple[str, ...] = ()
) -> Finding:
    return Finding(
        subject=set_subject(observed),
        sentence=f"{why}: {undone.sentence}",
        evidence=(undone.evidence, *evidence),
        steps=(
            *steps,
            f"{observed.commands.lws} doctor",
            f"{observed.plain_kubectl} get deployments,pods -A -l app.kubernetes.io/name=lws",
        ),
    )


@cause(
    code="LWS-E003",
    title="the manager is not running",
    meaning="The manager Deployment has no ready replica, so LeaderWorkerSets are not reconciled.",
    person=Person.ADMINISTRATOR,
    remedy="If the Deployment has 0 replicas, scale it up. Otherwise, find out why the manager pods do not start or are not ready.",
)
def find_unavailable_manager(observed: Observed) -> Finding | None:
    """Find a manager whose Deployment has no ready replica."""
    undone = first_missed_action(observed)
    deployments = observed.get(resources.DEPLOYMENTS)
    if undone is None or any(installationhealth.replica_counts(deployment)[0] for deployment in deployments):
        return None
    return next((_unavailable_finding(observed, undone, deployment) for deployment in deployments), None)


def _unavailable_finding(observed: Observed, undone: MissedAction, deployment: JSONObject) -> Finding:
    replicas = meta.spec(deployment).get("replicas", 1)
    evidence = (f"Deployment {meta.key(deployment)}: 0 of {replicas} replicas ready",)
    if replicas:
        return _unresponsive_manager(observed, undone, "the manager is not running", evidence)
    why = f"the manager is not running, because Deployment {meta.key(deployment)} is scaled to 0"
    return _unresponsive_manager(
        observed, undone, why, evidence, (installationhealth.scale_up_step(deployment, observed.plain_kubectl),)
    )


@cause(
    code="LWS-E004",
    title="no manager is elected as the leader",
    meaning="The manager replicas use a Lease to elect a leader, but the Lease has no holder.",
    person=Person.ADMINISTRATOR,
    remedy="Read the manager logs. Make sure that the manager can reach the API server and has permission to write the Lease.",
)
def find_missing_leader(observed: Observed) -> Finding | None:
    """Find a Lease without a holder, which means that no replica of the manager is active."""
    undone = first_missed_action(observed)
    leases = observed.get(resources.LEASES)
    states = [installationhealth.lease_state(lease, observed.now) for lease in leases]
    if undone is None or not leases or not all(states):
        return None
    return _unresponsive_manager(observed, undone, "no manager is the leader", tuple(states))


@cause(
    code="LWS-E005",
    title="no manager has observed the latest spec",
    meaning="The spec was changed, but no manager has observed the change.",
    person=Person.ADMINISTRATOR,
    remedy="Make sure that a manager is the leader, and read its log. If no manager is installed, run `lws install`.",
)
def find_inactive_manager(observed: Observed) -> Finding | None:
    """Find a change that no controller reconciles, regardless of the reason."""
    undone = find_unreconciled_spec(observed)
    if undone is None:
        return None
    are_known = observed.was_read(resources.DEPLOYMENTS) and observed.was_read(resources.LEASES)
    is_absent = are_known and not observed.get(resources.DEPLOYMENTS) and not observed.get(resources.LEASES)
    evidence = ("the manager has neither a Deployment nor a Lease",) if is_absent else ()
    finding = _unresponsive_manager(observed, undone, "no manager is active", evidence)
    if is_absent or has_timestamps(observed.view.object):
        return finding
    return replace(finding, sentence=f"the manager has not reacted yet: {undone.sentence}", verdict=Verdict.PROGRESSING)
