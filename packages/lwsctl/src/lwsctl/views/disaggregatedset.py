"""The view of a DisaggregatedSet: its roles, and the LeaderWorkerSets that it owns. Pure.

In: the object, and views of LeaderWorkerSets. Out: immutable values that commands show together with LeaderWorkerSets.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api.disaggregatedset import REVISION, ROLE, SLICE, has_scaler
from lwsctl.views.groups import View
from lwsctl.views.wording import counted

Owners: TypeAlias = Mapping[ObjectKey, Sequence[str]]
"""The names of LeaderWorkerSets in the places of their ranks: the own name, and the role; none outside a DisaggregatedSet."""


class PartView(Struct, frozen=True):
    """A LeaderWorkerSet that belongs to a DisaggregatedSet, for one role, slice and revision."""

    view: View

    @property
    def role(self) -> str:
        """Return the name of the role."""
        return meta.labels(self.view.object).get(ROLE, "")

    @property
    def slice(self) -> str:
        """Return the number of the slice. Objects that were created before slices existed belong to slice 0."""
        return meta.labels(self.view.object).get(SLICE) or "0"

    @property
    def revision(self) -> str:
        """Return the revision of the DisaggregatedSet that it was created from."""
        return meta.labels(self.view.object).get(REVISION, "")


class RoleCount(Struct, frozen=True):
    """The number of groups in a role, in all slices and revisions."""

    name: str
    ready: int
    desired: int

    def __str__(self) -> str:
        return f"{self.name} {self.ready}/{self.desired}"


class SetView(Struct, frozen=True, kw_only=True):
    """A DisaggregatedSet, its roles in the order of the spec, and its parts sorted by slice, role and revision."""

    name: str
    namespace: str
    created: str
    roles: tuple[RoleCount, ...]
    parts: tuple[PartView, ...]
    updated: int
    """The number of groups in the latest revision, according to the status."""
    object: JSONObject

    @property
    def key(self) -> ObjectKey:
        """Return the namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def ready(self) -> int:
        """Return the number of ready groups in all roles."""
        return sum(role.ready for role in self.roles)

    @property
    def desired(self) -> int:
        """Return the desired number of groups in all roles."""
        return sum(role.desired for role in self.roles)

    @property
    def owners(self) -> list[tuple[View, tuple[str, ...]]]:
        """Return each part with its names in places of ranks: a unique name, and the role."""
        counts = Counter(part.role for part in self.parts)
        return [
            (
                part.view,
                (part.role if counts[part.role] == 1 else f"{part.slice}-{part.revision}-{part.role}", part.role),
            )
            for part in self.parts
        ]

    @property
    def is_updating(self) -> bool:
        """Return whether LeaderWorkerSets of several revisions exist."""
        return len({part.revision for part in self.parts}) > 1

    @property
    def is_settled(self) -> bool:
        """Return whether the status reports the latest spec, and no group of an older revision remains."""
        observed = meta.is_observed(self.object)
        return observed and meta.is_condition_true(self.object, "Available") and not self.is_updating

    @property
    def is_ready(self) -> bool:
        """Return whether no rollout is in progress and all groups are ready."""
        return self.is_settled and all(part.view.is_ready for part in self.parts if part.view.desired)

    @property
    def rollout(self) -> str:
        """Return the progress of the rollout."""
        if self.is_updating:
            return f"updated {self.updated} of {counted(self.desired, 'group')}"
        return "complete" if self.is_settled else "progressing"


Shown: TypeAlias = View | SetView
"""The objects that a command shows, by name."""


def set_view(obj: JSONObject, views: Iterable[View]) -> SetView:
    """Build the view of a DisaggregatedSet from the LeaderWorkerSets that it controls."""
    own = [PartView(view) for view in views if meta.is_controlled(view.object, obj)]
    statuses = meta.status(obj).get("roleStatuses") or []
    return SetView(
        name=meta.name(obj),
        namespace=meta.namespace(obj),
        created=meta.metadata(obj).get("creationTimestamp", ""),
        roles=tuple(_count(obj, role, own) for role in meta.spec(obj).get("roles") or []),
        parts=tuple(sorted(own, key=lambda part: (part.slice.zfill(9), part.role, part.revision))),
        updated=sum(int(status.get("updatedReplicas", 0)) for status in statuses),
        object=obj,
    )


def _count(obj: JSONObject, role: JSONObject, parts: Iterable[PartView]) -> RoleCount:
    """Count the groups in a role. If the role has a scaler, the LeaderWorkerSets have the desired number."""
    own = [part.view for part in parts if part.role == role.get("name")]
    if has_scaler(role):
        desired = sum(view.desired for view in own)
    else:
        desired = int((role.get("spec") or {}).get("replicas", 1)) * int(meta.spec(obj).get("slices", 1))
    return RoleCount(str(role.get("name")), sum(view.ready for view in own), desired)


def placed(place: str, owners: Sequence[str]) -> str:
    """Return the place of a rank after the name of its LeaderWorkerSet, if it has one.

    >>> placed("0/1", ()), placed("0/1", ("prefill", "prefill"))
    ('0/1', 'prefill/0/1')
    """
    return "/".join([*owners[:1], place])


def leaderworkersets(views: Iterable[Shown]) -> list[View]:
    """Return the displayed LeaderWorkerSets, including those of DisaggregatedSets."""
    return [
        view
        for view_or_set in views
        for view in ([part.view for part in view_or_set.parts] if isinstance(view_or_set, SetView) else [view_or_set])
    ]
