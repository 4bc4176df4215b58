"""Watches pods and recreation records, and stores an episode for each failure of a group.

An episode is written when a failure is observed, and replaced when the group's leader is deleted and the logs of all
ranks are complete. Several failures are recorded concurrently, failures of one group in order, and namespaces take
turns. Deleted pods are remembered as long as their leader exists. The record of an immediate recreation is written
after it (docs/adr/0003), so some groups are remembered for some more time.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.cache.informer import Change, Informer, Subscriber
from kuberuntime.client.client import PAGE, Client
from kuberuntime.client.requests import Selection
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from kuberuntime.fairqueue import FairLock, FairQueue
from kuberuntime.objects import meta, terminations, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, PODS, SECRETS
from kuberuntime.texts import masking
from kuberuntime.texts.masking import Mask
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.episode import Episode
from leaderworkerset.api.policytypes import NOT_RECREATING
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.recording import episodebuilder
from leaderworkerset.recording.episodebuilder import GroupObservation
from leaderworkerset.recording.logsource import FileLogs, LogSource, ReadFiles
from leaderworkerset.recording.progressfollower import ProgressFollower

SETTLING: Final = 0.2
"""The time in seconds to wait for further failures. Ranks that fail together are recorded in one episode."""

LAST_LOOK: Final = 2.0
"""The timeout in seconds for recording the last failures at shutdown."""

REMEMBERED: Final = 200
"""The maximum number of stored groups with a deleted leader. The oldest groups are dropped.

Logs are dropped first.
"""

PAST: Final = timedelta(minutes=5)
"""The maximum age of failures at the start of the recorder. Older failures were not observed and are ignored."""

MOST_EVENTS: Final = 10_000
"""The maximum number of events in a namespace that are searched for events of a group."""

AT_ONCE: Final = 32
OF_A_NAMESPACE: Final = 4
"""The maximum number of failures that are recorded concurrently, in total and per namespace."""

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GroupKey(NamedTuple):
    """The identity of a group."""

    namespace: str
    lws: str
    group: str


class Incarnation(Struct):
    """The pods of a group with one leader. By name, it contains the current pod and the first deleted pod.

    It also contains the recreation record, because the next recreation of the group may overwrite it immediately.
    """

    key: GroupKey
    current_pods: dict[str, JSONObject] = field(default_factory=dict)
    deleted_pods: dict[str, JSONObject] = field(default_factory=dict)
    record: JSONObject | None = None
    failed: str = ""
    """The pod with the first observed failure since the last episode, and its restart count."""

    def pods(self, failed_pod_uid: str) -> list[JSONObject]:
        """Return the pods. If two pods have the same name, prefer the failed pod, and then the current pod."""
        replaced = {name for name, pod in self.deleted_pods.items() if meta.uid(pod) == failed_pod_uid}
        return list(
            (
                self.deleted_pods | {name: pod for name, pod in self.current_pods.items() if name not in replaced}
            ).values()
        )


class EpisodeStore(Protocol):
    """Stores episodes."""

    def has(self, identity: str) -> bool:
        """Return whether an episode with this identity exists."""

    async def store(self, episode: Episode, identity: str) -> Episode:
        """Store or replace an episode. Return the stored episode with its number.

        Raise `KubeError`, `OSError` or `ValueError` if it cannot be stored.
        """


class Recorder:
    """Records the failures of all groups in a cluster.

    If `reads_secrets` is set, the values of Secrets are masked in all texts.
    """

    def __init__(
        self, client: Client, store: EpisodeStore, logs: LogSource, clock: Clock, *, reads_secrets: bool = True
    ) -> None:
        self._client = client
        self._store = store
        self._logs = logs
        self._clock = clock
        self._reads_secrets = reads_secrets
        self._begin = clock.now() - PAST
        self._groups: dict[GroupKey, Incarnation] = {}
        self._departed: dict[str, Incarnation] = {}
        self._early: dict[str, JSONObject] = {}
        """The recreation records of unknown leaders by UID."""
        self._seen: dict[str, frozenset[tuple[str, int, str]]] = {}
        """The failed runs of each pod by UID, with the container, the restart count, and the end time."""
        self._due: dict[str, Incarnation] = {}
        """The groups with failures to record, by leader UID."""
        self._waiting = FairQueue[str]()
        """The UIDs in `_due` by namespace, except for failures in progress, which are added afterwards."""
        self._recording: dict[str, str] = {}
        """The namespaces of failures in progress by leader UID."""
        self._keeping = FairLock()
        """The lock for writing an episode.

        It serves namespaces in round-robin order and orders the episode numbers.
        """
        self._of_groups = WeakValueDictionary[GroupKey, asyncio.Lock]()
        """The locks of groups with failures in progress, so that their episodes are numbered in order."""
        self._own: dict[str, datetime] = {}
        """The time at which the failure was first observed, for each episode identity."""
        self._wake = asyncio.Event()

    async def run(self, pods: Informer, records: Informer, ready: asyncio.Event) -> None:
        """Record the failures in these informers until cancelled. `ready` is set when the observation has started.

        The informers may be shared with controllers, and contain additional objects.
        """
        for informer, subscriber in ((pods, self._on_pod), (records, self._on_record)):
            await informer.wait_synced()
            informer.subscribe(partial(_notify, subscriber))
        ready.set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wake.wait()
                await asyncio.sleep(SETTLING)
                self._wake.clear()
                while len(self._recording) < AT_ONCE and (leader_uid := self._waiting.pop(self._is_namespace_full)):
                    members = self._due.pop(leader_uid)
                    self._recording[leader_uid] = members.key.namespace
                    tasks.create_task(self._record(leader_uid, members))

    async def record_due(self) -> None:
        """Record the pending failures one after the other, after `run` was cancelled."""
        while leader_uid := self._waiting.pop(lambda _: False):
            members = self._due.pop(leader_uid)
            self._recording[leader_uid] = members.key.namespace
            await self._record(leader_uid, members)

    def _is_namespace_full(self, namespace: Hashable) -> bool:
        return list(self._recording.values()).count(str(namespace)) >= OF_A_NAMESPACE

    def _on_pod(self, change: Change) -> None:
        pod = change.object
        which = GroupKey(meta.namespace(pod), meta.labels(pod).get(labels.NAME, ""), groupname.group_label(pod))
        members = self._groups.setdefault(which, Incarnation(which))
        is_leader = groupname.is_leader(pod)
        if is_leader and meta.uid(pod) in self._early:
            members.record = self._early.pop(meta.uid(pod))
        if change.new is not None:
            members.current_pods[meta.name(pod)] = pod
            self._note_failure(members, pod)
            return
        members.current_pods.pop(meta.name(pod), None)
        members.deleted_pods.setdefault(meta.name(pod), pod)
        self._logs.forget_pod(pod)
        self._seen.pop(meta.uid(pod), None)
        if is_leader:
            self._groups.pop(which)
            self._handle_leader_deletion(meta.uid(pod), members)
        elif not members.current_pods:
            self._groups.pop(which)

    def _note_failure(self, members: Incarnation, pod: JSONObject) -> None:
        """Record an eviction or a failed run, unless it is already known or the pod is terminating."""
        failed = frozenset(
            (death.container, death.restarts, str(death.end.get("finishedAt")))
            for death in terminations.of_pod(pod, self._clock.now())
            if not self._is_past(death.end)
        ) | {("", 0, reason) for reason in episodebuilder.evictions(pod)}
        is_new = bool(failed - self._seen.get(meta.uid(pod), frozenset()))
        self._seen[meta.uid(pod)] = failed
        leaders = (
            meta.uid(member)
            for member in members.current_pods.values()
            if groupname.leader_name(member) == meta.name(member)
        )
        leader_uid = next(leaders, "")
        if is_new and leader_uid:
            self._logs.prefetch([pod] if members.failed else list(members.current_pods.values()))
            restarts = sum(restarts for _, restarts, _ in failed)
            members.failed = members.failed or f"{meta.uid(pod)}-{restarts}"
            self._add(leader_uid, members)
        elif meta.is_deleting(pod) and (leader_uid in self._own or leader_uid in self._due):
            self._logs.prefetch([pod])  # its last lines

    def _is_past(self, end: JSONObject) -> bool:
        end_time = timestamps.read(str(end.get("finishedAt") or ""))
        return end_time is not None and end_time < self._begin

    def _handle_leader_deletion(self, leader_uid: str, members: Incarnation) -> None:
        if members.record is not None or leader_uid in self._due or leader_uid in self._own:
            self._add(leader_uid, members)
        _remember(self._departed, leader_uid, members)  # watches are not ordered: the record may be updated later

    def _on_record(self, change: Change) -> None:
        uid = meta.annotations(change.object).get(labels.RECREATED_LEADER, "")
        if change.new is None or not uid:
            return
        living = (
            group for group in self._groups.values() if any(meta.uid(pod) == uid for pod in group.current_pods.values())
        )
        members = self._departed.get(uid) or next(living, None)
        if members is None:
            _remember(self._early, uid, change.new)
            return
        members.record = change.new
        self._add(uid, members)

    def _add(self, leader_uid: str, members: Incarnation) -> None:
        if leader_uid not in self._due and leader_uid not in self._recording:
            self._waiting.put(members.key.namespace, leader_uid)
        self._due[leader_uid] = members
        self._wake.set()

    async def _record(self, leader_uid: str, members: Incarnation) -> None:
        """Store an episode. Errors are logged and affect only this episode."""
        try:
            async with self._of_groups.setdefault(members.key, asyncio.Lock()):
                await self._keep(leader_uid, members)
        except (KubeError, OSError, ValueError) as error:
            log.warning("failed to record a group failure", leader_uid=leader_uid, error=str(error))
        except Exception:  # must not fail, because objects can contain any values
            log.exception("failed to record a group failure", leader_uid=leader_uid)
        del self._recording[leader_uid]
        if leader_uid in self._due:  # it failed again in the meantime
            self._waiting.put(members.key.namespace, leader_uid)
        if self._waiting:
            self._wake.set()

    async def _keep(self, leader_uid: str, members: Incarnation) -> None:
        record = members.record
        pods = members.pods(meta.annotations(record or {}).get(labels.FAILED_POD_UID, ""))
        failed, members.failed = members.failed, ""
        namespace, name, _ = members.key
        lws = await self._client.find(LEADERWORKERSETS, ObjectKey(namespace, name))
        identity = leader_uid
        if record is None and leader_uid not in self._own and (lws is None or _policy(lws) in NOT_RECREATING):
            if not failed:
                return
            identity = failed
        if self._store.has(identity) and identity not in self._own:
            return  # recorded before the cluster was restarted, with logs that no longer exist
        living = {meta.uid(pod) for pod in members.current_pods.values()}
        self._logs.prefetch([pod for pod in pods if meta.uid(pod) in living])
        traces, mask = await self._observe_group(pods, lws, record)
        _remember(self._own, identity, self._own.get(identity, traces.now))
        async with self._keeping.acquire(namespace):
            episode = await asyncio.to_thread(episodebuilder.build, replace(traces, now=self._own[identity]), mask)
            kept = await self._store.store(episode, identity)
        log.info("recorded a failure", episode=kept.label, namespace=namespace, outcome=kept.outcome)

    async def _observe_group(
        self, pods: list[JSONObject], lws: JSONObject | None, record: JSONObject | None
    ) -> tuple[GroupObservation, Mask]:
        namespace, name = meta.namespace(pods[0]), meta.labels(pods[0]).get(labels.NAME, "")
        notes: list[str] = []
        secrets: Sequence[JSONObject] = ()
        if self._reads_secrets:
            secrets = await self._list(Selection(SECRETS, namespace), notes)
        if notes or not self._reads_secrets:
            reason = notes[0] if notes else "the recorder does not have permission to read Secrets"
            notes = [f"{reason}. Values of Secrets are masked only if they look like secrets"]
        logs, missing = await self._logs.read(pods)
        uids: set[str] = {meta.uid(pod) for pod in pods} | ({meta.uid(lws)} if lws else set())
        traces = GroupObservation(
            pods=pods,
            now=self._clock.now(),
            lws=lws,
            record=record,
            logs=logs,
            events=await self._events(namespace, uids, notes),
            revisions=await self._list(Selection(CONTROLLER_REVISIONS, namespace, f"{labels.NAME}={name}"), notes),
            notes=(*notes, *missing),
        )
        return traces, Mask(masking.secret_values(secrets, [*pods, *_templates(lws)]))

    async def _list(self, selection: Selection, notes: list[str]) -> Sequence[JSONObject]:
        """List objects. If this fails, return an empty list and add a note."""
        try:
            listing = await self._client.list(
                selection.resource, namespace=selection.namespace, label_selector=selection.label_selector
            )
        except KubeError as error:
            notes.append(f"failed to read {selection.resource.plural}: {error}")
            return []
        return listing.items

    async def _events(self, namespace: str, uids: set[str], notes: list[str]) -> list[JSONObject]:
        """Return the events for these objects.

        Other events are dropped page by page, because there can be many events.
        """
        events: list[JSONObject] = []
        token, selection = "", Selection(CORE_EVENTS, namespace)
        try:
            for _ in range(MOST_EVENTS // PAGE):
                page = await self._client.list_page(selection, limit=PAGE, token=token)
                events += [event for event in page.items if (event.get("involvedObject") or {}).get("uid") in uids]
                if not (token := page.token):
                    return events
            notes.append(f"only the first {MOST_EVENTS} events of the namespace were searched")
        except KubeError as error:
            notes.append(f"failed to read {CORE_EVENTS.plural}: {error}")
        return events


@asynccontextmanager
async def recording(
    client: Client, store: EpisodeStore, read_files: ReadFiles, clock: Clock, follower: ProgressFollower | None = None
) -> AsyncIterator[None]:
    """Record failures and track progress while the context is active. The observation starts immediately."""
    pods = Informer(client, Selection(PODS, label_selector=labels.NAME))
    records = Informer(
        client, Selection(CONTROLLER_REVISIONS, label_selector=f"{labels.NAME},!{labels.TEMPLATE_REVISION_HASH}")
    )
    recorder = Recorder(client, store, FileLogs(read_files), clock)
    async with asyncio.TaskGroup() as tasks:
        work = [recorder.run(pods, records, ready := asyncio.Event()), pods.run(), records.run()]
        if follower is not None:
            sets = Informer(client, Selection(LEADERWORKERSETS))
            work += [sets.run(), follower.run(pods, sets)]
        running = [tasks.create_task(coroutine) for coroutine in work]
        await ready.wait()
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            with suppress(TimeoutError):
                async with timeouts.within(LAST_LOOK):
                    await recorder.record_due()  # the most recent failures


def _notify(subscriber: Subscriber, change: Change) -> None:
    """Call a subscriber. If it fails for an object, other subscribers still receive the object."""
    try:
        subscriber(change)
    except Exception:  # must not fail, because objects can contain any values
        log.exception("failed to process an object", key=str(meta.key(change.object)))


def _templates(lws: JSONObject | None) -> Iterator[JSONObject]:
    """Yield the pod templates of a LeaderWorkerSet.

    They contain environment variables that are missing in cached pods.
    """
    template = meta.spec(lws or {}).get("leaderWorkerTemplate") or {}
    yield from filter(None, (template.get("leaderTemplate"), template.get("workerTemplate")))


def _remember(memory: dict[str, T], key: str, value: T) -> None:
    memory[key] = value
    if len(memory) > REMEMBERED:
        del memory[next(iter(memory))]


def _policy(lws: JSONObject) -> str:
    return str((meta.spec(lws).get("leaderWorkerTemplate") or {}).get("restartPolicy") or "")
