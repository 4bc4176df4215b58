"""Checks that rollouts with broken groups do not exceed the limit of unavailable groups.

At the limit, no ready group is replaced.

In: a write of a manager as it arrives, and the groups of the API server. Out: sentences. A manager gives up a group if it
lowers the partition of the leaders' StatefulSet to the group's index or below, or if it deletes a leader of an older
revision. Broken groups count as unavailable (docs/adr/0030). A group that changed a moment ago counts as the manager may
still see it.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final

import msgspec
from tests.simulation.checks.facts import Facts, Group, Index, Target

from kuberuntime.client.transport import Request
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import groupname
from leaderworkerset.api.resources import LEADERWORKERSETS

MARGIN: Final = 3.0
"""The time in seconds, on top of the message delay, in which a manager may not observe a change.

Its requests can be late, and it can be paused.
"""


class Releases:
    """Records which groups are available, when they became available, and which groups managers replace."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._down: dict[Index, float] = {}
        self.lag = 0.0
        """The delay of observers in seconds."""
        self.is_disturbed: Callable[[float], bool] = lambda now: False
        """Returns whether a manager may have an outdated state after failed requests or closed watches."""

    def observe(self, groups: Collection[Group], now: float) -> None:
        """Record the available groups after a change."""
        available = {group.index for group in groups if group.is_available}
        self._down = {group.index: self._down.get(group.index, now) for group in groups if group.index not in available}

    def given_up(self, target: Target, request: Request, now: float) -> Iterator[str]:
        """Yield an error if a write releases a ready group beyond the limit."""
        groups = {index: group for index, group in self._facts.groups().items() if self._facts.is_current(group)}
        going = self._going(target, request, groups)
        if not going or not self._facts.specs or self.is_disturbed(now):
            return
        recent = {index for index, since in self._down.items() if now - since <= self.lag + MARGIN}
        staying = {index for index, group in groups.items() if group.is_available or index in recent} - going
        exhausted = sum(groupname.is_exhausted(group.leader) for group in groups.values())
        missing = sum(index not in groups for index in range(max(map(_replicas, self._facts.specs))))
        if len(staying) + missing * bool(recent) < self._facts.floor() - exhausted:
            yield (
                f"{request.method} {target} gives up groups {sorted(going, key=str)}: {len(staying)} stay ready,"
                f" {self._facts.floor()} must"
            )

    def _going(self, target: Target, request: Request, groups: dict[Index, Group]) -> set[Index]:
        """Return the available groups that the write and earlier writes release for a rollout."""
        outdated = {
            index for index, group in groups.items() if group.is_available and self._facts.is_outdated(group.leader)
        }
        if request.method == "DELETE" and target.resource == PODS.group_resource:
            return {
                index
                for index in outdated
                if meta.name(groups[index].leader) == target.name and not groups[index].is_hurt
            }
        keeper = self._facts.objects.get(STATEFULSETS.group_resource, {}).get(target.name)
        if (
            request.method != "PATCH"
            or target.resource != STATEFULSETS.group_resource
            or target.subresource
            or not keeper
        ):
            return set()
        sent = msgspec.json.decode(request.body)
        if (meta.controller_of(keeper) or {}).get("kind") != LEADERWORKERSETS.kind or _key(sent) != _key(keeper):
            return set()
        before, after = _partition(keeper), _partition(sent)
        released: set[Index] = {index for index in outdated if isinstance(index, int) and index >= after}
        is_lower = any(isinstance(index, int) and index < before for index in released)
        return released if is_lower else set()


def _replicas(spec: JSONObject) -> int:
    return int(spec["replicas"])


def _key(statefulset: JSONObject) -> str:
    return groupname.revision_key(meta.spec(statefulset).get("template") or {})


def _partition(statefulset: JSONObject) -> int:
    rolling = (meta.spec(statefulset).get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(rolling.get("partition") or 0)
