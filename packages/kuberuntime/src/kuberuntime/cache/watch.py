"""Implements a state machine for list and watch. It selects the next request and interprets the response.

`step` makes all decisions about the watch of one kind. This module performs no I/O. The driver (`reflector.py`) reads
the state, sends the request of the phase, and passes the response to `step`:

```
            Page(token)                 Page                  Opened
   EMPTY ───────────────► PAGING ──────────────► LISTED ─────────────► WATCHING
     │ ▲                    │ ▲ Page(token)        ▲                      │
     │ │ Refused 410        └─┘                    └──────────────────────┘ Ended, ERROR event
     │ └── from every phase: 410 (as a response or as an ERROR event), Relist, Silent, too many empty streams
     └──────────────────► INITIAL ── bookmark "initial events end" ──► WATCHING
        streaming lists, where the server serves them
```

Outputs report changes to a collector (`cache.py`), as in kube-rs. A list consists of `ListStarted`, any number of `ListPage`
and `ListItemRemoved`, then `ListCompleted`, and replaces the previous contents only when it is complete. Single changes are
`ObjectApplied`, `ObjectDeleted` and `ObjectHidden`. `ListCompleted` and `Bookmark` contain the resourceVersion up to which all changes have
been observed.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.backoff import Backoff
from kuberuntime.client.client import PAGE, Page
from kuberuntime.errors import BadRequestError, ExpiredError, InvalidError, KubeError, NotFoundError, from_status
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ResourceVersion

BACKOFF: Final = Backoff(base=0.2, limit=30.0)
"""The retry delay. It starts with 0.2 s, because a local API server restarts in less than a second."""

LASTED: Final = 5.0
"""The minimum duration of a watch in seconds. A shorter watch is treated as a failure."""

EMPTY_STREAMS: Final = 3
"""The number of consecutive watches that can close immediately without events before a new list request."""

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark that completes a streaming list."""


NO_VERSION: Final = ResourceVersion("")

UNUSABLE: Final = "UNUSABLE"
"""The event type of an object that could not be decoded or reduced. The object contains only its metadata."""


class Phase(StrEnum):
    """The next action that the driver performs."""

    EMPTY = "empty"
    """Request the first page or a streaming list."""
    PAGING = "paging"
    """Request the page after `token`."""
    INITIAL = "initial"
    """Receive the objects of a streaming list."""
    LISTED = "listed"
    """Open a watch from `version`."""
    WATCHING = "watching"
    """Receive changes."""


ABSENT_FAILURES: Final = 5
"""The maximum number of counted failures if a kind is not served, because its CRD can be created at any time."""


class State(Struct, frozen=True):
    """The state of the machine between two inputs.

    `failures` counts consecutive failures, which determine the delay before the next request. `is_streaming` is False
    after the server rejected a streaming list. `limit` is the page size, or 0 (no pages) after a page token expired.
    If an `is_optional` kind is not served, it is `is_absent` and has no objects. `empty_streams` counts consecutive streams that
    closed immediately without an event. `has_received_event` is set when the open stream has sent a change or a bookmark, and
    `sends_events` when any stream has. A watch is `is_stalled` if a stream closed without an expected event, until the server
    responds again.
    """

    phase: Phase = Phase.EMPTY
    version: ResourceVersion = NO_VERSION
    token: str = ""
    is_streaming: bool = True
    limit: int = PAGE
    failures: int = 0
    is_optional: bool = False
    is_absent: bool = False
    empty_streams: int = 0
    has_received_event: bool = False
    sends_events: bool = False
    is_stalled: bool = False

    def wait(self, jitter: float) -> float:
        """Return the seconds to wait before the request of this phase. `jitter` is between 0 and 1."""
        return BACKOFF.delay(max(self.failures, self.empty_streams), jitter)


class RequestFailed(Struct, frozen=True):
    """The request of this phase failed with an error or without a response."""

    error: KubeError


class StreamOpened(Struct, frozen=True):
    """The stream requested in this phase is open."""


class StreamEvent(Struct, frozen=True):
    """A stream line of the type ADDED, MODIFIED, DELETED, BOOKMARK, ERROR or `UNUSABLE`."""

    type: str
    object: JSONObject


class StreamEnded(Struct, frozen=True):
    """The stream was closed after `lasted` seconds."""

    lasted: float


class StreamSilent(Struct, frozen=True):
    """The open stream was closed because it sent neither an event nor a bookmark for too long."""


class Relist(Struct, frozen=True):
    """A new list of all objects is required."""


Input: TypeAlias = Page | RequestFailed | StreamOpened | StreamEvent | StreamEnded | StreamSilent | Relist


class ListStarted(Struct, frozen=True):
    """A complete list starts. Discard the previous list if it is incomplete."""


class ListPage(Struct, frozen=True):
    """Objects that belong to the list."""

    objects: Sequence[JSONObject]


class ListItemRemoved(Struct, frozen=True):
    """An object that no longer belongs to the incomplete list."""

    object: JSONObject


class ListCompleted(Struct, frozen=True):
    """The list is complete at `version`."""

    version: ResourceVersion


class ObjectApplied(Struct, frozen=True):
    """An added or changed object."""

    object: JSONObject


class ObjectDeleted(Struct, frozen=True):
    """The last state of a deleted object."""

    object: JSONObject


class ObjectHidden(Struct, frozen=True):
    """An existing object that is treated as absent, because it is unusable."""

    object: JSONObject


class Bookmark(Struct, frozen=True):
    """There are no further changes up to `version`."""

    version: ResourceVersion


Output: TypeAlias = (
    ListStarted | ListPage | ListItemRemoved | ListCompleted | ObjectApplied | ObjectDeleted | ObjectHidden | Bookmark
)
Transition: TypeAlias = tuple[State, tuple[Output, ...]]


def step(state: State, happened: Input) -> Transition:
    """Return the next state, and the outputs for the cache."""
    if state.is_stalled and not isinstance(happened, StreamOpened | StreamSilent | Relist):
        state = replace(state, is_stalled=False)
    match happened:
        case Relist() | StreamSilent() | StreamEnded():
            return _handle_stream_end(state, happened), ()
        case Page():
            return _handle_page(state, happened)
        case StreamOpened():
            return _handle_open_stream(state)
        case StreamEvent():
            return _handle_event(state, happened)
        case RequestFailed():
            return _handle_error(state, happened.error)


def are_silent(states: Iterable[State]) -> bool:
    """Return whether all watches that have previously sent changes or bookmarks are silent."""
    speaking = [state for state in states if state.sends_events]
    return bool(speaking) and all(state.is_stalled for state in speaking)


def _handle_stream_end(state: State, happened: Relist | StreamSilent | StreamEnded) -> State:
    match happened:
        case Relist():
            return _restart(state, failures=state.failures)
        case StreamSilent():
            return _handle_missing_event(state)
        case StreamEnded():
            return _handle_closed_stream(state, happened)


def _restart(state: State, *, failures: int) -> State:
    return replace(
        state,
        phase=Phase.EMPTY,
        version=NO_VERSION,
        token="",
        failures=failures,
        is_absent=False,
        has_received_event=False,
    )


def _handle_missing_event(state: State) -> State:
    """Request a new list if the server was expected to send data. Otherwise, open a new watch.

    A server sends bookmarks for a kind only after the first change since the server started. Before that, silence is
    normal. Later, silence means that the connection is broken or that a proxy withholds data, so events may be lost.
    """
    if state.phase is Phase.WATCHING and not state.has_received_event:
        return replace(state, phase=Phase.LISTED)
    return replace(_restart(state, failures=state.failures), is_stalled=True)


def _handle_page(state: State, page: Page) -> Transition:
    first: tuple[Output, ...] = (ListStarted(),) if state.phase is Phase.EMPTY else ()
    # One failure is retained until events arrive, so that versions that expire immediately do not cause a hot loop.
    listing = replace(state, token=page.token, failures=min(state.failures, 1), is_absent=False)
    if page.token:
        return replace(listing, phase=Phase.PAGING), (*first, ListPage(page.items))
    next_state = replace(listing, phase=Phase.LISTED, version=page.resource_version)
    return next_state, (*first, ListPage(page.items), ListCompleted(page.resource_version))


def _handle_open_stream(state: State) -> Transition:
    if state.phase is Phase.EMPTY:
        return replace(state, phase=Phase.INITIAL, is_absent=False, has_received_event=False), (ListStarted(),)
    return replace(state, phase=Phase.WATCHING, has_received_event=False), ()


def _handle_event(state: State, event: StreamEvent) -> Transition:
    if event.type == "ERROR":
        return _handle_error(state, from_status(event.object))
    if state.phase is Phase.INITIAL:
        return _handle_initial_event(state, event)
    return _handle_change(state, event)


def _handle_initial_event(state: State, event: StreamEvent) -> Transition:
    match event.type:
        case "ADDED" | "MODIFIED":
            return state, (ListPage((event.object,)),)
        case "DELETED" | "UNUSABLE":
            return state, (ListItemRemoved(event.object),)
        case "BOOKMARK" if meta.annotations(event.object).get(INITIAL_EVENTS_END) == "true":
            version = meta.resource_version(event.object)
            return replace(state, phase=Phase.WATCHING, version=version, failures=0), (ListCompleted(version),)
        case _:
            return state, ()


def _handle_change(state: State, event: StreamEvent) -> Transition:
    version = meta.resource_version(event.object)
    next_state = replace(
        state, version=version, failures=0, empty_streams=0, has_received_event=True, sends_events=True
    )
    match event.type:
        case "ADDED" | "MODIFIED":
            return next_state, (ObjectApplied(event.object),)
        case "DELETED":
            return next_state, (ObjectDeleted(event.object),)
        case "UNUSABLE":
            return next_state, (ObjectHidden(event.object),)
        case "BOOKMARK":
            return next_state, (Bookmark(version),)
        case _:
            return state, ()  # an event type of a later Kubernetes version


def _handle_closed_stream(state: State, end: StreamEnded) -> State:
    failures = 0 if end.lasted >= LASTED else state.failures + 1
    if state.phase is not Phase.WATCHING:
        return _restart(state, failures=failures)
    # A proxy may close every watch. The count is retained after a list, so that the next lists are delayed.
    empty = 0 if end.lasted >= LASTED else state.empty_streams + 1
    after = replace(state, empty_streams=empty)
    if empty and empty % EMPTY_STREAMS == 0:
        return _restart(after, failures=failures)
    return replace(after, phase=Phase.LISTED, failures=failures)


def _handle_error(state: State, error: KubeError) -> Transition:
    if state.is_optional and isinstance(error, NotFoundError):
        failures = min(state.failures + 1, ABSENT_FAILURES)
        return replace(_restart(state, failures=failures), is_absent=True), (ListStarted(), ListCompleted(NO_VERSION))
    return _handle_rejection(state, error), ()


def _handle_rejection(state: State, error: KubeError) -> State:
    failures = state.failures + 1
    match error, state.phase:
        case ((BadRequestError() | InvalidError()), Phase.EMPTY) if state.is_streaming:
            return replace(state, is_streaming=False)
        case ExpiredError(), (Phase.PAGING | Phase.INITIAL | Phase.LISTED | Phase.WATCHING) as phase:
            limit = 0 if phase is Phase.PAGING else state.limit
            return replace(_restart(state, failures=1), limit=limit)  # the server responds, so the delay is short
        case _, Phase.INITIAL:
            return _restart(state, failures=failures)
        case _, Phase.WATCHING:
            return replace(state, phase=Phase.LISTED, failures=failures)
        case _:
            return replace(state, failures=failures)
