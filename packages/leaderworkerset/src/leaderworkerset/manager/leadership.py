"""Runs the controllers of a process immediately or while the process is the leader."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from kuberuntime.serving.leaderelection import LeaderElection
from leaderworkerset.manager.components import run_in_background
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.webhookowner import WebhookOwner

FINISH_SECONDS: Final = 6.0
"""The timeout in seconds for stopping the controllers and releasing the lease."""


async def start_immediately() -> None:
    """Return immediately. This is the default start condition."""


class LeaderRunner:
    """Builds and runs new controllers for each leadership term. It starts when `begin` returns.

    If `owner` is set, it leads only while the cluster's webhooks do not refer to a different namespace.
    """

    def __init__(
        self,
        build: Callable[[], Controllers],
        *,
        election: LeaderElection | None,
        begin: Callable[[], Awaitable[object]] = start_immediately,
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
        """Return whether the controllers' caches have synced, or a different replica is the leader."""
        return self._has_synced or (self._election is not None and not self._election.is_leader)

    def receives_changes(self) -> bool:
        """Return whether the watches of the leader receive data. Other replicas have no watches."""
        return not self._has_synced or self._controllers is None or not self._controllers.are_watches_silent

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Participate in leader election, and lead while the context is active."""
        async with asyncio.TaskGroup() as tasks:
            self._work = tasks.create_task(self._run(), name="work")
            yield
            self._work.cancel()

    async def drain(self) -> None:
        """Do not start further reconciliations, finish active reconciliations, and release the lease."""
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
        async with run_in_background(self._owner.watch()):
            await self._owner.wait_until_known()
            while await self._lead_while_owner(self._owner):
                pass

    async def _lead_while_owner(self, owner: WebhookOwner) -> bool:
        """Lead until the cluster's webhooks refer to a different namespace. Return whether they do."""
        await owner.wait_until(ours=True)
        async with asyncio.TaskGroup() as tasks:
            leading = tasks.create_task(self._lead(), name="leading")
            noticing = tasks.create_task(owner.wait_until(ours=False))
            await asyncio.wait((leading, noticing), return_when=asyncio.FIRST_COMPLETED)
            is_over = noticing.done()
            leading.cancel()
            noticing.cancel()
        return is_over

    async def _lead(self) -> None:
        if self._election is not None:
            await self._election.run(self._run_controllers)
        else:
            await self._run_controllers()

    async def _run_controllers(self) -> None:
        controllers = self._controllers = self._build()
        if self._is_stopping:
            controllers.stop()
        try:
            await controllers.run()
        finally:
            self._controllers = None
