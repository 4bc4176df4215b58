"""Runs the scheduler, which processes one pod at a time, and binds pods concurrently.

A decision takes effect immediately (the pod is assumed on its node), so that the next pod does not wait for the
binding. A failed binding is reverted. Pods of other schedulers are ignored.
"""

import asyncio
from typing import Final

import structlog
from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Executor, Recorder
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.plan import Plan
from localkube.controllers.scheduler import conditions, queue
from localkube.controllers.scheduler.capacity import ClusterState
from localkube.controllers.scheduler.decision import Decision, Placement, Unschedulable, decide
from localkube.controllers.scheduler.podinfo import PodInfo, read_pod
from localkube.controllers.scheduler.predicates import Cause
from localkube.controllers.scheduler.queue import SchedulingQueue

NAME: Final = "default-scheduler"
BINDINGS: Final = 32
"""The maximum number of bindings and reports that are written concurrently."""

RETRY: Final = 1.0
"""The time in seconds until a pod is retried after a failed write, as in kube-scheduler's first backoff."""

CATCH_UP: Final = 0.05
"""The time in seconds until a pod that changed during a write is retried. The watch delivers the change first."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SchedulerInformers(Struct, frozen=True, kw_only=True):
    """The informers of the scheduler."""

    pods: Informer
    nodes: Informer
    claims: Informer
    namespaces: Informer


class Scheduler:
    """Assigns nodes to pods whose `schedulerName` is this scheduler."""

    def __init__(self, executor: Executor, sources: SchedulerInformers, recorder: Recorder, clock: Clock) -> None:
        self._executor = executor
        self._sources = sources
        self._recorder = recorder
        self._clock = clock
        self._cluster = ClusterState()
        self._queue = SchedulingQueue()
        self._wake = asyncio.Event()
        self._assumed: set[UID] = set()
        self._slots = asyncio.Semaphore(BINDINGS)

    async def run(self) -> None:
        """Schedule until cancelled."""
        sources = self._sources
        sources.namespaces.subscribe(self._handle_namespace_change)
        sources.nodes.subscribe(self._handle_node_change)
        sources.claims.subscribe(lambda _: self._retry(queue.VOLUMES_CHANGED))
        sources.pods.subscribe(self._handle_pod_change)
        for informer in (sources.namespaces, sources.nodes, sources.claims, sources.pods):
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while (pod := self._queue.pop()) is not None:
                    await self._slots.acquire()
                    group.create_task(self._write(pod, self._decide(pod)))

    def _decide(self, pod: PodInfo) -> Decision:
        """Select a node for a pod, and assume that it will be written. An internal error affects only this pod."""
        try:
            return self._decision(pod)
        except Exception as error:  # noqa: BLE001 - loop edge: a decision that fails must not stop the others
            log.warning("failed to select a node for a pod", pod=str(pod.key), error=repr(error))
            self._forget(pod.uid)
            self._queue.refuse(pod, queue.EVERYTHING)
            return Unschedulable(f"internal error, retrying after the next change: {error!r}", queue.EVERYTHING)

    def _decision(self, pod: PodInfo) -> Decision:
        objection = conditions.claim_rejection_reason(pod, self._sources.claims.store.get)
        if objection:
            total = len(self._cluster.nodes)
            decision: Decision = Unschedulable(f"0/{total} nodes are available: {objection}.", queue.VOLUMES_CHANGED)
        else:
            decision = decide(self._cluster, pod)
        match decision:
            case Placement(node):
                self._assumed.add(pod.uid)
                self._place(pod, node)
            case Unschedulable(_, causes):
                self._queue.refuse(pod, causes)
        return decision

    async def _write(self, pod: PodInfo, decision: Decision) -> None:
        """Write a decision. If the write fails, revert the decision and retry later."""
        obj = self._sources.pods.store.get(pod.key)
        try:
            if obj is None or meta.uid(obj) != pod.uid:
                self._forget(pod.uid)
                return
            await self._executor.execute(self._plan(obj, decision))
        except Exception as error:  # noqa: BLE001 - loop edge: a write that fails must not stop the others
            stale = isinstance(error.__cause__, NotFoundError | ConflictError)
            delay = CATCH_UP if stale else RETRY
            report = log.debug if stale else log.warning
            report("failed to bind a pod", pod=str(pod.key), error=str(error), retry_in=delay)
            asyncio.get_running_loop().call_later(delay, self._revert_decision, pod)
        finally:
            self._slots.release()

    def _plan(self, pod: JSONObject, decision: Decision) -> Plan:
        match decision:
            case Placement(node):
                return Plan((conditions.bind(pod, node),))
            case Unschedulable(message):
                report = conditions.report_unschedulable(pod, message, self._clock.now())
                return Plan((report,) if report else ())

    def _revert_decision(self, pod: PodInfo) -> None:
        """Revert a decision that could not be written, and requeue the pod if it is still unscheduled."""
        self._forget(pod.uid)
        obj = self._sources.pods.store.get(pod.key)
        if obj is not None and meta.uid(obj) == pod.uid:
            self._process_pod(obj)

    def _forget(self, uid: UID) -> None:
        """Remove a pod from the queue and the cluster. Retry pods that can use its resources."""
        self._assumed.discard(uid)
        self._queue.remove(uid)
        if self._cluster.remove(uid) is not None:
            self._retry(queue.POD_GONE)

    def _place(self, pod: PodInfo, node: str) -> None:
        self._cluster.place(pod, node)
        self._queue.retry(queue.POD_PLACED, lambda waiting: self._affinity_selects(waiting, pod))
        self._wake.set()

    def _affinity_selects(self, waiting: PodInfo, placed: PodInfo) -> bool:
        """Return whether affinity terms of a waiting pod select the placed pod."""
        scopes = [term.scope for term in waiting.affinity] + [constraint.scope for constraint in waiting.constraints]
        return any(self._cluster.matches((scope,), placed) for scope in scopes)

    def _retry(self, changed: frozenset[Cause]) -> None:
        self._queue.retry(changed)
        self._wake.set()

    def _handle_pod_change(self, change: Change) -> None:
        if change.new is None or podstate.has_ended(change.new):
            self._forget(meta.uid(change.object))
        elif not _has_same_scheduling_fields(change.old, change.new):
            self._process_pod(change.new)

    def _process_pod(self, pod: JSONObject) -> None:
        """Count a pod on its node, queue it, or ignore it."""
        try:
            self._sort(pod)
        except Exception as error:  # noqa: BLE001 - loop edge: an unforeseen pod must not stop the others
            log.warning("failed to read a pod", pod=str(meta.key(pod)), error=repr(error))
            self._recorder.record(conditions.failed_event(pod, f"the pod cannot be decoded: {error!r}"))

    def _sort(self, pod: JSONObject) -> None:
        uid, spec = meta.uid(pod), meta.spec(pod)
        if spec.get("nodeName"):
            self._queue.remove(uid)
            self._assumed.discard(uid)
            relabeled = uid in self._cluster.pods
            self._place(read_pod(pod), spec["nodeName"])
            if relabeled:
                self._retry(queue.POD_RELABELED)
        elif meta.is_deleting(pod):
            self._forget(uid)
        elif uid not in self._assumed and (spec.get("schedulerName") or NAME) == NAME:
            self._enqueue(pod)

    def _enqueue(self, pod: JSONObject) -> None:
        if meta.spec(pod).get("schedulingGates"):
            self._queue.remove(meta.uid(pod))
            return
        self._queue.put(read_pod(pod))
        self._wake.set()

    def _handle_node_change(self, change: Change) -> None:
        if change.new is None:
            self._cluster.nodes.pop(meta.name(change.object), None)  # its pods remain until they are deleted
        else:
            self._cluster.put_node(change.new)
        self._retry(queue.EVERYTHING)

    def _handle_namespace_change(self, change: Change) -> None:
        if change.new is None:
            self._cluster.namespaces.pop(meta.name(change.object), None)
        elif self._cluster.put_namespace(meta.name(change.new), meta.labels(change.new)):
            self._retry(queue.POD_RELABELED)


def _has_same_scheduling_fields(old: JSONObject | None, new: JSONObject) -> bool:
    """Return whether the fields for scheduling are unchanged. Most changes affect only the status."""
    if old is None:
        return False
    return (
        meta.spec(old) == meta.spec(new)
        and meta.labels(old) == meta.labels(new)
        and meta.is_deleting(old) == meta.is_deleting(new)
    )
