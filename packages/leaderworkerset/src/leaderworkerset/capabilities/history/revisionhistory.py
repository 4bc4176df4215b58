"""Maintains the revision history of a LeaderWorkerSet. It contains unused revisions that users can list and restore.

When all groups have the current revision, the Go controller deletes all other revisions (R-REV-14). This module instead
removes two of their labels: the name of the LeaderWorkerSet and the key of the revision. Both controllers and all
clients find revisions by these labels, so they count only the revisions that the Go controller would have kept. The
reasons are in docs/adr/0012-revision-history.md.

Input: the LeaderWorkerSet, the outdated revisions and, only if there are any, the existing history. Output: the
actions that retain the latest revision of each content and delete the others. Each revision is moved by one write.
Unchanged objects are not written.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.plan import Action, Patch, guarded_delete, guarded_patch
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.leaderworkerset import revisions
from leaderworkerset.core.leaderworkerset.decision import SetFacts

DEFAULT_LIMIT: Final = 10
"""The default number of retained revisions, as for Deployments."""

HIGHEST_LIMIT: Final = 100
"""The maximum configurable limit. Each revision is an object with the size of the template."""


MOST_BYTES: Final = 4 * 2**20
"""The maximum total size in bytes of all retained templates except the latest. One template can exceed 1 MiB."""


LONGEST_QUOTED: Final = 63
"""The maximum number of characters of a quoted value in a warning."""


def limit(obj: JSONObject) -> int:
    """Return the maximum number of old revisions. An annotation that is not a number is ignored."""
    value = decimals.natural(meta.annotations(obj).get(labels.REVISION_HISTORY_LIMIT, ""))
    return DEFAULT_LIMIT if value is None else min(value, HIGHEST_LIMIT)


def warnings(annotations: Mapping[str, str]) -> Iterator[str]:
    """Return a warning about an ignored annotation that is not a number."""
    text = annotations.get(labels.REVISION_HISTORY_LIMIT)
    if text is not None and decimals.natural(text) is None:
        where = f"metadata.annotations.{labels.REVISION_HISTORY_LIMIT}"
        yield (
            f"{where}: {text[:LONGEST_QUOTED]!r} is not a number. The default applies, and {DEFAULT_LIMIT} revisions "
            "are kept"
        )


def selector(name: str) -> str:
    """Return the label selector for the revision history of a LeaderWorkerSet."""
    return f"{labels.HISTORY_OF}={name}"


def retire_revisions(facts: SetFacts, outdated: Sequence[JSONObject]) -> list[Action]:
    """Return the actions for revisions that no group uses."""
    return update_history(facts.obj, facts.revision.key, outdated, facts.observed.known.history or ())


def update_history(
    obj: JSONObject, key: str, outdated: Iterable[JSONObject], known: Iterable[JSONObject]
) -> list[Action]:
    """Return the actions for outdated revisions and for the history after all groups have the revision `key`.

    The latest revision of each content is kept, up to the limit. The current content does not belong to the history.
    Revisions without a controller are adopted, because they were orphaned when a previous LeaderWorkerSet was deleted.
    """
    leaving = list(outdated)
    past = [revision for revision in known if meta.is_controlled(revision, obj) or meta.controller_of(revision) is None]
    kept = {meta.uid(revision) for revision in latest_revisions([*leaving, *past], key, limit(obj))}
    moves: list[Action] = [
        _move_to_history(obj, revision)
        if meta.uid(revision) in kept
        else guarded_delete(CONTROLLER_REVISIONS, revision)
        for revision in leaving
    ]
    moves += [guarded_delete(CONTROLLER_REVISIONS, revision) for revision in past if meta.uid(revision) not in kept]
    orphans = [revision for revision in past if meta.uid(revision) in kept and meta.controller_of(revision) is None]
    return moves + [
        guarded_patch(CONTROLLER_REVISIONS, revision, revisions.adoption_patch(revision, obj)) for revision in orphans
    ]


def latest_revisions(candidates: Iterable[JSONObject], key: str, count: int) -> list[JSONObject]:
    """Return the latest `count` revisions with distinct content, except for `key`. Return fewer if they are large."""
    by_key: dict[str, JSONObject] = {}
    for revision in sorted(candidates, key=revisions.revision_number, reverse=True):
        by_key.setdefault(revisions.revision_key(revision), revision)
    kept, size = [revision for revision in by_key.values() if revisions.revision_key(revision) != key][:count], 0
    for position, revision in enumerate(kept):
        size += len(msgspec.json.encode(revision.get("data")))
        if size > MOST_BYTES and position:
            return kept[:position]
    return kept


def _move_to_history(obj: JSONObject, revision: JSONObject) -> Patch:
    change = revisions.adoption_patch(revision, obj).get("metadata", {}) | {
        "labels": {labels.NAME: None, labels.TEMPLATE_REVISION_HASH: None, labels.HISTORY_OF: meta.name(obj)},
        "annotations": {labels.TEMPLATE_REVISION_HASH: groupname.revision_key(revision)},
    }
    return guarded_patch(CONTROLLER_REVISIONS, revision, {"metadata": change}, if_present=True)
