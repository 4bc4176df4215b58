"""Reconciles leaders with random keys, which a Deployment creates and replaces (section 5.2, docs/adr/0017).

When the Deployment matches the last apply, leaders that wait for terminating groups may be admitted
(`gatedleaders.py`). The Deployment controller determines the pace and order of a rollout. Each revision has its own
ReplicaSet, and a leader becomes Ready when its workers are ready (`group-ready`).
"""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct, structs

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import AVAILABLE, DEGRADED, PROGRESSING, UPDATE_IN_PROGRESS, ConditionOutcome
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.policytypes import GroupIdentity
from leaderworkerset.core.extensions import Extensions
from leaderworkerset.core.leaderworkerset import gatedleaders, statefulsets, status
from leaderworkerset.core.leaderworkerset.cachedapply import matches_last_apply, next_source
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts
from leaderworkerset.core.leaderworkerset.gatedleaders import FormerGroups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from leaderworkerset.core.leaderworkerset.status import Assessment, StatusCounts


class Leaders(Struct, frozen=True):
    """The leaders of a LeaderWorkerSet, with Deployment, groups, desired revision, and whether older revisions exist.

    `unreachable` is the number of ready leaders that do not count as ready groups.
    """

    deployment: JSONObject
    groups: Collection[GroupFacts]
    key: str
    has_older: bool
    unreachable: int = 0


def read_progress(deployment: JSONObject) -> StatefulSetProgress:
    """Return the revision key and the size of a leader Deployment, which has no partition."""
    return StatefulSetProgress(int(meta.spec(deployment).get("replicas", 1)), 0, "", groupname.revision_key(deployment))


def deployment_replicas(
    lws: LeaderWorkerSet,
    living: JSONObject | None,
    groups: Collection[GroupFacts],
    last_replicas: int | None,
    created: str,
) -> int:
    """Return the Deployment size. It is reduced only after the rollout has created the first leader.

    Between its first two steps, a rollout has one ReplicaSet with pods. If the Deployment then has exactly the size
    of that ReplicaSet, its controller only scales it, and never rolls it out (docs/adr/0017). A failing rollout does
    not delay the reduction. Creation failures before its revision was `created` do not count. `last_replicas` is the
    last applied size, if known. If a different client changed the size, it is reverted before it is observed, unless
    a rollout is in progress.
    """
    desired = lws.spec.replicas
    present = desired if living is None else int(meta.spec(living).get("replicas", 1))
    if living is None or desired >= present:
        return desired
    progress = meta.find_condition(living, "Progressing") or {}  # missing before the Deployment is observed
    present_keys = {group.revision for group in groups if not group.is_deleting}
    begins = bool(present_keys) and groupname.revision_key(living) not in present_keys
    may_begin = begins or (last_replicas in (None, present) and not meta.is_observed(living))
    failure = meta.find_condition(living, "ReplicaFailure") or {}
    fails = failure.get("status") == "True" and str(failure.get("lastTransitionTime")) >= created
    stands = fails or progress.get("status") == "False"
    return present if may_begin and not stands else desired


def build(obj: JSONObject, lws: LeaderWorkerSet, *, key: str, size: int) -> JSONObject:
    """Build the leader Deployment. `obj` is the original LeaderWorkerSet, and `size` is the number of leaders."""
    rolling = lws.spec.rollout_strategy.rolling_update_configuration
    return {
        **DEPLOYMENTS.type_meta,
        "metadata": statefulsets.build_metadata(obj, lws, key),
        "spec": {
            "replicas": size,
            "selector": statefulsets.build_selector(lws),
            "strategy": {
                "type": lws.spec.rollout_strategy.type,
                "rollingUpdate": {"maxUnavailable": rolling.max_unavailable, "maxSurge": rolling.max_surge},
            },
            "template": _build_template(lws, key),
        },
    }


def _build_template(lws: LeaderWorkerSet, key: str) -> JSONObject:
    template = statefulsets.build_template(lws, key)
    metadata, spec = template["metadata"], template["spec"]
    gates = [*(spec.get("readinessGates") or []), {"conditionType": labels.GROUP_READY}]
    return template | {
        "metadata": metadata
        | {"annotations": metadata["annotations"] | {labels.GROUP_IDENTITY: GroupIdentity.HASH.value}},
        "spec": spec | {"subdomain": lws.name} | ({"readinessGates": gates} if lws.size > 1 else {}),
    }


def assess(lws: LeaderWorkerSet, leaders: Leaders, now: datetime) -> Assessment:
    """Build the status from the counts in the Deployment (N-ST-2 to N-ST-6).

    An update is in progress only while an older revision exists. Other changes of the Deployment are not an update. An
    exhausted group is not ready, and the leader that would replace it waits. This does not count as progress.
    """
    deployment_status = meta.status(leaders.deployment)
    of_revision = sum(group.revision == leaders.key and not group.is_deleting for group in leaders.groups)
    sums = StatusCounts(
        replicas=deployment_status.get("replicas") or 0,
        ready=max((deployment_status.get("readyReplicas") or 0) - leaders.unreachable, 0),
        updated=min(deployment_status.get("updatedReplicas") or 0, of_revision),
    )
    current, degraded = is_current(leaders), [group for group in leaders.groups if group.is_exhausted]
    if any(group.is_condemned for group in leaders.groups):  # the Deployment counts pods
        ready_groups = sum(group.is_leader_ready and not group.is_deleting for group in leaders.groups)
        sums = sums._replace(ready=min(sums.ready, ready_groups))
    ready = max(sums.ready - sum(not group.is_deleting for group in degraded), 0)
    is_complete = current and not degraded and set(sums) == {lws.spec.replicas}
    is_updating = leaders.has_older and not (current and sums.updated >= sums.replicas)
    is_still = bool(degraded) and ready + len(degraded) >= max(lws.spec.replicas, sums.replicas)
    outcomes: tuple[ConditionOutcome, ...] = () if is_still else (PROGRESSING,)
    if is_updating:
        outcomes = (UPDATE_IN_PROGRESS, *outcomes)
    elif is_complete:
        outcomes = (AVAILABLE,)
    new = status.compose(lws, sums, outcomes, now, is_degraded=bool(degraded))
    outcome = DEGRADED if degraded else outcomes[0]
    return Assessment(new, outcome, status.event_note(lws, new, outcome), is_complete)


def is_current(leaders: Leaders) -> bool:
    """Return whether the Deployment and all desired leaders have the revision (N-ST-2).

    Leaders that are being deleted count, because they are replaced, but not rolled out.
    """
    deployment, groups, key = leaders.deployment, leaders.groups, leaders.key
    if groupname.revision_key(deployment) != key or not meta.is_observed(deployment):
        return False
    if any(group.revision != key for group in groups if not group.is_deleting):
        return False
    replicas = int(meta.spec(deployment).get("replicas", 1))
    return not groups or sum(group.revision == key for group in groups) >= replicas


def decide(facts: SetFacts, now: datetime, extensions: Extensions) -> LeaderDecision:
    """Reconcile the Deployment and its leaders."""
    obj, lws, key, observed = facts.obj, facts.lws, facts.revision.key, facts.observed
    revision = next((candidate for candidate in observed.revisions if groupname.revision_key(candidate) == key), {})
    last_replicas = observed.known.applied.source.replicas if observed.known.applied else None
    size = deployment_replicas(
        lws, facts.leader_workload, observed.groups.values(), last_replicas, meta.creation_timestamp(revision)
    )
    source, applies = next_source(obj, key, size, 0, facts.leader_workload, observed.known.applied)
    workload = None
    if applies:
        workload = build(obj, lws, key=key, size=size)
        applies = not (
            facts.leader_workload
            and observed.known.complete_workload
            and matches_last_apply(workload, facts.leader_workload, observed.known.complete_workload)
        )
    replacement = gatedleaders.Replacement((), observed.gated.surplus)
    if not applies:
        sized = structs.replace(lws, spec=structs.replace(lws.spec, replicas=size))
        former = FormerGroups(observed.records, extensions.groups.prefer)
        replacement = gatedleaders.decide(obj, sized, key, observed.groups.values(), observed.gated, former)
    return LeaderDecision(
        source=source,
        actions=replacement.actions,
        applied=workload if applies else None,
        assessment=assess(lws, leaders_of(facts, facts.leader_workload), now)
        if facts.leader_workload is not None
        else None,
        replacement=replacement,
    )


def leaders_of(facts: SetFacts, deployment: JSONObject) -> Leaders:
    """Return the leaders of a LeaderWorkerSet whose Deployment exists."""
    observed, revision = facts.observed, facts.revision
    has_older = bool(revision.obsolete)
    return Leaders(deployment, observed.groups.values(), revision.key, has_older, len(observed.unreachable))
