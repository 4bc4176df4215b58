"""Keeps the latest state of one page and its last differences, for all browsers that show the page. Pure.

Each difference has a number and is a frame of the stream. A browser that reconnects sends the number of its last
frame, and receives the later frames. If they are no longer available, or if the server was restarted, it receives the
complete state.
"""

import asyncio
from collections import deque
from typing import Final

import msgspec

from kuberuntime.objects import decimals
from kuberuntime.objects.meta import JSONObject
from lwsctl.dashboard.fragments import Rendering, difference, full_state

KEPT_FRAMES: Final = 256
KEPT_BYTES: Final = 2**20
"""The limits of the events that are retained for browsers that reconnect."""


class Frame(msgspec.Struct, frozen=True):
    """An event of the stream, with the number of the resulting state and the data as bytes."""

    number: int
    data: bytes


class PageChannel:
    """The states of one page. `epoch` is unique for each channel and server."""

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self.shown: Rendering = {}
        self.number = 0
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    @property
    def ident(self) -> str:
        """Return the number of the latest state, in the notation of the stream."""
        return f"{self._epoch}.{self.number}"

    def update(self, rendering: Rendering) -> None:
        """Replace the state. If it differs from the previous state, send the difference to all streams."""
        change = difference(self.shown, rendering) if self.shown else None  # no browser has this state
        self.shown = rendering
        if change is None:
            return
        self.number += 1
        self._store_frame(Frame(self.number, self._event("difference", change)))
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self) -> None:
        """Wait for the next state."""
        await self._changed.wait()

    def events_after(self, ident: str) -> list[bytes]:
        """Return the events after the state with this number, up to the latest state."""
        epoch, _, text = ident.rpartition(".")
        number = decimals.natural(text)
        oldest = self._frames[0].number if self._frames else self.number + 1
        if epoch != self._epoch or number is None or not oldest - 1 <= number <= self.number:
            return [self._event("whole", full_state(self.shown))]
        return [frame.data for frame in self._frames if frame.number > number]

    def _store_frame(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.data)
        while len(self._frames) > KEPT_FRAMES or self._bytes > KEPT_BYTES:
            self._bytes -= len(self._frames.popleft().data)

    def _event(self, name: str, content: JSONObject) -> bytes:
        data = msgspec.json.encode(content)  # JSON has no line breaks, which would terminate the event
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (self.ident.encode(), name.encode(), data)
