"""The recorder: follows pods and records of recreations, and keeps an episode of each failure of a group.

An episode is written when a failure is seen, and again, in its place, when the group's leader is gone and the logs of all
ranks are complete. Pods that are gone are remembered as long as their leader is there; the record of a recreation that
was done at once comes after it (docs/adr/0003), so some groups are remembered a little longer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias, TypeVar

import structlog

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError, NotFoundError
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, PODS, SECRETS, Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import RestartPolicy
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.recording import building, episode
from leaderworkerset.recording.building import Traces
from leaderworkerset.recording.store import Store
from leaderworkerset.views import deaths, masking
from leaderworkerset.views.masking import Mask

SETTLING: Final = 0.2
"""Seconds: ranks often fail together, and are one episode."""

REMEMBERED: Final = 200
"""Groups that are remembered after their leader is gone, the newest; the logs of their pods go first."""

LOG_BYTES: Final = 32 * 1024
EPISODE_BYTES: Final = 1024 * 1024
"""The maximum bytes of one log, and of all logs of an episode, which share them equally."""

IN_PLACE: Final = frozenset({RestartPolicy.NONE, RestartPolicy.DEFAULT})

ReadLogs: TypeAlias = Callable[[JSONObject, str, int, int], Sequence[bytes]]
"""Returns the last lines of each kept run of a pod's container: at most so many lines and bytes. Runs in a thread."""

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Which(NamedTuple):
    """A group."""

    namespace: str
    lws: str
    group: str


@dataclass(slots=True)
class Incarnation:
    """The pods of a group while one leader is there: of each name the present one, and the first that went.

    The record of its recreation is kept here, since the next recreation of the group, which may follow at once, writes over it.
    """

    living: dict[str, JSONObject] = field(default_factory=dict)
    gone: dict[str, JSONObject] = field(default_factory=dict)
    record: JSONObject | None = None
    failed: str = ""
    """The pod whose failure was seen first since the last episode, with its restarts."""

    def pods(self, failed_pod_uid: str) -> list[JSONObject]:
        """Return the pods, of two of one name the failed one or, unless it is known, the present one."""
        replaced = {name for name, pod in self.gone.items() if meta.uid(pod) == failed_pod_uid}
        return list((self.gone | {name: pod for name, pod in self.living.items() if name not in replaced}).values())


class Recorder:
    """Records the failures of all groups of a cluster."""

    def __init__(self, client: Client, store: Store, read_logs: ReadLogs, clock: Clock) -> None:
        self._client = client
        self._store = store
        self._read_logs = read_logs
        self._clock = clock
        self._groups: dict[Which, Incarnation] = {}
        self._departed: dict[str, Incarnation] = {}
        self._early: dict[str, JSONObject] = {}
        """Records of leaders that were not seen yet, by their UID."""
        self._seen: dict[str, frozenset[tuple[str, int, str]]] = {}
        """The failed runs of each pod, by its UID: container, restarts, end."""
        self._due: dict[str, Incarnation] = {}
        self._own: dict[str, datetime] = {}
        """When the failure was first seen, by the identity of its episode."""
        self._wake = asyncio.Event()

    async def run(self, ready: asyncio.Event) -> None:
        """Record until cancelled; `ready` is set once failures are seen."""
        pods = Informer(self._client, Selection(PODS, label_selector=labels.NAME))
        records = Informer(
            self._client,
            Selection(CONTROLLER_REVISIONS, label_selector=f"{labels.NAME},!{labels.TEMPLATE_REVISION_HASH}"),
        )
        async with asyncio.TaskGroup() as tasks:
            for informer, subscriber in ((pods, self._on_pod), (records, self._on_record)):
                tasks.create_task(informer.run())
                await informer.wait_synced()
                informer.subscribe(subscriber)
            ready.set()
            while True:
                await self._wake.wait()
                await asyncio.sleep(SETTLING)
                self._wake.clear()
                due, self._due = self._due, {}
                for leader_uid, members in due.items():
                    await self._record(leader_uid, members)

    def _on_pod(self, change: Change) -> None:
        pod = change.object
        which = Which(meta.namespace(pod), meta.labels(pod).get(labels.NAME, ""), groupname.label(pod))
        members = self._groups.setdefault(which, Incarnation())
        is_leader = meta.labels(pod).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX
        if is_leader and meta.uid(pod) in self._early:
            members.record = self._early.pop(meta.uid(pod))
        if change.new is not None:
            members.living[meta.name(pod)] = pod
            self._note_failure(members, pod)
            return
        members.living.pop(meta.name(pod), None)
        members.gone.setdefault(meta.name(pod), pod)
        self._seen.pop(meta.uid(pod), None)
        if is_leader:
            self._groups.pop(which)
            self._depart(meta.uid(pod), members)
        elif not members.living:
            self._groups.pop(which)

    def _note_failure(self, members: Incarnation, pod: JSONObject) -> None:
        """Note a run that ended with an error, unless it is known, or the pod is ended by others."""
        failed = frozenset(
            (one.container, one.restarts, str(one.end.get("finishedAt")))
            for one in deaths.of_pod(pod, self._clock.now())
        )
        is_new = bool(failed - self._seen.get(meta.uid(pod), frozenset()))
        self._seen[meta.uid(pod)] = failed
        leaders = (meta.uid(one) for one in members.living.values() if groupname.leader_of(one) == meta.name(one))
        leader_uid = next(leaders, "")
        if is_new and leader_uid:
            restarts = sum(restarts for _, restarts, _ in failed)
            members.failed = members.failed or f"{meta.uid(pod)}-{restarts}"
            self._add(leader_uid, members)

    def _depart(self, leader_uid: str, members: Incarnation) -> None:
        if members.record is not None or leader_uid in self._due or leader_uid in self._own:
            self._add(leader_uid, members)
        _remember(self._departed, leader_uid, members)  # two watches have no order: its record may say so only later

    def _on_record(self, change: Change) -> None:
        uid = _condemned(change.object)
        if change.new is None or not uid:
            return
        living = (one for one in self._groups.values() if any(meta.uid(pod) == uid for pod in one.living.values()))
        members = self._departed.get(uid) or next(living, None)
        if members is None:
            _remember(self._early, uid, change.new)
            return
        members.record = change.new
        self._add(uid, members)

    def _add(self, leader_uid: str, members: Incarnation) -> None:
        self._due[leader_uid] = members
        self._wake.set()

    async def _record(self, leader_uid: str, members: Incarnation) -> None:
        """Keep an episode; a failure to do so is logged, and concerns this one only."""
        try:
            await self._keep(leader_uid, members)
        except (KubeError, OSError, ValueError) as error:
            log.warning("a failure of a group was not recorded", leader_uid=leader_uid, error=str(error))
        except Exception:  # edge: anything may be stored in an object
            log.exception("a failure of a group was not recorded", leader_uid=leader_uid)

    async def _keep(self, leader_uid: str, members: Incarnation) -> None:
        record = members.record
        pods = members.pods(meta.annotations(record or {}).get(labels.FAILED_POD_UID, ""))
        failed, members.failed = members.failed, ""
        namespace, name = meta.namespace(pods[0]), meta.labels(pods[0]).get(labels.NAME, "")
        try:
            lws = await self._client.get(LEADERWORKERSETS, ObjectKey(namespace, name))
        except NotFoundError:
            lws = None
        identity = leader_uid
        if record is None and leader_uid not in self._own and (lws is None or _policy(lws) in IN_PLACE):
            if not failed:
                return
            identity = failed
        if self._store.has(identity) and identity not in self._own:
            return  # recorded before the cluster was started again, with logs that are gone now
        traces, mask = await self._traces(pods, lws, record)
        _remember(self._own, identity, self._own.get(identity, traces.now))
        found = await asyncio.to_thread(building.build, replace(traces, now=self._own[identity]), mask)
        kept = self._store.put(found, identity)
        log.info("recorded a failure", episode=kept.place, namespace=namespace, outcome=kept.outcome)

    async def _traces(
        self, pods: list[JSONObject], lws: JSONObject | None, record: JSONObject | None
    ) -> tuple[Traces, Mask]:
        namespace = meta.namespace(pods[0])
        notes: list[str] = []
        secrets = await self._list(SECRETS, namespace, notes)
        if notes:
            notes = [f"{notes[0]}: values of Secrets are masked only where they look like some"]
        traces = Traces(
            pods=pods,
            now=self._clock.now(),
            lws=lws,
            record=record,
            logs=await asyncio.to_thread(self._logs, pods),
            events=await self._list(CORE_EVENTS, namespace, notes),
            revisions=await self._list(CONTROLLER_REVISIONS, namespace, notes),
            notes=tuple(notes),
        )
        return traces, Mask(masking.known(secrets, pods))

    async def _list(self, resource: Resource, namespace: str, notes: list[str]) -> Sequence[JSONObject]:
        """List objects; if they cannot be read, there are none, and a note says so."""
        try:
            return (await self._client.list(resource, namespace=namespace)).items
        except KubeError as error:
            notes.append(f"{resource.plural} could not be read: {error}")
            return []

    def _logs(self, pods: Sequence[JSONObject]) -> dict[tuple[str, str], list[str]]:
        wanted = [(pod, str(one.get("name"))) for pod in pods for one in podstate.container_statuses(pod)]
        size = min(LOG_BYTES, EPISODE_BYTES // max(len(wanted), 1))
        return {
            (meta.uid(pod), name): [
                run.decode(errors="replace") for run in self._read_logs(pod, name, episode.LINES, size)
            ]
            for pod, name in wanted
        }


@asynccontextmanager
async def recording(client: Client, store: Store, read_logs: ReadLogs, clock: Clock) -> AsyncIterator[None]:
    """Record while the context is entered; failures are seen from its beginning."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(Recorder(client, store, read_logs, clock).run(ready := asyncio.Event()))
        await ready.wait()
        try:
            yield
        finally:
            running.cancel()


def _remember(known: dict[str, T], key: str, value: T) -> None:
    """Remember a value as one of the newest."""
    known[key] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]


def _condemned(record: JSONObject) -> str:
    return meta.annotations(record).get(labels.RECREATED_LEADER, "")


def _policy(lws: JSONObject) -> str:
    return str((meta.spec(lws).get("leaderWorkerTemplate") or {}).get("restartPolicy") or "")
