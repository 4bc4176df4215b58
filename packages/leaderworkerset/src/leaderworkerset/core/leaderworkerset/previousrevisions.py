"""Lists the revisions of a LeaderWorkerSet, including its history, and their groups.

Input: the LeaderWorkerSet, its ControllerRevisions of both kinds, its groups. Output: entries by number, the current
one last.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.groupname import GroupName
from leaderworkerset.core.leaderworkerset import revisions


class RevisionEntry(Struct, frozen=True, kw_only=True):
    """A revision with its number, key, time, change cause, and group names."""

    number: int
    key: str
    created: str
    cause: str
    groups: tuple[GroupName, ...]
    is_current: bool
    revision: JSONObject


def entries(
    lws: JSONObject, objects: Iterable[JSONObject], groups: Iterable[tuple[str, GroupName]] = ()
) -> list[RevisionEntry]:
    """Return the revisions of a LeaderWorkerSet, oldest first.

    If several have the same key, return only the latest revision.

    `groups` has the revision key and the name of each group. The current revision is the latest revision outside of
    the history, because the controllers assign it the highest number.
    """
    own = [
        revision
        for revision in objects
        if (meta.controller_of(revision) or {}).get("uid", meta.uid(lws)) == meta.uid(lws)
    ]
    by_key = {key: revision for revision in sorted(own, key=_sort_key) if (key := revisions.revision_key(revision))}
    running: dict[str, list[GroupName]] = {}
    for key, name in groups:
        running.setdefault(key, []).append(name)
    living = [revision for revision in by_key.values() if not _is_history(revision)]
    current = max(living, key=revisions.revision_number, default=None)
    return [
        RevisionEntry(
            number=revisions.revision_number(revision),
            key=key,
            created=meta.creation_timestamp(revision),
            cause=revisions.change_cause(revision),
            groups=tuple(running.get(key, ())),
            is_current=revision is current,
            revision=revision,
        )
        for key, revision in sorted(by_key.items(), key=lambda item: revisions.revision_number(item[1]))
    ]


def find_entry(history: Sequence[RevisionEntry], number: int) -> RevisionEntry | None:
    """Return the entry with this number."""
    return next((entry for entry in history if entry.number == number), None)


def current_entry(history: Sequence[RevisionEntry]) -> RevisionEntry | None:
    """Return the entry from which new groups are created."""
    return next((entry for entry in history if entry.is_current), None)


def previous_entry(history: Sequence[RevisionEntry]) -> RevisionEntry | None:
    """Return the latest entry that is not the current entry."""
    return next((entry for entry in reversed(history) if not entry.is_current), None)


def revision_content(entry: RevisionEntry) -> JSONObject:
    """Return the `spec` fields of the revision. Raise `UnreadableRevisionError` if it has no template."""
    spec: JSONObject = _without_nulls(revisions.restore({"spec": {}}, entry.revision)["spec"])
    return spec


def _is_history(revision: JSONObject) -> bool:
    return labels.HISTORY_OF in meta.labels(revision)


def _sort_key(revision: JSONObject) -> tuple[bool, int]:
    """Return a sort key.

    Among entries with the same key, the revision in use is last, preceded by the latest revision.
    """
    return not _is_history(revision), revisions.revision_number(revision)


def _without_nulls(value: Any) -> Any:
    """Remove null values that Go writes, and that API servers reject in some fields."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
