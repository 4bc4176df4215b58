"""Defines the sets of a cluster at a point in time, which all commands and pages read first. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject, ObjectKey
from lwsctl.model.disaggregatedset import SetView, Shown, set_view
from lwsctl.model.leaderworkerset import View


class Cluster(Struct, frozen=True, kw_only=True, dict=True):
    """The LeaderWorkerSets and DisaggregatedSets of one or all namespaces at a point in time."""

    namespace: str = ""
    views: Sequence[View] = ()
    sets: Sequence[SetView] = ()

    def with_views(self, views: Sequence[View]) -> "Cluster":
        """Return the same cluster with other views of its LeaderWorkerSets.

        DisaggregatedSets contain the same views.
        """
        return build_cluster(views, [set_view.object for set_view in self.sets], self.namespace)

    @cached_property
    def owners(self) -> Mapping[ObjectKey, SetView]:
        """Return the DisaggregatedSet of each LeaderWorkerSet that is part of a DisaggregatedSet."""
        return {part.key: set_view for set_view in self.sets for part in set_view.parts}

    @property
    def roots(self) -> list[Shown]:
        """Return the DisaggregatedSets, and the LeaderWorkerSets that are not part of a DisaggregatedSet."""
        return [*self.sets, *(view for view in self.views if view.key not in self.owners)]

    def names(self, namespace: str) -> list[str]:
        """Return the names of the LeaderWorkerSets in a namespace."""
        return [view.name for view in self.views if view.namespace == namespace]

    def find(self, key: ObjectKey) -> View | None:
        """Return a LeaderWorkerSet, or None if it does not exist."""
        return next((view for view in self.views if view.key == key), None)

    def find_disaggregatedset(self, key: ObjectKey) -> SetView | None:
        """Return a DisaggregatedSet, or None if it does not exist."""
        return next((set_view for set_view in self.sets if set_view.key == key), None)

    def find_set(self, key: ObjectKey, *, is_disaggregatedset: bool) -> Shown | None:
        """Return the LeaderWorkerSet, or with `is_disaggregatedset` the DisaggregatedSet, with this name.

        Return None if it does not exist.
        """
        return self.find_disaggregatedset(key) if is_disaggregatedset else self.find(key)

    def members(self, key: ObjectKey, *, is_disaggregatedset: bool) -> Sequence[tuple[View, tuple[str, ...]]]:
        """Return the LeaderWorkerSets of a page and their names in rank paths.

        A single LeaderWorkerSet has no name.
        """
        item = self.find_set(key, is_disaggregatedset=is_disaggregatedset)
        if item is None:
            return ()
        return item.owners if isinstance(item, SetView) else [(item, ())]


def build_cluster(views: Sequence[View], sets: Iterable[JSONObject], namespace: str = "") -> Cluster:
    """Return the cluster with these LeaderWorkerSets and with the DisaggregatedSets of these objects."""
    return Cluster(namespace=namespace, views=views, sets=[set_view(obj, views) for obj in sets])
