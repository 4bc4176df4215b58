"""Objects of the API followed by a command that waits: a condition on cached objects, checked after every change."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection, only
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.views.groups import View, view

T = TypeVar("T")


class Following:
    """Informers that run while a command waits."""

    def __init__(self, informers: tuple[Informer, ...]) -> None:
        self._changed = asyncio.Event()
        for informer in informers:
            informer.subscribe(self._note)

    def _note(self, _: Change) -> None:
        self._changed.set()

    async def until(self, check: Callable[[], T | None]) -> T:
        """Return the first answer of `check` that is not None; it is asked again after every change."""
        while (answer := check()) is None:
            await self._changed.wait()
            self._changed.clear()
        return answer


@asynccontextmanager
async def following(*informers: Informer) -> AsyncIterator[Following]:
    """Run informers, and yield once each has been filled."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(informer.run()) for informer in informers]
        for informer in informers:
            await informer.wait_synced()
        try:
            yield Following(informers)
        finally:
            for task in running:
                task.cancel()


class AllSets:
    """The informers of all LeaderWorkerSets of a namespace (empty: of all namespaces) with these labels, and pods."""

    def __init__(self, client: Client, namespace: str, label_selector: str) -> None:
        self.sets = Informer(client, Selection(LEADERWORKERSETS, namespace, label_selector))
        self.pods = Informer(client, Selection(PODS, namespace, labels.NAME))

    @property
    def all(self) -> tuple[Informer, ...]:
        """Return both informers."""
        return (self.sets, self.pods)

    def views(self) -> list[View]:
        """Return the current views by namespace and name."""
        members: dict[ObjectKey, list[JSONObject]] = {}
        for pod in self.pods.store.list():
            members.setdefault(ObjectKey(meta.namespace(pod), meta.labels(pod)[labels.NAME]), []).append(pod)
        found = sorted(self.sets.store.list(), key=meta.key)
        return [view(lws, members.get(meta.key(lws), ())) for lws in found]


class SetInformers:
    """The informers of one LeaderWorkerSet and its pods."""

    def __init__(self, client: Client, key: ObjectKey) -> None:
        self.key = key
        self.set = Informer(client, only(LEADERWORKERSETS, key))
        self.pods = Informer(client, Selection(PODS, key.namespace, f"{labels.NAME}={key.name}"))

    @property
    def all(self) -> tuple[Informer, ...]:
        """Return both informers."""
        return (self.set, self.pods)

    def lws(self) -> JSONObject | None:
        """Return the LeaderWorkerSet, None once it is gone."""
        return self.set.store.get(self.key)

    def view(self) -> View | None:
        """Return the current view, None once the LeaderWorkerSet is gone."""
        lws = self.lws()
        return None if lws is None else view(lws, self.pods.store.list())
