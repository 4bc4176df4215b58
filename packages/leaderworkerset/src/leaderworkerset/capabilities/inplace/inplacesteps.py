"""Updates a marked group to a different revision in place, step by step (docs/adr/0024-update-in-place.md).

Input: an existing group whose leader is marked with a revision (`capabilities/inplace/inplace.py`). Output: the next
writes. `STEPS` lists the steps, and the first row whose condition is true applies. Each decision depends only on
stored objects, so a manager can exit after any write. After the last step, the StatefulSets are in the same state as
if they had created the pods. Each pod has the label of the StatefulSet's revision, so the StatefulSet does not
replace pods.

```
marked ─► HOLD ─► AWAIT_CONTROLLER ─► PATCH_WORKERS ─► PATCH_LEADER ─► AWAIT_WORKERS ─► LET_GO ─► done
          the workers' StatefulSet    images, labels, CPU and memory    their new        it may replace pods again,
          gets the new template, and  of all pods, the leader's as      containers are   and finds none to replace
          replaces no pods            the last                          ready
```
RESIZE repeats a resize that was lost between the two writes to a pod. REFUSE marks a group whose nodes do not resize
its pods: it is recreated (`core/leaderworkerset/rollingupdate.py`), unless groups may only be updated in place.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import Action, Concurrently, Finally, Patch, concurrently, guarded_patch, identified_patch
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.capabilities.inplace import inplace, inplacegroups, inplacepods, inplaceresources
from leaderworkerset.capabilities.inplace.inplaceresources import ResourceField
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import groupstate, revisions
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, PolicyDecision

GRACE: Final = 30
"""The default termination grace period in seconds."""

LONGEST_GRACE: Final = 24 * 3600
"""The maximum grace period in seconds. A longer `terminationGracePeriodSeconds` is not honored."""

START: Final = timedelta(seconds=30)
"""The time within which a kubelet starts a container twice if the node already has the image."""


class InPlaceStep(StrEnum):
    """The next step of an in-place update."""

    DONE = "done"
    AWAIT_REVISION = "await revision"
    HOLD = "hold"
    AWAIT_CONTROLLER = "await controller"
    PATCH_WORKERS = "patch workers"
    PATCH_LEADER = "patch leader"
    REFUSE = "refuse"
    RESIZE = "resize"
    AWAIT_WORKERS = "await workers"
    LET_GO = "let go"
    AWAIT_LEADER = "await leader"


class MarkedGroup(Struct, frozen=True, dict=True):
    """A group whose leader is marked for an in-place update."""

    group: LiveGroup

    @property
    def workers(self) -> JSONObject | None:
        """Return the worker StatefulSet, or None if it does not exist."""
        return self.group.workers

    @property
    def key(self) -> str:
        """Return the target revision of the group."""
        return meta.annotations(self.group.leader).get(labels.IN_PLACE_REVISION, "")

    @cached_property
    def target(self) -> LeaderWorkerSet | None:
        """Return the LeaderWorkerSet at the target revision, or None if it does not exist.

        Raise ValueError if it is invalid.
        """
        return self.at_revision(self.key)

    def at_revision(self, key: str) -> LeaderWorkerSet | None:
        """Return the LeaderWorkerSet at a revision, or None if the revision does not exist."""
        group = self.group
        revision = revisions.find_revision(revisions.owned_revisions(group.revisions, group.obj), key)
        return None if revision is None else leaderworkerset.decode(revisions.restore(group.obj, revision))

    @cached_property
    def members(self) -> Sequence[JSONObject]:
        """Return the workers of the StatefulSet that are not terminating."""
        if self.workers is None:
            return ()
        return [
            pod
            for pod in self.group.objects.pods
            if meta.is_controlled(pod, self.workers) and not meta.is_deleting(pod)
        ]

    @cached_property
    def pods(self) -> Sequence[JSONObject]:
        """Return the leader and the workers."""
        return [self.group.leader, *self.members]

    @property
    def is_in_place_only(self) -> bool:
        """Return whether the group may be updated only in place."""
        return inplace.read(meta.annotations(self.group.obj)).forbids_recreation

    @cached_property
    def rejections(self) -> Sequence[tuple[JSONObject, str]]:
        """Return the pods that cannot be resized, with the reasons."""
        return [(pod, why) for pod in self.pods if (why := inplaceresources.rejection(pod))]

    @property
    def worker_revision(self) -> str:
        """Return the StatefulSet revision for the worker pods."""
        return str(meta.status(self.workers or {}).get("updateRevision") or "")

    @cached_property
    def outdated_workers(self) -> Sequence[JSONObject]:
        """Return the workers with a different revision."""
        return [pod for pod in self.members if not self.has_revisions(pod, self.worker_revision)]

    @property
    def has_all_workers(self) -> bool:
        """Return whether all workers exist."""
        return self.workers is None or len(self.members) >= int(meta.spec(self.workers).get("replicas", 1))

    @property
    def status_counts_workers(self) -> bool:
        """Return whether the StatefulSet status counts all workers as updated. The status can be outdated."""
        status = meta.status(self.workers or {})
        return self.workers is None or int(status.get("updatedReplicas") or 0) >= len(self.members)

    @property
    def leader_revision(self) -> str:
        """Return the StatefulSet revision for the leader."""
        return meta.annotations(self.group.leader).get(labels.IN_PLACE_STATEFULSET_REVISION, "")

    def has_revisions(self, pod: JSONObject, made_of: str) -> bool:
        """Return whether a pod has the target revision and the specified StatefulSet revision."""
        own = meta.labels(pod)
        return (groupname.revision_key(pod), own.get(labels.STATEFULSET_REVISION)) == (self.key, made_of)


def _pause_statefulset(now: MarkedGroup) -> tuple[Action, ...]:
    """Set the worker StatefulSet template to the target revision, and prevent pod replacement."""
    assert now.workers is not None and now.target is not None  # noqa: PT018, S101 - the rows before say so
    before, after = now.at_revision(groupname.revision_key(now.workers)), _template(now.target, is_leader=False)
    amounts = inplaceresources.changed_quantities(None if before is None else _template(before, is_leader=False), after)
    own = {"metadata": {"labels": {labels.TEMPLATE_REVISION_HASH: now.key}}}
    template = own | {"spec": _containers(_images(after), inplaceresources.container_resources(amounts))}
    strategy = {"type": groupstate.HELD, "rollingUpdate": None}
    return (_strategic(now.workers, own | {"spec": {"updateStrategy": strategy, "template": template}}),)


def _resume_statefulset(now: MarkedGroup) -> tuple[Action, ...]:
    """Allow the worker StatefulSet to replace pods, because all its pods have the target revision."""
    assert now.workers is not None  # noqa: S101 - the row says so
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    return (guarded_patch(STATEFULSETS, now.workers, {"spec": {"updateStrategy": strategy}}),)


def _patch(now: MarkedGroup, pod: JSONObject, made_of: str) -> tuple[Action, ...]:
    """Update the images and labels of a pod, record its running containers, and resize the pod."""
    assert now.target is not None  # noqa: S101 - the rows before say so
    is_leader = groupname.is_leader(pod)
    before, after = now.at_revision(groupname.revision_key(pod)), _template(now.target, is_leader=is_leader)
    old = None if before is None else _template(before, is_leader=is_leader)
    known = {} if old is None else _images(old)
    changed = {name: image for name, image in _images(after).items() if known.get(name) != image}
    amounts = inplaceresources.read(pod) | inplaceresources.changed_quantities(old, after)
    ended = now.group.now + _grace_period(after) + START
    notes = {labels.IN_PLACE_BEFORE: inplacepods.record(pod, changed, timestamps.render(ended))} if changed else {}
    notes |= {labels.IN_PLACE_RESOURCES: inplaceresources.record(amounts)} if amounts else {}
    own: JSONObject = {"labels": {labels.TEMPLATE_REVISION_HASH: now.key, labels.STATEFULSET_REVISION: made_of}}
    own |= {"annotations": notes} if notes else {}
    patch = _strategic(pod, {"metadata": own} | ({"spec": _containers(changed, {})} if changed else {}))
    return (patch, *_resize(now, pod, amounts))


def _resize(now: MarkedGroup, pod: JSONObject, amounts: Mapping[ResourceField, str]) -> tuple[Action, ...]:
    """Set the missing CPU and memory of a pod. Only its UID is a precondition, after the last patch.

    The API server would reject the same resize again until the user changes it. If the setting is `Only`, the group
    waits.
    """
    due = inplaceresources.missing_quantities(pod, amounts)
    if not due or (inplacegroups.is_rejected(now.group.leader) and not now.is_in_place_only):
        return ()
    change = {"spec": _containers({}, inplaceresources.container_resources(due))}
    failed = decisionevents.failed_update(now.group.obj, f"Cannot resize pod {meta.name(pod)}: {{error}}", pod)
    patch = identified_patch(PODS, pod, change, subresource="resize", kind="strategic", on_failure=(failed,))
    return (Finally(actions=(patch,), on_rejection=(_mark_rejected(now),)),)


def _resize_all(now: MarkedGroup) -> tuple[Action, ...]:
    return (Concurrently(sequences=tuple(_resize(now, pod, inplaceresources.read(pod)) for pod in now.pods)),)


def _reject(now: MarkedGroup) -> tuple[Action, ...]:
    """Mark the leader once for each revision."""
    pod, why = now.rejections[0]
    what = "its group is unchanged" if now.is_in_place_only else "its group is recreated"
    event = inplace.HELD(now.group.obj, f"Cannot resize pod {meta.name(pod)}, so {what}: {why}", pod)
    return (replace(_mark_rejected(now), on_success=(event,)),)


def _mark_rejected(now: MarkedGroup) -> Patch:
    return identified_patch(PODS, now.group.leader, {"metadata": {"annotations": {labels.IN_PLACE_REFUSED: now.key}}})


def _remove_record(now: MarkedGroup) -> tuple[Action, ...]:
    """Remove the resource record, which is no longer required."""
    records = (labels.IN_PLACE_RESOURCES, labels.IN_PLACE_REFUSED)
    change = {"metadata": {"annotations": dict.fromkeys(records)}}
    pods = [pod for pod in now.pods if not meta.annotations(pod).keys().isdisjoint(records)]
    return concurrently(guarded_patch(PODS, pod, change) for pod in pods)


def _is_updated(pod: JSONObject) -> bool:
    return groupstate.is_pod_ready(pod) and inplacepods.is_update_complete(pod)


def _strategic(obj: JSONObject, change: JSONObject) -> Patch:
    """Return a strategic merge patch with the observed resourceVersion of the object as a precondition."""
    resource = PODS if obj["kind"] == PODS.kind else STATEFULSETS
    return guarded_patch(resource, obj, change, kind="strategic")


def _template(lws: LeaderWorkerSet, *, is_leader: bool) -> JSONObject:
    return lws.leader_template if is_leader else lws.spec.leader_worker_template.worker_template


def _grace_period(template: JSONObject) -> timedelta:
    seconds = meta.spec(template).get("terminationGracePeriodSeconds")
    return timedelta(seconds=min(seconds, LONGEST_GRACE) if isinstance(seconds, int) else GRACE)


def _images(template: JSONObject) -> Mapping[str, str]:
    return {
        container["name"]: container["image"]
        for container in meta.spec(template).get("containers") or []
        if container.get("image")
    }


def _containers(images: Mapping[str, str], resources: Mapping[str, JSONObject]) -> JSONObject:
    names = dict.fromkeys((*images, *resources))
    return {
        "containers": [
            {"name": name}
            | ({"image": images[name]} if name in images else {})
            | ({"resources": resources[name]} if name in resources else {})
            for name in names
        ]
    }


class StepRule(NamedTuple):
    """An update step with its condition and its writes."""

    step: InPlaceStep
    applies: Callable[[MarkedGroup], bool]
    actions: Callable[[MarkedGroup], tuple[Action, ...]] = lambda _: ()


STEPS: Final = (
    StepRule(
        InPlaceStep.DONE, lambda now: not inplacegroups.updating_to(now.group.leader, now.workers), _remove_record
    ),
    StepRule(InPlaceStep.AWAIT_REVISION, lambda now: now.target is None),
    StepRule(
        InPlaceStep.HOLD,
        lambda now: now.workers is not None and groupname.revision_key(now.workers) != now.key,
        _pause_statefulset,
    ),
    StepRule(
        InPlaceStep.AWAIT_CONTROLLER,
        lambda now: now.workers is not None and not (meta.is_observed(now.workers) and now.worker_revision),
    ),
    StepRule(
        InPlaceStep.PATCH_WORKERS,
        lambda now: bool(now.outdated_workers),
        lambda now: (
            Concurrently(sequences=tuple(_patch(now, pod, now.worker_revision) for pod in now.outdated_workers)),
        ),
    ),
    StepRule(
        InPlaceStep.PATCH_LEADER,
        lambda now: now.has_all_workers and not now.has_revisions(now.group.leader, now.leader_revision),
        lambda now: _patch(now, now.group.leader, now.leader_revision),
    ),
    StepRule(
        InPlaceStep.REFUSE,
        lambda now: bool(now.rejections) and not inplacegroups.is_rejected(now.group.leader),
        _reject,
    ),
    StepRule(
        InPlaceStep.RESIZE,
        lambda now: any(_resize(now, pod, inplaceresources.read(pod)) for pod in now.pods),
        _resize_all,
    ),
    StepRule(
        InPlaceStep.AWAIT_WORKERS,
        lambda now: not (now.has_all_workers and now.status_counts_workers and all(map(_is_updated, now.members))),
    ),
    StepRule(
        InPlaceStep.LET_GO,
        lambda now: now.workers is not None and groupstate.is_paused(now.workers),
        _resume_statefulset,
    ),
    StepRule(InPlaceStep.AWAIT_LEADER, lambda _: True),
)
"""The steps in order. If a step does not write, the next change to an observed object continues the update."""


def next_step(marked: MarkedGroup) -> StepRule:
    """Return the next step of a group. Raise ValueError if its revision is invalid."""
    return next(row for row in STEPS if row.applies(marked))


def decide(group: LiveGroup) -> PolicyDecision:
    """Return the next writes of an in-place update, or none for other groups."""
    if labels.IN_PLACE_REVISION not in meta.annotations(group.leader):
        return NOTHING
    workers = group.workers
    if workers is not None and meta.is_of_predecessor(workers, group.leader):
        return NOTHING
    if workers is None and groupstate.original_size(group.leader) != 1:
        return NOTHING  # first created from the leader's revision
    marked = MarkedGroup(group)
    return PolicyDecision(actions=next_step(marked).actions(marked))
