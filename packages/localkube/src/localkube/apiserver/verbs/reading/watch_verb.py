"""Implements GET of a collection with `watch=true`, which streams the changes of its objects.

```
resourceVersion absent or 0     the current objects as ADDED, then changes
resourceVersion N               the changes after N; 410 Expired if they are no longer retained
sendInitialEvents=true          the current objects, a bookmark annotated `k8s.io/initial-events-end`, then changes
```
"""

from collections.abc import AsyncIterator, Iterator
from typing import Final

import msgspec

from kuberuntime.objects.field import FieldError, Kind, not_supported
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import filters
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.filters import ObjectSelector
from localkube.apiserver.requests.representation import Representation
from localkube.apiserver.requests.watch import Feed, follow
from localkube.apiserver.storage.store import Store
from localkube.apiserver.storage.storeerrors import CompactedError
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import list as listing
from localkube.apiserver.verbs.reading.responseformat import watch_encoder

LONGEST: Final = 3600
"""The duration of a watch without `timeoutSeconds`, in seconds."""

INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}


class WatchPlan(msgspec.Struct, frozen=True):
    """The parameters of a watch. With `sends_initial_events`, the watch sends the existing objects first.

    With `marks_initial_end`, it then sends a bookmark.
    """

    selection: ObjectSelector
    revision: int
    sends_initial_events: bool
    marks_initial_end: bool
    sends_bookmarks: bool
    timeout: float


def watch(backend: Backend, call: Call, form: Representation) -> AsyncIterator[bytes]:
    """Check the request. Return the lines of the watch."""
    check(call)
    revision = listing.parse_version(call.query.get("resourceVersion", ""))
    marked = call.flag("sendInitialEvents")
    plan = WatchPlan(
        selection=filters.parse(call.served, call.namespace, call.query),
        revision=revision,
        sends_initial_events=marked or (not revision and "sendInitialEvents" not in call.query),
        marks_initial_end=marked,
        sends_bookmarks=call.flag("allowWatchBookmarks"),
        timeout=float(call.number("timeoutSeconds") or LONGEST),
    )
    backend.store.flush()
    if revision > backend.store.revision:
        raise listing.too_new_error(revision, backend.store.revision)
    try:
        return WatchLines(backend, call, plan, form)
    except CompactedError as error:
        raise apierrors.too_old(revision, error.oldest) from error


def check(call: Call) -> None:
    """Raise an error for options that are invalid for a watch."""
    call.number("limit")  # has no effect, but must be a number
    match, initial = call.query.get("resourceVersionMatch", ""), "sendInitialEvents" in call.query
    if initial and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif match and not initial:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    else:
        return
    errors = [FieldError(Kind.FORBIDDEN, "resourceVersionMatch", detail=text)]
    if match not in {"", "NotOlderThan"}:
        errors.append(not_supported("resourceVersionMatch", match, ["NotOlderThan"]))
    raise apierrors.invalid("meta.k8s.io", "ListOptions", "", errors)


class WatchLines:
    """Yields the lines of a watch, which are the initial lines and then changes.

    The caller must close it. Otherwise the broadcaster keeps it.
    """

    def __init__(self, backend: Backend, call: Call, plan: WatchPlan, form: Representation) -> None:
        encoder = watch_encoder(backend, call, form)
        self._store, self._hub, self._plan = backend.store, backend.broadcaster, plan
        self._feed, self._watcher = backend.broadcaster.attach(call.served, plan.selection, encoder)
        try:
            self._watcher.push(_initial_lines(backend.store, self._feed, plan))
        except CompactedError:
            self._detach()
            raise
        if plan.marks_initial_end:
            self._watcher.push(self._feed.bookmark(backend.store.revision, INITIAL_EVENTS_END))
        self._chunks = follow(self._watcher, timeout=plan.timeout, progress=self._progress)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Detach the watcher from the broadcaster."""
        self._detach()

    def _detach(self) -> None:
        self._hub.detach(self._feed, self._watcher)

    def _progress(self) -> None:
        if self._plan.sends_bookmarks:
            self._store.flush()
            self._feed.deliver()
            self._watcher.push(self._feed.bookmark(self._store.revision))


def _initial_lines(store: Store, feed: Feed, plan: WatchPlan) -> bytes:
    """Return the lines before the first change from the broadcaster."""
    served = feed.served
    if plan.sends_initial_events:
        return feed.added_lines(
            _existing_objects(store.list(served.stored_as, plan.selection.namespace), plan.selection)
        )
    if plan.revision:
        return feed.render_changes(store.changes_since(plan.revision, served.stored_as))
    return b""


def _existing_objects(rows: Iterator[bytes], selection: ObjectSelector) -> Iterator[tuple[JSONObject, bytes]]:
    for row in rows:
        obj = msgspec.json.decode(row)
        if selection.matches(obj):
            yield obj, row
