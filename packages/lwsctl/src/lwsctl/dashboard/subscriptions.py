"""Renders each open page once for all browsers. New snapshots are sent as differences.

Pages that are no longer shown in a browser are removed, so that the load depends on the open pages.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Final

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime import randomness, timeouts
from kuberuntime.client.requests import Selection as Query
from kuberuntime.errors import KubeError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.texts import errorboundary
from leaderworkerset.api.episode import Episode
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.channel import PageChannel
from lwsctl.dashboard.livemodel import LiveModel
from lwsctl.dashboard.pages import (
    causepage,
    cells,
    disaggregatedsetpage,
    disaggregatedsetrollout,
    historypage,
    logspage,
    nowpage,
    rolloutpage,
    setpage,
    topologypage,
)
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.observation.lists import Lists, TooManyError

PAGES: Final[Mapping[PageKind, Page]] = {
    PageKind.NOW: nowpage.PAGE,
    PageKind.SET: setpage.PAGE,
    PageKind.ROLLOUT: rolloutpage.PAGE,
    PageKind.LOGS: logspage.PAGE,
    PageKind.HISTORY: historypage.PAGE,
    PageKind.WHOLE: disaggregatedsetpage.PAGE,
    PageKind.TOPOLOGY: topologypage.PAGE,
    PageKind.CAUSE: causepage.PAGE,
}


def page_of(address: Address) -> Page:
    """Return the page at an address. For DisaggregatedSets, the rollout page is different."""
    return (
        disaggregatedsetrollout.PAGE
        if address.is_disaggregatedset and address.kind is PageKind.ROLLOUT
        else PAGES[address.kind]
    )


KEPT_PAGES: Final = 64
"""The maximum number of pages that are retained without a stream."""

PATIENCE: Final = 5.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class OpenPage(Struct):
    """A retained page with its channel, the number of its streams, and the lists that were last read for it."""

    channel: PageChannel
    streams: int = 0
    facts: PageFacts = field(default_factory=lambda: PageFacts(is_read=False))
    read_at: float = float("-inf")
    made_at: datetime | None = None
    """The time of the snapshot."""


class Subscriptions:
    """The open pages on a server."""

    def __init__(self, model: LiveModel) -> None:
        self._model = model
        self._opened: dict[Address, OpenPage] = {}

    async def channel(self, address: Address) -> PageChannel:
        """Return the channel of a page in its current state."""
        return (await self._open_page(address, waits=not page_of(address).shows_first(address))).channel

    @asynccontextmanager
    async def subscribe(self, address: Address) -> AsyncIterator[PageChannel]:
        """Update a page while the context is active, and yield its channel."""
        opened = await self._open_page(address, waits=not page_of(address).shows_first(address))
        opened.streams += 1
        try:
            async with self._model.update_diagnoses():
                if self._is_due(address, opened):
                    self._model.announce()  # the lists are reread even without a change
                yield opened.channel
        finally:
            opened.streams -= 1

    async def facts(self, address: Address) -> PageFacts:
        """Return the lists and recorded failures that a page requires."""
        return (await self._open_page(address)).facts

    async def run(self) -> None:
        """Show each new snapshot on the open pages until cancelled.

        Slow lists of one page do not delay other pages.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                snapshot = self._model.snapshot
                for address, opened in self._opened.items():
                    is_due = opened.streams and self._is_due(address, opened)
                    if is_due:
                        tasks.create_task(self._reread_lists(address, opened))
                    if opened.streams and (not is_due or page_of(address).shows_first(address)):
                        self._update_page(address, opened)
                if self._model.snapshot is snapshot:  # otherwise, another one was opened in the meantime
                    await self._model.wait_for_change()

    async def _open_page(self, address: Address, *, waits: bool = True) -> OpenPage:
        opened = self._opened.pop(address, None)
        if opened is None:
            opened = OpenPage(PageChannel(randomness.uid()))
        self._opened[address] = opened  # move to the end, so that the least recently used pages are removed first
        opened.streams += 1
        try:
            if waits and self._is_due(address, opened):
                await self._reread_lists(address, opened)
            else:
                self._update_page(address, opened)
        finally:
            opened.streams -= 1
        idle = [key for key, page in self._opened.items() if not page.streams and page is not opened]
        for key in idle[: max(len(self._opened) - KEPT_PAGES, 0)]:
            del self._opened[key]
        return opened

    def _is_due(self, address: Address, opened: OpenPage) -> bool:
        """Return whether the lists of a page are too old."""
        page = page_of(address)
        does_read = page.reads_episodes or bool(page.reads(address))
        return does_read and self._model.clock.monotonic() >= opened.read_at + page.reads_every

    async def _reread_lists(self, address: Address, opened: OpenPage) -> None:
        opened.read_at = self._model.clock.monotonic()
        page = page_of(address)
        episodes = await self._episodes(address) if page.reads_episodes else None
        opened.facts = PageFacts(await self._read(page.reads(address)), episodes)
        self._update_page(address, opened)

    def _update_page(self, address: Address, opened: OpenPage) -> None:
        snapshot = self._model.snapshot
        try:
            facts = replace(opened.facts, before=opened.channel.shown)
            rendering = page_of(address).render(snapshot, address, facts)
            opened.made_at = snapshot.now
        except Exception as error:  # stored objects may contain any value, and other pages continue
            log.warning("a page could not be rendered", page=address.path(), error=repr(error), exc_info=error)
            trouble = f"this page is outdated, because it cannot be rendered: {errorboundary.describe(error)}"
            notice = cells.outdated_notes(replace(snapshot, connection_error=trouble, last_response=opened.made_at))
            rendering = {**opened.channel.shown, "trouble": notice}
        opened.channel.update(rendering)

    async def _read(self, queries: Sequence[Query]) -> dict[Resource, list[JSONObject]]:
        objects: dict[Resource, list[JSONObject]] = {}
        for query in queries:
            # The list is not permitted or too long. The page shows all other data.
            with suppress(KubeError, TimeoutError, TooManyError):
                async with timeouts.within(PATIENCE):
                    read = await Lists(self._model.client).list_bounded(query)
                    objects.setdefault(query.resource, []).extend(read)
        return objects

    async def _episodes(self, address: Address) -> Sequence[Episode] | None:
        """Return the recorded failures of an existing or deleted set, or of the parts of a DisaggregatedSet."""
        if self._model.read_episodes is None:
            return None
        keys = [address.key]
        if address.is_disaggregatedset:
            keys = [view.key for view, _ in self._model.snapshot.members(address.key, is_disaggregatedset=True)]
        try:
            async with timeouts.within(PATIENCE):
                return [episode for key in keys for episode in await self._model.read_episodes(key)]
        except (KubeError, OSError, TimeoutError) as error:
            log.warning("recorded failures could not be read", lws=str(address.key), error=str(error))
            return None
