"""Limits concurrent log requests, so that a namespace or node does not delay requests for others.

Namespaces take turns, regardless of their number of requests. A node that does not respond uses only a few of the
slots.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

from kuberuntime.fairqueue import FairQueue
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

AT_ONCE: Final = 16
OF_A_NODE: Final = 4
"""The maximum number of concurrent requests, in total and per node."""


class LogRequestLimits:
    """Limits concurrent requests."""

    def __init__(self) -> None:
        self._free = AT_ONCE
        self._busy: Counter[str] = Counter()
        self._waiting: OrderedDict[str, FairQueue[tuple[str, asyncio.Future[None]]]] = OrderedDict()
        """The waiting requests by namespace, with their nodes."""

    @asynccontextmanager
    async def acquire(self, pod: JSONObject) -> AsyncIterator[None]:
        """Wait for a slot, and occupy it while a log is requested."""
        node = str(meta.spec(pod).get("nodeName") or "")
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(meta.namespace(pod), FairQueue()).put(node, (node, granted))
        self._admit_waiting()
        try:
            await granted
            yield
        finally:
            if granted.done() and not granted.cancelled():
                self._free += 1
                self._busy -= Counter((node,))
                self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._free and (request := self._next()) is not None:
            node, granted = request
            if not granted.done():
                granted.set_result(None)
                self._free -= 1
                self._busy[node] += 1

    def _next(self) -> tuple[str, asyncio.Future[None]] | None:
        for namespace, requests in list(self._waiting.items()):
            if (request := requests.pop(self._is_full)) is None:
                continue
            self._waiting.move_to_end(namespace)
            if not requests:
                del self._waiting[namespace]
            return request
        return None

    def _is_full(self, node: Hashable) -> bool:
        return self._busy[str(node)] >= OF_A_NODE
