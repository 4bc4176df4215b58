"""Defines the snapshot of the cluster that all pages show, with the diagnosis of each set. Pure."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from msgspec import field
from msgspec.structs import replace

from kuberuntime.objects.meta import ObjectKey
from lwsctl.dashboard.setorder import Place, SetOrder
from lwsctl.diagnosis import current
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.cluster import Cluster
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.leaderworkerset import View


class Snapshot(Cluster, frozen=True, kw_only=True):
    """All sets in a namespace at a point in time. Each set is diagnosed when a page first requires it.

    `connection_error` is the reason why it may be out of date, and `last_response` the time of the last answer of the API server. `commands`
    address the same cluster.
    """

    now: datetime
    diagnoses: Mapping[ObjectKey, Diagnosis] = field(default_factory=dict)
    disaggregatedset_diagnoses: Mapping[ObjectKey, Diagnosis] = field(default_factory=dict)
    connection_error: str = ""
    last_response: datetime | None = None
    order: SetOrder = SetOrder()
    commands: Commands = Commands()

    @cached_property
    def _diagnosed(self) -> dict[Place, Shown]:
        return {}

    def with_diagnosis(self, view: View) -> View:
        """Return a LeaderWorkerSet with its diagnosis."""
        place = set_location(view)
        if place not in self._diagnosed:
            last = self.diagnoses.get(view.key)
            self._diagnosed[place] = replace(view, diagnosis=current.diagnose_view(view, last, self.now, self.commands))
        return self._diagnosed[place]  # type: ignore[return-value]  # the place contains the kind

    def disaggregatedset_with_diagnosis(self, set_view: SetView) -> SetView:
        """Return a DisaggregatedSet and its LeaderWorkerSets with their diagnoses."""
        place = set_location(set_view)
        if place not in self._diagnosed:
            set_view = replace(set_view, parts=tuple(map(self.with_diagnosis, set_view.parts)))
            self._diagnosed[place] = replace(
                set_view,
                diagnosis=current.diagnose_disaggregatedset(
                    set_view, self.disaggregatedset_diagnoses.get(set_view.key)
                ),
            )
        return self._diagnosed[place]  # type: ignore[return-value]  # likewise

    def find(self, key: ObjectKey) -> View | None:
        """Return a LeaderWorkerSet with its diagnosis, or None if it does not exist."""
        view = super().find(key)
        return None if view is None else self.with_diagnosis(view)

    def find_disaggregatedset(self, key: ObjectKey) -> SetView | None:
        """Return a DisaggregatedSet with its diagnosis, or None if it does not exist."""
        set_view = super().find_disaggregatedset(key)
        return None if set_view is None else self.disaggregatedset_with_diagnosis(set_view)

    @cached_property
    def ordered(self) -> list[Shown]:
        """Return all sets that are not part of a different set, with their diagnoses, the most urgent first."""
        items = [
            self.with_diagnosis(item) if isinstance(item, View) else self.disaggregatedset_with_diagnosis(item)
            for item in self.roots
        ]
        return sorted(items, key=lambda item: self.order.key(set_location(item), item.diagnosis))


def set_location(item: Shown) -> Place:
    """Return the kind, namespace and name of a set."""
    return type(item).__name__, item.namespace, item.name
