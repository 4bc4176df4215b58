"""Warns about accepted annotations that have no effect, or an unintended effect.

Capabilities read their own settings. The table has a row for each other annotation that is read from a
LeaderWorkerSet. Other annotations with a prefix of this project have no effect, because they belong to a different
object or are misspelled.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import decimals, names
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.usersettings import SETTINGS
from leaderworkerset.core.leaderworkerset import invalidfields

Check: TypeAlias = Callable[[LeaderWorkerSet, str], str]
"""Returns the reason why an annotation value is invalid, and the effect. Returns an empty string if it is valid."""

NO_EFFECT: Final = "has no effect on a LeaderWorkerSet"


def warnings(lws: LeaderWorkerSet) -> Iterator[str]:
    """Yield a warning for each invalid or unknown annotation with a prefix of this project."""
    for name, text in lws.metadata.annotations.items():
        if not name.startswith(labels.PREFIX):
            if meant := _intended_annotation(name):
                yield f"metadata.annotations.{name}: {NO_EFFECT}. Did you mean {meant}?"
            continue
        check = CHECKS.get(name, _accept_any if name in KNOWN else _accept_none)
        if why := check(lws, text):
            yield f"metadata.annotations.{name}: {why}"


def _intended_annotation(name: str) -> str:
    """Return the annotation that the user probably intended with a misspelled prefix, or an empty string."""
    prefix, _, own = name.rpartition("/")
    meant = labels.PREFIX + own
    is_ours = prefix in ("", "lws") or "leaderworkerset" in prefix
    return meant if is_ours and (meant in KNOWN or meant in CHECKS) else ""


def _check_counts(lws: LeaderWorkerSet, _text: str) -> str:
    why = invalidfields.unreadable_counts_reason(lws)
    return f"{why}. The LeaderWorkerSet is not reconciled until you correct or remove the annotation" if why else ""


def _check_partition(_lws: LeaderWorkerSet, text: str) -> str:
    is_number = decimals.natural(text) is not None
    return "" if is_number else f"{invalidfields.excerpt(text)} is not a number, so the rollout resumes at partition 0"


def _check_node_label(_lws: LeaderWorkerSet, text: str) -> str:
    is_label = not names.label_key(text)
    return (
        "" if is_label else f"{invalidfields.excerpt(text)} is not a valid node label name, so no pods can be created"
    )


def _accept_any(_lws: LeaderWorkerSet, _text: str) -> str:
    return ""


def _accept_none(_lws: LeaderWorkerSet, _text: str) -> str:
    return NO_EFFECT


CHECKS: Final[Mapping[str, Check]] = {
    labels.GROUP_RESTART_COUNTS: _check_counts,
    labels.PAUSED_PARTITION: _check_partition,
    labels.EXCLUSIVE_TOPOLOGY: _check_node_label,
    labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: _check_node_label,
    labels.RECREATE_GROUP_AFTER_START: _accept_any,
}
"""The LeaderWorkerSet annotations that are not read by capabilities or gang schedulers."""

KNOWN: Final = frozenset(setting.annotation for setting in SETTINGS)
