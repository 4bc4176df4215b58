"""Finds invalid fields and annotations that prevent the reconciliation of a LeaderWorkerSet.

Input: the object as stored. Output: the error, with field and value. `lws explain` uses the same function.
"""

from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset import budget
from leaderworkerset.core.restarts import counts

SHOWN: Final = 100
"""The number of displayed characters of a value."""

PREFIX: Final = f"annotation {labels.GROUP_RESTART_COUNTS}: "


def unreadable_reason(obj: JSONObject) -> str:
    """Return the reason why the manager cannot read a LeaderWorkerSet, or an empty string if there is none."""
    try:
        lws = leaderworkerset.decode(obj)
        budget.read(lws.spec)
    except ValueError as error:
        return str(error)
    why = unreadable_counts_reason(lws)
    return f"{PREFIX}{why}" if why else ""


def unreadable_counts_reason(lws: LeaderWorkerSet) -> str:
    """Return the reason why the restart counts are invalid, with their value.

    Return an empty string if they are valid.
    """
    text = lws.metadata.annotations.get(labels.GROUP_RESTART_COUNTS, "")
    try:
        for key in counts.read({"metadata": {"annotations": lws.metadata.annotations}}) if text else ():
            if not lws.spec.group_identity.is_hash:
                _ = key.ordinal
    except ValueError as error:
        return f"{excerpt(text)}: {str(error).removeprefix(PREFIX)}"
    return ""


def excerpt(text: str) -> str:
    """Return the first characters of a value for display."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
