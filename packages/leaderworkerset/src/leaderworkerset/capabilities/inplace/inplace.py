"""Selects the groups for in-place updates. Other groups are recreated (docs/adr/0024-update-in-place.md).

Input: a rollout step, the groups, the revisions. Output: the step, and the leaders to mark. The partition of the step
remains above the groups that are updated in place. The pod controller reads only the mark
(`capabilities/inplace/inplacesteps.py`).

`ROLLOUT` determines the budget. Each group that its partition would release is either recreated or marked. A marked
group is not ready until it is updated. Its leader then has the revision of the leader StatefulSet, so that the
partition can be lowered without a deletion. A group that is not ready is recreated, because this does not reduce
availability and no group remains between two revisions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid, not_supported
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Event, Patch, concurrently
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.capabilities.inplace import inplaceresources
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import outdatedleaders, revisions
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, descending_indexes, indexes_below
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.policies.gang import NO_GANG, NONE, Gang

IMAGE: Final = re.compile(r"spec\.leaderWorkerTemplate\.(leader|worker)Template\.spec\.containers\[\d+\]\.image")
"""The fields that can be updated in place, in addition to CPU and memory.

Fields of init containers are not included, because init containers do not run again.
"""


class InPlace(StrEnum):
    """Defines whether groups are updated in place never, if possible, or always."""

    OFF = ""
    IF_POSSIBLE = "IfPossible"
    ONLY = "Only"

    @property
    def is_wanted(self) -> bool:
        """Return whether groups are updated in place if possible."""
        match self:
            case InPlace.IF_POSSIBLE | InPlace.ONLY:
                return True
            case InPlace.OFF:
                return False
            case _:
                assert_never(self)

    @property
    def forbids_recreation(self) -> bool:
        """Return whether groups retain their revision if they cannot be updated in place."""
        match self:
            case InPlace.ONLY:
                return True
            case InPlace.OFF | InPlace.IF_POSSIBLE:
                return False
            case _:
                assert_never(self)


HELD: Final = decisionevents.EventKind("Warning", decisionevents.GROUPS_UPDATING, "Update")
"""Groups are neither updated in place nor recreated, or are recreated because their nodes do not resize pods."""

ALLOWED: Final = (InPlace.IF_POSSIBLE.value, InPlace.ONLY.value)


class Route(Struct, frozen=True, kw_only=True):
    """Defines how groups with older revisions are updated to the revision `key`.

    `obstacles` maps the revision of a group to the first field that requires a recreation, empty if no field does. The
    map is empty if no group is or must be updated in place.
    """

    key: str = ""
    setting: InPlace = InPlace.OFF
    obstacles: Mapping[str, str] = field(default_factory=dict)

    def with_rejected_groups(self, group_summary: GroupIndex) -> GroupIndex:
        """Return the group summary, including groups that cannot complete their current in-place update.

        Groups whose nodes rejected the resize are kept if groups may only be updated in place.
        """
        stranded = group_summary.updating & ~self._updatable_groups(group_summary)
        refused = 0 if self.setting.forbids_recreation else group_summary.rejected
        if not stranded and refused == group_summary.rejected:
            return group_summary
        return replace(group_summary, updating=group_summary.updating & ~stranded, stranded=stranded, rejected=refused)

    def release(self, statefulset: JSONObject, group_summary: GroupIndex, size: int, span: range) -> tuple[int, int]:
        """Return the groups in the released `span` of indexes that are updated in place, and the resulting partition.

        The partition protects each leader that the StatefulSet controller would replace although it must not be
        recreated. These include leaders that the controller, whose caches may be stale, has not counted as updated yet.
        An update that has started is completed even if the setting changes.
        """
        if not span or groupname.revision_key(statefulset) != self.key:
            return 0, span.start
        status, living = meta.status(statefulset), group_summary.members & ~group_summary.deleting
        current = living & group_summary.statefulset_revisions.get(str(status.get("updateRevision")), 0)
        is_counted = int(status.get("updatedReplicas") or 0) >= current.bit_count()
        outdated = living & ~(current if is_counted else current & ~indexes_below(current, span.stop))
        ready = group_summary.available_groups(size) & ~group_summary.leaders.get(self.key, 0)
        fresh = ready & self._updatable_groups(group_summary) if self.setting.is_wanted else 0
        unchanged = ready & ~self._updatable_groups(group_summary) if self.setting.forbids_recreation else 0
        inside = indexes_below(outdated, span.stop) & ~indexes_below(outdated, span.start)
        indexes = inside & ~current & (group_summary.updating | fresh)
        return indexes, max(span.start, (indexes | inside & (unchanged | current)).bit_length())

    def _updatable_groups(self, group_summary: GroupIndex) -> int:
        return sum(group_summary.leaders.get(revision, 0) for revision, why in self.obstacles.items() if not why)


def read(annotations: Mapping[str, str]) -> InPlace:
    """Return the setting. Values that admission would reject are ignored."""
    text = annotations.get(labels.IN_PLACE, "")
    return InPlace(text) if text in tuple(InPlace) else InPlace.OFF


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the error for an unknown value, or for any value if a Deployment manages the leaders.

    A ReplicaSet replaces each pod that differs from its template.
    """
    text, path = lws.metadata.annotations.get(labels.IN_PLACE), f"metadata.annotations.{labels.IN_PLACE}"
    if text is None:
        return
    if text not in ALLOWED:
        yield not_supported(path, text, ALLOWED)
    elif lws.spec.group_identity.is_hash:
        yield invalid(path, text, "in-place updates require groupIdentity Ordinal. Remove this annotation")


def find_current_route(facts: SetFacts) -> tuple[Route | None, GroupIndex]:
    """Return the in-place update to the current revision, or None if groups cannot be updated in place."""
    group_summary = facts.group_summary
    if labels.IN_PLACE not in facts.lws.metadata.annotations and not group_summary.updating:
        return None, group_summary
    return find_route(facts.obj, facts.observed.revisions, facts.revision.key, group_summary, facts.gang)


def decide(facts: SetFacts, leaders: LeaderDecision) -> LeaderDecision:
    """Mark the groups for in-place updates, and report the reasons why other groups cannot be updated in place."""
    rollout = leaders.rollout
    if rollout is None:
        return leaders
    group_summary = rollout.group_summary
    if leaders.applied is None and rollout.released | group_summary.updating:
        leaders = replace(leaders, actions=(*leaders.actions, *_mark_all(facts, group_summary, rollout.released)))
    if labels.IN_PLACE in facts.lws.metadata.annotations:
        leaders = replace(leaders, update_events=_events(facts, leaders, group_summary))
    return leaders


def _mark_all(facts: SetFacts, group_summary: GroupIndex, released: int) -> tuple[Action, ...]:
    living, current, key = facts.leader_workload, facts.current, facts.revision.key
    if living is None or current is None or current.revision != key or not outdatedleaders.is_observed(living):
        return ()
    groups = groups_to_mark(group_summary, facts.observed.groups, facts.lws.name, key, released)
    return concurrently(mark_leader(facts.obj, group, key, living) for group in groups)


def _events(facts: SetFacts, leaders: LeaderDecision, group_summary: GroupIndex) -> Sequence[Event]:
    """Return the events of an update, except for groups that were already updated in place."""
    if facts.revision.is_new:
        known, key = facts.observed.revisions, groupname.revision_key(facts.leader_workload or {})
        new = facts.revision.created or revisions.find_revision(known, facts.revision.key)
        return obstacle_events(facts.obj, known, key, new, facts.gang)
    if facts.current is None:
        return leaders.update_events
    released = indexes_below(group_summary.members, facts.current.partition)
    span = released & ~indexes_below(group_summary.members, leaders.source.partition)
    is_done = span and not span & ~group_summary.leaders.get(facts.revision.key, 0)
    return () if is_done else leaders.update_events


def find_route(
    obj: JSONObject, all_revisions: Sequence[JSONObject], key: str, group_summary: GroupIndex, gang: Gang
) -> tuple[Route, GroupIndex]:
    """Return the in-place update to the revision `key`, and a summary of all groups."""
    setting = read(meta.annotations(obj))
    own_revisions = revisions.owned_revisions(all_revisions, obj)
    new, bound = revisions.find_revision(own_revisions, key), _binding_setting(obj, gang)
    obstacles = {
        revision: ""
        if revision == key
        else bound or obstacle_between(revisions.find_revision(own_revisions, revision), new)
        for revision in group_summary.leaders
    }
    route = Route(key=key, setting=setting, obstacles=obstacles)
    return route, route.with_rejected_groups(group_summary)


def obstacle_between(old: JSONObject | None, new: JSONObject | None) -> str:
    """Return the reason why an in-place update between two revisions is impossible, or an empty string."""
    if old is None or new is None:
        return "the ControllerRevision"
    return obstacle((old.get("data") or {}).get("spec"), (new.get("data") or {}).get("spec"))


def obstacle(old: Any, new: Any) -> str:
    """Return the first different `spec` field that cannot be updated in place, or an empty string."""
    fixed = (
        path for path in differences(_revision_fields(old), _revision_fields(new), "spec") if not IMAGE.fullmatch(path)
    )
    return next(fixed, "") or inplaceresources.obstacle(old or {}, new or {})


def _revision_fields(spec: Any) -> Any:
    """Return the `spec` fields that are part of a revision, without CPU and memory."""
    template = (spec or {}).get("leaderWorkerTemplate") or {}
    templates = {
        name: inplaceresources.without_compute_resources(template[name])
        for name in inplaceresources.TEMPLATES
        if template.get(name)
    }
    return spec | {"leaderWorkerTemplate": template | templates} if templates else spec


def differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """Yield the paths of differences between two JSON values. For lists of different lengths, yield the list path.

    >>> list(differences({"a": [1, 2], "b": {}}, {"a": [1, 3], "c": 0}, "x"))
    ['x.a[1]', 'x.b', 'x.c']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            if (name in old) != (name in new):
                yield f"{path}.{name}"
            else:
                yield from differences(old[name], new[name], f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{number}]")
    elif old != new:
        yield path


def obstacle_events(
    obj: JSONObject, all_revisions: Sequence[JSONObject], old: str, new: JSONObject | None, gang: Gang
) -> tuple[Event, ...]:
    """Return one event with the reason why groups of the revision `old` cannot be updated in place."""
    setting = read(meta.annotations(obj))
    if new is None or not setting.is_wanted:
        return ()
    why = _binding_setting(obj, gang) or obstacle_between(
        revisions.find_revision(revisions.owned_revisions(all_revisions, obj), old), new
    )
    if not why:
        return ()
    kind, what = (
        (HELD, "the rollout is blocked")
        if setting.forbids_recreation
        else (decisionevents.updating, "groups are recreated")
    )
    return (kind(obj, f"Cannot update groups in place, so {what}: {why} cannot be changed in a running pod"),)


def _binding_setting(obj: JSONObject, gang: Gang) -> str:
    """Return the setting that requires objects named after the revision, or an empty string if there is none."""
    if meta.spec(obj).get("scheduling") is not None:
        return "spec.scheduling"
    choice = meta.annotations(obj).get(labels.GANG_SCHEDULER, "")
    is_bound = choice != NONE and gang is not NO_GANG
    return f"metadata.annotations[{labels.GANG_SCHEDULER}]" if is_bound else ""


def groups_to_mark(
    group_summary: GroupIndex, groups: Mapping[str, GroupFacts], name: str, key: str, released: int
) -> list[GroupFacts]:
    """Return the groups to mark, highest index first.

    These are released groups and groups with a new target revision.
    """
    candidates = (groups[f"{name}-{index}"] for index in descending_indexes(released | group_summary.updating))
    return [group for group in candidates if group.target_revision != key and not group.is_deleting]


def mark_leader(obj: JSONObject, group: GroupFacts, key: str, statefulset: JSONObject) -> Patch:
    """Return the action that marks a leader with the target revisions of the group and the leader StatefulSet."""
    annotations = {
        labels.IN_PLACE_REVISION: key,
        labels.IN_PLACE_STATEFULSET_REVISION: str(meta.status(statefulset)["updateRevision"]),
    }
    event = decisionevents.updating(obj, f"Updating the group of leader pod {group.leader} in place")
    return Patch(
        resource=PODS,
        key=ObjectKey(meta.namespace(obj), group.leader),
        patch={"metadata": {"uid": group.uid, "annotations": annotations}},
        if_present=True,
        on_success=(decisionevents.group_event(event, "Updating groups {numbers} in place", group.index),),
    )
