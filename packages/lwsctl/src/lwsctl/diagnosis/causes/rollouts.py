"""Finds rollouts that are paused, blocked, or in progress. Pure."""

from datetime import timedelta
from typing import Final

from kuberuntime.objects import intstr, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import groupname, labels
from leaderworkerset.decisions.revisioncontent import find_revision, owned_revisions
from leaderworkerset.decisions.rolloutsteps import InPlace, in_place_obstacle_between, read_in_place
from lwsctl.diagnosis import groupmoves, ranks
from lwsctl.diagnosis.causes.unreconciled import last_change_time, set_subject
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Subject
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count, updated_groups

STANDING: Final = timedelta(minutes=1)
"""The maximum time that the Deployment controller needs for the next step of a rollout."""


def configuration(view: View) -> JSONObject:
    """Return the rolling update configuration of a LeaderWorkerSet."""
    strategy: JSONObject = meta.spec(view.object).get("rolloutStrategy") or {}
    return strategy.get("rollingUpdateConfiguration") or {}


def allowed_unavailable(view: View) -> int:
    """Return the number of groups that a rollout may make unavailable, or 0 if the value is invalid."""
    value = configuration(view).get("maxUnavailable", 1)
    return max(intstr.scale(value, view.desired, up=False), 0) if intstr.is_scalable(value) else 0


@cause(
    code="LWS-E085",
    title="the partition blocks the rollout",
    meaning="Groups with an index below the partition of the rollout strategy keep the previous revision.",
    remedy="To continue the rollout, lower the partition.",
    verdict=Verdict.PROGRESSING,
)
def find_blocking_partition(observed: Observed) -> Finding | None:
    """Find a rollout that is blocked by the partition."""
    view = observed.view
    partition = int(configuration(view).get("partition") or 0)
    if not partition or view.updated >= view.desired or view.desired - view.updated > partition:
        return None
    return Finding(
        subject=set_subject(observed),
        sentence=f"partition {partition} blocks the rollout: {updated_groups(view.updated, view.desired, view.up_to_date)}",
        evidence=(
            f"spec.rolloutStrategy.rollingUpdateConfiguration.partition: {partition}",
            f"status.updatedReplicas: {view.up_to_date}",
        ),
        steps=(
            f"after a pause: {observed.lws(f'rollout resume {view.name}')}",
            "otherwise, set spec.rolloutStrategy.rollingUpdateConfiguration.partition to 0, and apply the manifest",
        ),
    )


@cause(
    code="LWS-E086",
    title="the rollout waits for groups that are not ready",
    meaning="The maximum number of groups is already unavailable. Therefore, the manager does not replace more groups. If no partition is set, it first replaces unready groups of previous revisions.",
    remedy="Find out why the groups are not ready, or increase maxUnavailable or maxSurge.",
    verdict=Verdict.PROGRESSING,
)
def find_blocking_group(observed: Observed) -> Finding | None:
    """Find a rollout that waits for unready groups because no other group may become unavailable.

    Broken groups with an older revision are replaced first, unless the user set a partition (docs/adr/0030).
    """
    view, key = observed.view, groupname.revision_key(observed.leader_statefulset or {})
    unready = [group for group in view.groups if not group.is_ready and group.index < view.desired]
    is_held = bool(configuration(view).get("partition"))
    waiting = [group for group in unready if is_held or not key or group.revision in {"", key}]
    allowed = max(allowed_unavailable(view), 1)
    if not view.is_updating or not waiting or len(waiting) < allowed:
        return None
    group_names = ", ".join(str(group.name) for group in waiting[:5])
    word = "group" if len(waiting) == 1 else "groups"
    return Finding(
        subject=set_subject(observed),
        sentence=f"the rollout waits for {word} {group_names} to be ready; at most {allowed} may be unavailable",
        evidence=(updated_groups(view.updated, view.desired, view.up_to_date),),
        steps=(
            observed.lws(f"explain {view.name}/{waiting[0].name}"),
            "otherwise, increase spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable, and apply the manifest",
        ),
    )


@cause(
    code="LWS-E088",
    title="the leader Deployment exceeded its progress deadline",
    meaning="The Deployment that creates leaders with random keys has not progressed within its progress deadline.",
    remedy="Find out why the new leader pods are not created or not ready, or roll back the change.",
)
def find_exceeded_deadline(observed: Observed) -> Finding | None:
    """Find a leader Deployment that exceeded its progress deadline."""
    condition = meta.find_condition(observed.leader_deployment or {}, "Progressing") or {}
    if observed.view.is_ready or condition.get("reason") != "ProgressDeadlineExceeded":
        return None
    name = observed.view.name
    return Finding(
        subject=Subject(kind="Deployment", name=name),
        sentence=f"the leader Deployment of {name} exceeded its progress deadline",
        evidence=(f"Deployment {name}: {mask_message(condition.get('message') or condition['reason'])}",),
        steps=(
            observed.kubectl(f"describe deployment {name}"),
            f"to undo the change: {observed.lws(f'rollout undo {name}')}",
        ),
    )


@cause(
    code="LWS-E089",
    title="the Deployment controller treats a rollout as scaling",
    meaning="The leader Deployment was scaled during a rollout. The Deployment controller therefore waits indefinitely for the scaling operation to finish.",
    remedy="In the LeaderWorkerSet, increase `replicas` by one, and then decrease it by one.",
)
def find_stuck_surge(observed: Observed) -> Finding | None:
    """Find a rollout that the Deployment controller treats as scaling (docs/adr/0017)."""
    deployment, view = observed.leader_deployment, observed.view
    if deployment is None or not meta.is_observed(deployment) or not view.groups:
        return None
    counts = meta.status(deployment)
    is_rolled = bool(counts.get("updatedReplicas")) or groupname.revision_key(deployment) in {
        group.revision for group in view.groups
    }
    is_available = counts.get("replicas") == counts.get("readyReplicas") == meta.spec(deployment).get("replicas", 1)
    age = observed.time_since(last_change_time(deployment))
    if is_rolled or not is_available or age is None or age < STANDING:
        return None
    larger = f"scale {view.name} --replicas {view.desired + 1}"
    return Finding(
        subject=Subject(kind="Deployment", name=view.name),
        sentence=f"the Deployment controller does not continue the rollout of {view.name}, because it was scaled during the rollout",
        evidence=(f"Deployment {view.name}: {view.desired} leaders are ready, none at the latest revision",),
        steps=(observed.lws(larger), f"then {observed.lws(f'scale {view.name} --replicas {view.desired}')}"),
    )


@cause(
    code="LWS-E092",
    title="a rollout is in progress",
    meaning="Groups are being replaced or added, and no problem was found.",
    remedy="Wait.",
    verdict=Verdict.PROGRESSING,
)
def find_ongoing_rollout(observed: Observed) -> Finding | None:
    """Find a rollout or a change in the number of groups that is in progress."""
    view = observed.view
    if view.is_ready or meta.is_deleting(view.object):
        return None
    if view.is_updating:
        text = f"a rollout is in progress: {updated_groups(view.updated, view.desired, view.up_to_date)}"
    elif not observed.unready_ranks and not groupmoves.is_moving(view):
        text = f"status: {view.ready} of {format_count(view.desired, 'group')} ready; all pods are ready"
    else:
        return None
    return Finding(
        subject=set_subject(observed),
        sentence=text,
        evidence=ranks.rank_states(rank for _, rank in observed.unready_ranks),
        steps=(observed.lws(f"wait {view.name}"),),
    )


@cause(
    code="LWS-E090",
    title="the object is being deleted",
    meaning="The LeaderWorkerSet or DisaggregatedSet is being deleted, and its pods are terminating.",
    remedy="Wait.",
    verdict=Verdict.PROGRESSING,
)
def find_deletion(observed: Observed) -> Finding | None:
    """Find a LeaderWorkerSet that is being deleted."""
    if not meta.is_deleting(observed.view.object):
        return None
    if observed.set_view is not None:
        left = format_count(len(observed.set_view.parts), "LeaderWorkerSet")
    else:
        left = format_count(sum(rank.object is not None for rank in observed.view.ranks), "pod")
    return Finding(
        subject=set_subject(observed),
        sentence=f"{observed.view.name} is being deleted; {left} remaining",
        steps=(observed.lws(f"wait {observed.view.name} --for=delete"),),
    )


@cause(
    code="LWS-E096",
    title="a change cannot be applied in place",
    meaning="The annotation `in-place` is set to `Only`, but a field other than a container image was changed. Therefore, the groups keep the previous revision.",
    remedy="Revert the change. Alternatively, set the annotation to `IfPossible`, which permits the manager to recreate the groups.",
)
def find_blocked_in_place_update(observed: Observed) -> Finding | None:
    """Find a rollout that is blocked because it must be in place but changes a field other than an image."""
    view = observed.view
    if not view.is_updating or not read_in_place(meta.annotations(view.object)).forbids_recreation:
        return None
    revisions, key = (
        owned_revisions(observed.get(CONTROLLER_REVISIONS), view.object),
        groupname.revision_key(observed.leader_statefulset or {}),
    )
    older = [group for group in view.groups if group.is_ready and group.revision != key and group.index < view.desired]
    scheduling_field = "spec.scheduling" if meta.spec(view.object).get("scheduling") is not None else ""
    new = find_revision(revisions, key)
    for group in older if key else ():
        field = scheduling_field or in_place_obstacle_between(find_revision(revisions, group.revision), new)
        if field:
            return Finding(
                subject=set_subject(observed),
                sentence=f"the rollout stops at group {group.name}, because {field} changed, which is not a container image",
                evidence=(f"metadata.annotations[{labels.IN_PLACE}]: {InPlace.ONLY}",),
                steps=(
                    f"to recreate such groups: {observed.kubectl(f'annotate lws {view.name} {labels.IN_PLACE}={InPlace.IF_POSSIBLE} --overwrite')}",
                    f"or undo the change: {observed.lws(f'rollout undo {view.name}')}",
                ),
            )
    return None
