"""Exports LeaderWorkerSet metrics, in addition to the metrics of controllers (`kuberuntime/serving/metrics.py`).

Most metrics are computed from the cache when they are collected, so they have no cost between collections and cannot
drift:

```
lws_leaderworkersets{condition}                                   LeaderWorkerSets with the condition
lws_groups{namespace, leaderworkerset, state}                     groups: desired, created, ready, updated
lws_rollout_progress{namespace, leaderworkerset}                  updated groups / desired groups, 0 to 1
lws_groups_failing{namespace, leaderworkerset, state}             failed groups: waiting for recreation, exhausted
lws_group_recreations_in_a_row{namespace, leaderworkerset}        the maximum of its groups
lws_groups_to_move{namespace, leaderworkerset}                    groups that wait to be moved off nodes (maintenance)
```

The other metrics are counted when events are recorded or the cache changes:

```
lws_group_recreations_total{cause}          container-restarted, pod-deleted
lws_group_moves_total                       groups whose leader was deleted because they had to leave a node
lws_ignored_objects_total{resource}         unreadable objects, which count as absent
lws_time_to_ready_seconds                   from creation (or the last availability) to all groups ready
```
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kuberuntime.cache.informer import Change, Informer, Store
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.plan import Event
from leaderworkerset.api import groupname, recreationrecord
from leaderworkerset.api.conditions import AVAILABLE, CONDITIONS, MOVE_IN_PROGRESS
from leaderworkerset.api.recreationrecord import Recreation, RecreationState
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.controllers import indexes
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.instruments import Meter
from leaderworkerset.controllers.maintenancenodes import MaintenanceNodes
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies.failures import has_failed

READY_SECONDS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)

RESTARTED: Final = "container-restarted"
DELETED: Final = "pod-deleted"


class LeaderWorkerSetMetrics:
    """Counts the actions of the LeaderWorkerSet controllers (`instruments.KindMetrics`)."""

    def __init__(self, metrics: Meter, configured: Mapping[str, Any]) -> None:
        self._metrics, self._moves_by = metrics, configured.get(names.MOVES)
        registry = CollectorRegistry()
        self._recreations = Counter(
            "lws_group_recreations_total", "Total number of group recreations, by cause.", ("cause",), registry=registry
        )
        self._moves = Counter(
            "lws_group_moves_total", "Total number of groups that were moved off nodes.", registry=registry
        )
        self._ready = Histogram(
            "lws_time_to_ready_seconds",
            "Time until all groups of a LeaderWorkerSet are ready, from its creation or from the time when it became unavailable.",
            buckets=READY_SECONDS,
            registry=registry,
        )
        for cause in (RESTARTED, DELETED):
            self._recreations.labels(cause)
        metrics.register(registry)
        self._pods: Store | None = None

    def count_event(self, event: Event) -> None:
        """Count a move or a recreation. The pods of the group determine the cause of a recreation."""
        if event.reason == decisionevents.MOVING_GROUP:
            self._moves.inc()
        if (
            event.reason == decisionevents.recreating_group.reason
            and event.related is not None
            and self._pods is not None
        ):
            self._recreations.labels(recreation_cause(event.related, self._pods)).inc()

    @contextmanager
    def export_metrics(self, caches: Caches) -> Iterator[None]:
        """Export metrics about the content and changes of these caches while the context is active."""
        informers = indexes.informers_of(caches)
        collectors: tuple[Collector, ...] = (
            StatusCollector(informers.leaderworkersets.store),
            RecreationCollector(informers),
            IgnoredCollector(caches.all()),
        )
        if self._moves_by is not None:
            nodes = MaintenanceNodes(caches, self._moves_by)
            collectors += (MoveCollector(informers.leaderworkersets.store, nodes),)
        self._pods = informers.pods.store
        informers.leaderworkersets.subscribe(self._handle_change)
        for collector in collectors:
            self._metrics.register(collector)
        try:
            yield
        finally:
            for collector in collectors:
                self._metrics.unregister(collector)
            self._pods = None

    def _handle_change(self, change: Change) -> None:
        seconds = seconds_to_ready(change)
        if seconds is not None:
            self._ready.observe(seconds)


class IgnoredCollector(Collector):
    """Builds the metric for ignored objects (`kuberuntime/cache/informer.py`)."""

    def __init__(self, informers: Iterable[Informer]) -> None:
        self._informers = tuple(informers)

    def collect(self) -> Iterable[Metric]:
        """Return the current metric."""
        ignored = CounterMetricFamily(
            "lws_ignored_objects",
            "Total number of object versions that were ignored because they were invalid.",
            labels=("resource",),
        )
        tally: Tally[str] = Tally()
        for informer in self._informers:
            tally[informer.resource.group_resource] += informer.ignored
        for resource, count in tally.items():
            ignored.add_metric((resource,), count)
        return (ignored,)


class StatusCollector(Collector):
    """Builds the metrics of all cached LeaderWorkerSets during a scrape."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterable[Metric]:
        """Return the current metrics."""
        place = ("namespace", "leaderworkerset")
        groups = GaugeMetricFamily("lws_groups", "Number of groups, by state.", labels=(*place, "state"))
        progress = GaugeMetricFamily(
            "lws_rollout_progress", "Fraction of the desired groups that have been updated.", labels=place
        )
        totals = GaugeMetricFamily(
            "lws_leaderworkersets", "Number of LeaderWorkerSets, by condition.", labels=("condition",)
        )
        tally: Tally[str] = Tally()
        for lws in self._store.list():
            key = meta.key(lws)
            counts = count_groups(lws)
            for state, count in counts.items():
                groups.add_metric((*key, state), count)
            progress.add_metric(key, rollout_progress(counts))
            tally.update(condition.type for condition in CONDITIONS if meta.is_condition_true(lws, condition.type))
        for condition in CONDITIONS:
            totals.add_metric((condition.type,), tally[condition.type])
        return (totals, groups, progress)


class RecreationCollector(Collector):
    """Builds the metrics of repeatedly failing groups from their records during a scrape.

    A LeaderWorkerSet has no such metric if it is deleted or its groups never failed. After a rollout, the values are 0,
    because alerts use the last value of a missing metric for some minutes.
    """

    def __init__(self, informers: indexes.Informers) -> None:
        self._leaderworkersets = informers.leaderworkersets.store
        self._records = informers.revisions.store
        self._pods = informers.pods.store

    def collect(self) -> Iterable[Metric]:
        """Return the current metrics."""
        place = ("namespace", "leaderworkerset")
        failing = GaugeMetricFamily(
            "lws_groups_failing",
            "Number of failed groups that are not being recreated, by state.",
            labels=(*place, "state"),
        )
        in_a_row = GaugeMetricFamily(
            "lws_group_recreations_in_a_row",
            "Highest number of consecutive recreations of a group with the current revision.",
            labels=place,
        )
        for lws in self._leaderworkersets.list():
            key = meta.key(lws)
            records = self._records.by_index(indexes.RECORDS, str(key))
            if not records:
                continue
            current = [recreation for record in records if (recreation := self._current_recreation(record)) is not None]
            for state in (RecreationState.WAITING, RecreationState.EXHAUSTED):
                failing.add_metric((*key, state.value), sum(recreation.state is state for recreation in current))
            in_a_row.add_metric(key, max((recreation.count for recreation in current), default=0))
        return (failing, in_a_row)

    def _current_recreation(self, record: JSONObject) -> Recreation | None:
        """Parse the record of an existing group at its current revision. A delay must refer to the current leader."""
        recreation = recreationrecord.read(record)
        leader = self._pods.get(ObjectKey(meta.namespace(record), recreationrecord.leader_of(record)))
        if recreation is None or leader is None:
            return None
        if groupname.revision_key(leader) != recreation.revision:
            return None
        return (
            recreation
            if meta.uid(leader) == recreation.leader
            else replace(recreation, state=RecreationState.RECREATED)
        )


class MoveCollector(Collector):
    """Builds the metric for groups that are waiting to be moved during a scrape."""

    def __init__(self, store: Store, nodes: MaintenanceNodes) -> None:
        self._store, self._nodes = store, nodes

    def collect(self) -> Iterable[Metric]:
        """Return the current metric."""
        waiting = GaugeMetricFamily(
            "lws_groups_to_move",
            "Number of groups that are waiting to be moved off nodes.",
            labels=("namespace", "leaderworkerset"),
        )
        for lws in self._store.list():
            if meta.is_condition_true(lws, MOVE_IN_PROGRESS.type):
                waiting.add_metric(meta.key(lws), len(self._nodes.observe(lws)))
        return (waiting,)


def count_groups(lws: JSONObject) -> dict[str, int]:
    """Return the number of groups by state."""
    status = meta.status(lws)
    desired = meta.spec(lws).get("replicas")
    return {
        "desired": 1 if desired is None else int(desired),
        "created": int(status.get("replicas") or 0),
        "ready": int(status.get("readyReplicas") or 0),
        "updated": int(status.get("updatedReplicas") or 0),
    }


def rollout_progress(counts: dict[str, int]) -> float:
    """Return the rollout progress from 0 to 1. It is 1 if there are no desired groups.

    >>> rollout_progress({"desired": 4, "updated": 1}), rollout_progress({"desired": 0, "updated": 0})
    (0.25, 1.0)
    """
    return min(counts["updated"] / counts["desired"], 1.0) if counts["desired"] else 1.0


def seconds_to_ready(change: Change) -> float | None:
    """Return the startup duration of a LeaderWorkerSet, or None if it does not become available by this change."""
    old, new = change.old, change.new
    if old is None or new is None or meta.is_condition_true(old, AVAILABLE.type):
        return None
    if not meta.is_condition_true(new, AVAILABLE.type):
        return None
    before, now = meta.find_condition(old, AVAILABLE.type), meta.find_condition(new, AVAILABLE.type)
    began = (before or {}).get("lastTransitionTime") or meta.metadata(new).get("creationTimestamp")
    ended = (now or {}).get("lastTransitionTime")
    if not began or not ended:
        return None
    return max((timestamps.parse(ended) - timestamps.parse(began)).total_seconds(), 0.0)


def recreation_cause(leader: JSONObject, pods: Store) -> str:
    """Return the cause of a group recreation, based on the pods in the group of this leader."""
    leader_pod = pods.get(ObjectKey(str(leader.get("namespace")), str(leader.get("name"))))
    if leader_pod is None:
        return DELETED
    group = indexes.group_value(groupname.lws_key(leader_pod), groupname.group_label(leader_pod))
    members = pods.by_index(indexes.BY_GROUP, group)
    has_restarted = any(has_failed(pod, excuses=EXTENSIONS.excuses) and not meta.is_deleting(pod) for pod in members)
    return RESTARTED if has_restarted else DELETED
