"""Warnings about annotations of a LeaderWorkerSet that admission accepts although they have no effect, or a bad one.

Capabilities read their own settings. Here is one row for each further annotation that is read of a LeaderWorkerSet. Any
other annotation with our prefix has no effect: it belongs to another object, or its name is misspelled.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import decimals, names
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.usersettings import SETTINGS
from leaderworkerset.core.leaderworkerset import reading

Check: TypeAlias = Callable[[LeaderWorkerSet, str], str]
"""Returns why the text of an annotation cannot be read, and what follows; empty if it can."""

NO_EFFECT: Final = "has no effect on a LeaderWorkerSet"


def warnings(lws: LeaderWorkerSet) -> Iterator[str]:
    """Yield a warning for each annotation with our prefix that cannot be read, or that nothing reads."""
    for name, text in lws.annotations.items():
        if not name.startswith(labels.PREFIX):
            if meant := _meant(name):
                yield f"metadata.annotations.{name}: {NO_EFFECT}: did you mean {meant}?"
            continue
        check = CHECKS.get(name, _anything if name in KNOWN else _nothing)
        if why := check(lws, text):
            yield f"metadata.annotations.{name}: {why}"


def _meant(name: str) -> str:
    """Return the annotation that a name with another prefix, or without one, stands for; empty if it stands for none."""
    prefix, _, own = name.rpartition("/")
    meant = labels.PREFIX + own
    is_ours = prefix in ("", "lws") or "leaderworkerset" in prefix
    return meant if is_ours and (meant in KNOWN or meant in CHECKS) else ""


def _counts(lws: LeaderWorkerSet, _text: str) -> str:
    why = reading.unreadable_counts(lws)
    return f"{why}: the LeaderWorkerSet is not reconciled until the annotation is corrected or removed" if why else ""


def _partition(_lws: LeaderWorkerSet, text: str) -> str:
    is_number = decimals.natural(text) is not None
    return "" if is_number else f"{reading.excerpt(text)} is not a number: the rollout resumes at partition 0"


def _node_label(_lws: LeaderWorkerSet, text: str) -> str:
    is_label = not names.label_key(text)
    return "" if is_label else f"{reading.excerpt(text)} is not the name of a node label: no pod can be created"


def _anything(_lws: LeaderWorkerSet, _text: str) -> str:
    return ""


def _nothing(_lws: LeaderWorkerSet, _text: str) -> str:
    return NO_EFFECT


CHECKS: Final[Mapping[str, Check]] = {
    labels.GROUP_RESTART_COUNTS: _counts,
    labels.PAUSED_PARTITION: _partition,
    labels.EXCLUSIVE_TOPOLOGY: _node_label,
    labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: _node_label,
    labels.RECREATE_GROUP_AFTER_START: _anything,
}
"""The annotations of a LeaderWorkerSet that no capability and no gang scheduler reads."""

KNOWN: Final = frozenset(setting.annotation for setting in SETTINGS)
