"""Reconciles leaders with ordinals, which a StatefulSet creates and rolls out in steps (`rollingupdate.py`).

When the StatefulSet matches the last apply, outdated leaders are deleted if its controller would replace only one at a
time (docs/adr/0004).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import Action, Event, concurrently, guarded_patch
from leaderworkerset.api import groupname
from leaderworkerset.core import decisionevents
from leaderworkerset.core.extensions import Extensions
from leaderworkerset.core.leaderworkerset import outdatedleaders, rollingupdate, statefulsets, status
from leaderworkerset.core.leaderworkerset.cachedapply import matches_last_apply, next_source
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts, delete_leader
from leaderworkerset.core.leaderworkerset.rollingupdate import Rollout

NOT_RENEWED: Final = (
    "Failed to prioritize the update of broken groups, which requires the verb patch on statefulsets/status: {error}"
)


def decide(facts: SetFacts, now: datetime, extensions: Extensions) -> LeaderDecision:
    """Reconcile the StatefulSet and its leaders."""
    observed, lws, living, key = facts.observed, facts.lws, facts.leader_workload, facts.revision.key
    rollout = rollingupdate.advance(lws, living, facts.current, facts.group_summary, facts.revision, facts.route)
    step = rollout.step
    source, applies = next_source(facts.obj, key, step.replicas, step.partition, living, observed.known.applied)
    workload = None
    if applies:
        marks = extensions.sets.leader_annotations(lws, _template_of(living, key))
        workload = statefulsets.build(facts.obj, lws, key=key, limits=rollout.limits, step=step, marks=marks)
        applies = not (
            living
            and observed.known.complete_workload
            and matches_last_apply(workload, living, observed.known.complete_workload)
        )
    assessment, error = None, None
    if living is not None:
        try:
            assessment = status.assess(lws, living, facts.group_summary, key, now)
        except status.UnknownIndexError as unknown:
            error = str(unknown)
    return LeaderDecision(
        source=source,
        actions=()
        if applies
        else (*_set_current_revision(facts, rollout.recreate_revision), *_delete_leaders(facts, rollout.replaced)),
        applied=workload if applies else None,
        update_events=_update_events(facts, rollout),
        assessment=assessment,
        error=error,
        rollout=rollout,
    )


def _template_of(living: JSONObject | None, key: str) -> JSONObject | None:
    """Return the template of the existing StatefulSet if the StatefulSet has this revision.

    This avoids template changes that would replace all groups.
    """
    return None if living is None or groupname.revision_key(living) != key else meta.spec(living).get("template") or {}


def _update_events(facts: SetFacts, rollout: Rollout) -> tuple[Event, ...]:
    """Return the events for groups released by a lower partition. A higher partition has no events (unlike Q-10)."""
    current, step = rollout.current, rollout.step
    if facts.revision.is_new or current is None or step.partition >= current.partition:
        return ()
    note = f"Updating replica {step.partition}"
    if current.partition - 1 != step.partition:
        note = f"Updating replicas {step.partition} to {current.partition - 1} (inclusive)"
    return (decisionevents.updating(facts.obj, note),)


def _set_current_revision(facts: SetFacts, revision: str) -> tuple[Action, ...]:
    """Set the latest StatefulSet revision as the current revision, so that all leaders are created from it.

    If the manager lacks the permission, it reports this, and broken groups wait for the partition (docs/adr/0030).
    """
    if facts.leader_workload is None or not revision:
        return ()
    return (
        guarded_patch(
            STATEFULSETS,
            facts.leader_workload,
            {"status": outdatedleaders.set_current_revision(facts.leader_workload, revision)},
            subresource="status",
            if_present=True,
            if_permitted=True,
            on_failure=(decisionevents.failed_update(facts.obj, NOT_RENEWED),),
        ),
    )


def _delete_leaders(facts: SetFacts, replaced: Sequence[int]) -> tuple[Action, ...]:
    if not replaced:
        return ()
    leaders = facts.observed.groups
    groups = ((index, leaders[f"{facts.lws.name}-{index}"]) for index in replaced)
    return concurrently(
        delete_leader(facts, group, decisionevents.replacing_group_event(facts.obj, group.leader, index))
        for index, group in groups
    )
