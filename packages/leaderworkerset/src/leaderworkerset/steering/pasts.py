"""The revisions of a LeaderWorkerSet, including its history, and the groups of each.

In: the LeaderWorkerSet, its ControllerRevisions of both kinds, the leader pods. Out: entries by number, the current one
last.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.capabilities.history import revisionhistory
from leaderworkerset.core.leaderworkerset import revisions
from leaderworkerset.views.document import VERSION
from leaderworkerset.views.groups import GroupName, View


class Entry(Struct, frozen=True, kw_only=True):
    """One revision: its number and key, its time and change cause, and the names of its groups."""

    number: int
    key: str
    created: str
    cause: str
    groups: tuple[GroupName, ...]
    is_current: bool
    revision: JSONObject


def selector(name: str) -> str:
    """Return the label selector of the history of a LeaderWorkerSet."""
    return revisionhistory.selector(name)


def entries(view: View, objects: Iterable[JSONObject]) -> list[Entry]:
    """Return the revisions of a LeaderWorkerSet, the oldest first; the newest of several with one key.

    The current one is the newest that is not history: the controllers give it the highest number.
    """
    lws = view.object
    own = [
        revision
        for revision in objects
        if (meta.controller_of(revision) or {}).get("uid", meta.uid(lws)) == meta.uid(lws)
    ]
    by_key = {key: revision for revision in sorted(own, key=_rank) if (key := revisions.key_of(revision))}
    running: dict[str, list[GroupName]] = {}
    for group in view.groups:
        running.setdefault(group.revision, []).append(group.name)
    living = [revision for revision in by_key.values() if not _is_history(revision)]
    current = max(living, key=revisions.number_of, default=None)
    return [
        Entry(
            number=revisions.number_of(revision),
            key=key,
            created=meta.created(revision),
            cause=revisions.change_cause(revision),
            groups=tuple(running.get(key, ())),
            is_current=revision is current,
            revision=revision,
        )
        for key, revision in sorted(by_key.items(), key=lambda item: revisions.number_of(item[1]))
    ]


def find(history: Sequence[Entry], number: int) -> Entry | None:
    """Return the entry with the number."""
    return next((entry for entry in history if entry.number == number), None)


def current(history: Sequence[Entry]) -> Entry | None:
    """Return the entry from which new groups are created."""
    return next((entry for entry in history if entry.is_current), None)


def before(history: Sequence[Entry]) -> Entry | None:
    """Return the newest entry that is not the current one."""
    return next((entry for entry in reversed(history) if not entry.is_current), None)


def content(entry: Entry) -> JSONObject:
    """Return the fields of `spec` in the revision; raise `UnreadableRevisionError` if it has no template."""
    spec: JSONObject = _without_nulls(revisions.restore({"spec": {}}, entry.revision)["spec"])
    return spec


def document(name: str, history: Sequence[Entry]) -> JSONObject:
    """Return the document of the entries with stable field names, as `-o json` prints it."""
    return {
        "apiVersion": VERSION,
        "kind": "RevisionList",
        "leaderWorkerSet": name,
        "items": [
            {
                "revision": entry.number,
                "key": entry.key,
                "created": entry.created,
                "changeCause": entry.cause,
                "groups": list(entry.groups),
                "current": entry.is_current,
                "spec": content(entry),
            }
            for entry in history
        ],
    }


def _is_history(revision: JSONObject) -> bool:
    return labels.HISTORY_OF in meta.labels(revision)


def _rank(revision: JSONObject) -> tuple[bool, int]:
    """Return the sort key: of one key, the revision in use comes last, then the newest."""
    return not _is_history(revision), revisions.number_of(revision)


def _without_nulls(value: Any) -> Any:
    """Remove values that Go writes as null, which an API server would refuse in some places."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
