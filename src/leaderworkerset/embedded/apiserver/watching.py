"""GET of a collection with `watch=true`: the changes of its objects as they happen.

```
resourceVersion absent or 0     what is there now as ADDED, then changes
resourceVersion N               the changes behind N; 410 Expired where they are no longer remembered
sendInitialEvents=true          what is there now, a bookmark annotated `k8s.io/initial-events-end`, then changes
```
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from leaderworkerset.api.field import FieldError, Kind
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import list as listing
from leaderworkerset.embedded.apiserver import refusal, selection
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.present import encoder_of
from leaderworkerset.embedded.apiserver.representation import Representation
from leaderworkerset.embedded.apiserver.selection import Selection
from leaderworkerset.embedded.apiserver.store import Compacted
from leaderworkerset.embedded.apiserver.watch import Feed, Subject, follow, line

LONGEST: Final = 3600
"""Seconds a watch lasts that does not say how long."""

INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a watch was asked for. `initial`: begin with what is there; `marked`: and tell where that ends."""

    selection: Selection
    revision: int
    initial: bool
    marked: bool
    bookmarks: bool
    timeout: float


def watch(backend: Backend, call: Call, shown: Representation) -> AsyncIterator[bytes]:
    """Check the request and return the lines of the watch."""
    check(call)
    revision = listing.version(call.query.get("resourceVersion", ""))
    marked = call.flag("sendInitialEvents")
    plan = Plan(
        selection=selection.parse(call.served, call.namespace, call.query),
        revision=revision,
        initial=marked or (not revision and "sendInitialEvents" not in call.query),
        marked=marked,
        bookmarks=call.flag("allowWatchBookmarks"),
        timeout=float(call.number("timeoutSeconds") or LONGEST),
    )
    backend.store.flush()
    if revision > backend.store.revision:
        raise listing.too_new(revision, backend.store.revision)
    if not plan.initial and revision and revision < backend.store.compacted:
        raise refusal.too_old(revision, backend.store.compacted)
    return _lines(backend, call, plan, shown)


def check(call: Call) -> None:
    """Refuse options that make no sense for a watch."""
    match, initial = call.query.get("resourceVersionMatch", ""), "sendInitialEvents" in call.query
    if initial and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif match and not initial:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    else:
        return
    fault = FieldError(Kind.FORBIDDEN, "resourceVersionMatch", detail=text)
    raise refusal.invalid("meta.k8s.io", "ListOptions", "", [fault])


async def _lines(backend: Backend, call: Call, plan: Plan, shown: Representation) -> AsyncIterator[bytes]:
    """Attach to the hub, yield what came before, then what comes, and detach."""
    backend.store.flush()
    encoder = encoder_of(backend, call, shown)
    subject = Subject(call.served, plan.selection, encoder.name)
    feed, watcher = backend.hub.attach(subject, encoder)
    revision = backend.store.revision

    def progress() -> None:
        if plan.bookmarks:
            backend.store.flush()
            feed.deliver()
            watcher.push(feed.bookmark(backend.store.revision))

    try:
        try:
            first = _first(backend, feed, plan)
        except Compacted as error:
            gone = refusal.too_old(plan.revision, error.oldest)
            yield line("ERROR", msgspec.json.encode(gone.status()))
            return
        if plan.marked:
            first += feed.bookmark(revision, INITIAL_EVENTS_END)
        if first:
            yield first
        async for chunk in follow(watcher, timeout=plan.timeout, progress=progress):
            yield chunk
    finally:
        backend.hub.detach(feed, watcher)


def _first(backend: Backend, feed: Feed, plan: Plan) -> bytes:
    """Return the lines before the first change that the hub brings."""
    served = feed.subject.served
    if plan.initial:
        return feed.added(_present(backend.store.list(served.stored_as, plan.selection.namespace), plan.selection))
    if plan.revision:
        return feed.lines_of(backend.store.changes_since(plan.revision, served.stored_as))
    return b""


def _present(rows: Iterator[bytes], chosen: Selection) -> Iterator[tuple[JSONObject, bytes]]:
    for row in rows:
        obj = msgspec.json.decode(row)
        if chosen.matches(obj):
            yield obj, row
