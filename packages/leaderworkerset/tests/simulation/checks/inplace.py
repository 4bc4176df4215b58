"""Defines additional invariants of LeaderWorkerSets with in-place updates (see `invariants.py`).

- If only images and resources ever changed, no available group is deleted for it, neither by the partition nor by a
  manager, unless no node can provide these resources.
- While a group is updated, its pods run different images; once the LeaderWorkerSet is at rest, all run the declared
  images, with the declared resources.
- A group that is being updated counts against the bounds of the rollout, from its mark on, as other groups may break
  before its containers end.
"""

import json
from typing import Final

from tests.simulation.checks.facts import Group, Index
from tests.simulation.checks.invariants import PATCHED, Invariants, what

from kuberuntime.clock import Clock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import groupname, labels
from leaderworkerset.capabilities.inplace import inplacegroups
from leaderworkerset.core.leaderworkerset.revisions import COVERED
from localkube.apiserver.storage.store import Change, Store

ENDED: Final = "OnDelete"


class InPlaceInvariants(Invariants):
    """Checks during a simulation of in-place updates."""

    patched = PATCHED | {PODS.group_resource}

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock)
        self._whole_since = dict.fromkeys(_whole(self.facts.groups()), 0.0)

    def _check_groups(self, change: Change) -> None:
        if change.key.resource == PODS.group_resource and change.type != "DELETED":
            self._check_end(change)
        super()._check_groups(change)

    def _judge(self, groups: dict[Index, Group], change: Change) -> None:
        now = self._clock.monotonic()
        self._whole_since = {index: self._whole_since.get(index, now) for index in _whole(groups)}
        super()._judge(groups, change)

    def _is_up(self, group: Group) -> bool:
        return super()._is_up(group) and not self.facts.is_updating(group)

    def _check_end(self, change: Change) -> None:
        """Check that no leader is deleted because of image changes alone."""
        leader, before = change.object, change.previous
        if not meta.is_deleting(leader) or before is None or meta.is_deleting(before):
            return
        group = self.facts.group_of(leader)
        if group is None or self._is_tolerant or group.is_hurt or group.has_failed or group.index in self._excused:
            return
        if inplacegroups.is_rejected(leader):
            return
        wanted = self._replicas()
        if group.index in self._settled() and isinstance(group.index, int) and group.index < wanted:
            self._violate(
                f"group {group.index} was deleted by {what(change)}, though only images and resources changed"
            )

    def _replicas(self) -> int:
        """Return the index below which no group may be deleted.

        Return 0 if fields other than images and resources changed.
        """
        specs = self.facts.specs
        if len({json.dumps(_without_images(spec), sort_keys=True) for spec in specs}) != 1:
            return 0
        return min(int(spec["replicas"]) for spec in specs)

    def _settled(self) -> set[Index]:
        """Return the groups that have been available for longer than the delay of all observers."""
        now = self._clock.monotonic()
        return {index for index, since in self._whole_since.items() if since <= now - self.lag}

    def _check_revisions(self, groups: dict[Index, Group], change: Change) -> None:
        """Exclude groups that are being updated, because their containers are replaced one by one."""
        super()._check_revisions({index: one for index, one in groups.items() if not _is_updating(one)}, change)

    def unanswered_failures(self) -> list[str]:
        """Also return the groups whose update is not complete in a stable state."""
        groups = sorted(self.facts.groups().items())
        over = {meta.name(one.leader) for _, one in groups if groupname.is_finished(one.leader)}
        left = [f"group {index} is between two revisions"
                for index, one in groups
                if meta.name(one.leader) not in over and _is_mixed(one)]  # fmt: skip
        held = [f"StatefulSet {name} replaces no pods"
                for name, one in self.facts.objects.get(STATEFULSETS.group_resource, {}).items()
                if name not in over and meta.spec(one)["updateStrategy"]["type"] == ENDED]  # fmt: skip
        return [*super().unanswered_failures(), *left, *held]


def _whole(groups: dict[Index, Group]) -> list[Index]:
    return [index for index, group in groups.items() if group.is_available]


def _is_updating(group: Group) -> bool:
    return labels.IN_PLACE_REVISION in meta.annotations(group.leader)


def _is_mixed(group: Group) -> bool:
    pods = (group.leader, *group.workers)
    revisions = {meta.labels(pod).get(labels.TEMPLATE_REVISION_HASH) for pod in pods}
    running = [(meta.status(pod).get("containerStatuses") or [{}])[0] for pod in pods]
    return len(revisions) > 1 or list(map(_run, running)) != [_run(meta.spec(pod)["containers"][0]) for pod in pods]


def _run(container: JSONObject) -> tuple[str | None, JSONObject]:
    return container.get("image"), container.get("resources") or {}


def _without_images(spec: JSONObject) -> JSONObject:
    found: JSONObject = json.loads(json.dumps({name: spec.get(name) for name in COVERED}))
    for template in (found["leaderWorkerTemplate"].get(name) for name in ("leaderTemplate", "workerTemplate")):
        for container in template["spec"]["containers"] if template else ():
            container.pop("image")
            container.get("resources", {}).pop("requests", None)
    return found
