"""Runs the controllers of a process: at once, or under a lease while this process is the leader."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from kuberuntime.serving.leaderelection import LeaderElection
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.parts import background
from leaderworkerset.manager.webhookowner import WebhookOwner

FINISH_SECONDS: Final = 6.0
"""The time limit in seconds for ending the controllers and releasing the lease."""


async def at_once() -> None:
    """Return at once: the default of a condition to wait for."""


class Leading:
    """Builds and runs controllers, new ones for every leadership; it starts when `begin` returns, by default at once.

    With `owner` it leads only while the webhooks of the cluster do not lead to another namespace.
    """

    def __init__(
        self,
        build: Callable[[], Controllers],
        *,
        election: LeaderElection | None,
        begin: Callable[[], Awaitable[object]] = at_once,
        owner: WebhookOwner | None = None,
    ) -> None:
        self._build = build
        self._election = election
        self._begin = begin
        self._owner = owner
        self._controllers: Controllers | None = None
        self._is_stopping = False
        self._work: asyncio.Task[None]

    @property
    def is_ready(self) -> bool:
        """Return whether the controllers' caches are filled, or another replica leads."""
        return self._has_synced or (self._election is not None and not self._election.is_leader)

    def receives_changes(self) -> bool:
        """Return whether the watches of this leader carry data; other replicas have none."""
        return not self._has_synced or self._controllers is None or not self._controllers.is_silent

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Campaign and lead inside the context."""
        async with asyncio.TaskGroup() as tasks:
            self._work = tasks.create_task(self._run(), name="work")
            yield
            self._work.cancel()

    async def drain(self) -> None:
        """Start no reconcile, finish those in progress, and release the lease."""
        is_at_work = self._has_synced
        self._is_stopping = True
        if self._controllers is not None:
            self._controllers.stop()
        if is_at_work:
            await asyncio.wait((self._work,), timeout=FINISH_SECONDS)
        self._work.cancel()
        await asyncio.wait((self._work,))

    @property
    def _has_synced(self) -> bool:
        return self._controllers is not None and self._controllers.is_ready

    async def _run(self) -> None:
        await self._begin()
        if self._owner is None:
            await self._lead()
            return
        async with background(self._owner.follow()):
            await self._owner.known()
            while await self._lead_while_ours(self._owner):
                pass

    async def _lead_while_ours(self, owner: WebhookOwner) -> bool:
        """Lead until the webhooks of the cluster lead elsewhere; return whether that ended it."""
        await owner.until(ours=True)
        async with asyncio.TaskGroup() as tasks:
            leading = tasks.create_task(self._lead(), name="leading")
            noticing = tasks.create_task(owner.until(ours=False))
            await asyncio.wait((leading, noticing), return_when=asyncio.FIRST_COMPLETED)
            is_over = noticing.done()
            leading.cancel()
            noticing.cancel()
        return is_over

    async def _lead(self) -> None:
        if self._election is not None:
            await self._election.run(self._control)
        else:
            await self._control()

    async def _control(self) -> None:
        controllers = self._controllers = self._build()
        if self._is_stopping:
            controllers.stop()
        try:
            await controllers.run()
        finally:
            self._controllers = None
