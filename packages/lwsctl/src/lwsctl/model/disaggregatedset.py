"""Defines the view of a DisaggregatedSet, with its roles and its LeaderWorkerSets. Pure.

The input is the object, and views of LeaderWorkerSets. The output is immutable values that commands show together
with LeaderWorkerSets.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api.disaggregatedset import has_scaler
from lwsctl.model.diagnosis import NOT_DIAGNOSED, Diagnosis
from lwsctl.model.leaderworkerset import View

Owners: TypeAlias = Mapping[ObjectKey, Sequence[str]]
"""The name and role of each LeaderWorkerSet for rank paths. It is empty outside a DisaggregatedSet."""


class RoleCount(Struct, frozen=True):
    """The number of groups of a role, in all slices and revisions.

    `updated` is the number of groups that have the latest revision, according to the status.
    """

    name: str
    ready: int
    desired: int
    updated: int = 0

    def __str__(self) -> str:
        return f"{self.name} {self.ready}/{self.desired}"


class SetView(Struct, frozen=True, kw_only=True):
    """A DisaggregatedSet with its roles in spec order, and its parts sorted by slice, role and revision."""

    name: str
    namespace: str
    created: str
    roles: tuple[RoleCount, ...]
    parts: tuple[View, ...]
    object: JSONObject
    diagnosis: Diagnosis = NOT_DIAGNOSED
    """The most relevant diagnosis of the set itself or of one of its parts."""

    @property
    def key(self) -> ObjectKey:
        """Return the namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def leaderworkersets(self) -> tuple[View, ...]:
        """Return the LeaderWorkerSets of the DisaggregatedSet."""
        return self.parts

    @property
    def ready(self) -> int:
        """Return the number of ready groups of all roles."""
        return sum(role.ready for role in self.roles)

    @property
    def desired(self) -> int:
        """Return the desired number of groups of all roles."""
        return sum(role.desired for role in self.roles)

    @property
    def updated(self) -> int:
        """Return the number of groups of all roles that have the latest revision, according to the status."""
        return sum(role.updated for role in self.roles)

    @property
    def owners(self) -> list[tuple[View, tuple[str, ...]]]:
        """Return each part with its names for rank paths, which are a unique name and the role."""
        counts = Counter(part.role for part in self.parts)
        return [
            (
                part,
                (part.role if counts[part.role] == 1 else f"{part.slice}-{part.set_revision}-{part.role}", part.role),
            )
            for part in self.parts
        ]

    @property
    def is_updating(self) -> bool:
        """Return whether there are LeaderWorkerSets of several revisions."""
        return len({part.set_revision for part in self.parts}) > 1

    @property
    def is_settled(self) -> bool:
        """Return whether the status reports the latest spec and all groups of older revisions are deleted."""
        observed = meta.is_observed(self.object)
        return observed and meta.is_condition_true(self.object, "Available") and not self.is_updating

    @property
    def is_ready(self) -> bool:
        """Return whether no rollout is in progress and all groups are ready."""
        return self.is_settled and all(part.is_ready for part in self.parts if part.desired)

    @property
    def rollout(self) -> str:
        """Return the progress of the rollout."""
        if self.is_updating:
            return f"updated {self.updated} of {self.desired} group{'' if self.desired == 1 else 's'}"
        return "complete" if self.is_settled else "progressing"


Shown: TypeAlias = View | SetView
"""The objects that a command shows by name."""


def set_view(obj: JSONObject, views: Iterable[View]) -> SetView:
    """Build the view of a DisaggregatedSet from the LeaderWorkerSets that it controls."""
    own = [view for view in views if meta.is_controlled(view.object, obj)]
    return SetView(
        name=meta.name(obj),
        namespace=meta.namespace(obj),
        created=meta.metadata(obj).get("creationTimestamp", ""),
        roles=tuple(_count_groups(obj, role, own) for role in meta.spec(obj).get("roles") or []),
        parts=tuple(sorted(own, key=lambda part: (part.slice.zfill(9), part.role, part.set_revision))),
        object=obj,
    )


def _count_groups(obj: JSONObject, role: JSONObject, parts: Iterable[View]) -> RoleCount:
    """Count the groups of a role. If a role has a scaler, its LeaderWorkerSets contain the desired number."""
    own = [part for part in parts if part.role == role.get("name")]
    if has_scaler(role):
        desired = sum(view.desired for view in own)
    else:
        desired = int((role.get("spec") or {}).get("replicas", 1)) * int(meta.spec(obj).get("slices", 1))
    name, statuses = str(role.get("name")), meta.status(obj).get("roleStatuses") or ()
    updated = sum(int(status.get("updatedReplicas", 0)) for status in statuses if status.get("name") == name)
    return RoleCount(name, sum(view.ready for view in own), desired, updated)


def rank_path(place: str, owners: Sequence[str]) -> str:
    """Return the path of a rank, with the name of its LeaderWorkerSet as prefix, if any.

    >>> rank_path("0/1", ()), rank_path("0/1", ("prefill", "prefill"))
    ('0/1', 'prefill/0/1')
    """
    return "/".join([*owners[:1], place])


def leaderworkersets(items: Iterable[Shown]) -> list[View]:
    """Return the displayed LeaderWorkerSets, including the LeaderWorkerSets of DisaggregatedSets."""
    return [view for item in items for view in item.leaderworkersets]
