"""Reads the maximum number of groups that can be unavailable due to evictions.

Input: the setting of the manager, and the annotation of one LeaderWorkerSet, which overrides it. Output: a number of
groups, or None if the LeaderWorkerSet has no budget. An invalid annotation that was stored without the webhook counts
as absent.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import decimals, intstr
from kuberuntime.objects.field import FieldError, invalid
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import MAX_REPLICAS, LeaderWorkerSet, LeaderWorkerSetSpec
from leaderworkerset.core.leaderworkerset import budget

OFF: Final = "off"
ROLLOUT: Final = "rollout"
STARTING: Final = "starting"
"""The required value of the `DO_NOT_DISRUPT` annotation."""

ALLOWED: Final = f"{OFF}, {ROLLOUT}, a number of groups, or a percentage of groups up to 100%"


class DisruptionSettings(Struct, frozen=True, kw_only=True):
    """The default budget, and the duration for which a group is open while other groups wait for evictions.

    If `watches_nodes` is set, groups on closed nodes are first. Otherwise, all groups take turns.
    """

    budget: str = OFF
    watches_nodes: bool = True
    open_duration: timedelta = timedelta(seconds=60)


def limit(settings: DisruptionSettings, annotations: Mapping[str, str], spec: LeaderWorkerSetSpec) -> int | None:
    """Return the maximum number of unavailable groups, or None if the LeaderWorkerSet has no budget.

    The limit of the rollout counts as at least 1. It may be 0 if there is surge, but an evicted group is not replaced
    before it is deleted. Raise ValueError for a rollout strategy that cannot be read.
    """
    text = annotations.get(labels.DISRUPTION_BUDGET, settings.budget)
    match text if is_valid(text) else settings.budget:
        case "off":
            return None
        case "rollout":
            return max(budget.read(spec).unavailable, 1)
        case number:
            groups = decimals.natural(number)
            return intstr.scale(number, spec.replicas, up=True) if groups is None else groups


def is_valid(text: str) -> bool:
    """Return whether a string is a valid budget."""
    if text in {OFF, ROLLOUT}:
        return True
    number = decimals.natural(text)
    return (intstr.is_percent(text) and not intstr.exceeds_whole(text)) if number is None else number <= MAX_REPLICAS


def warnings(annotations: Mapping[str, str]) -> Iterator[str]:
    """Return a warning about a budget of 0 groups, which is usually unintended."""
    text = annotations.get(labels.DISRUPTION_BUDGET, "")
    if is_valid(text) and decimals.natural(text.removesuffix("%")) == 0:
        name = f"metadata.annotations.{labels.DISRUPTION_BUDGET}"
        yield f"{name}: {text} does not permit evictions, so node drains are blocked until the value is changed"


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of the annotations."""
    new = lws.metadata.annotations
    text = new.get(labels.DISRUPTION_BUDGET)
    if text is not None and not is_valid(text):
        yield invalid(f"metadata.annotations.{labels.DISRUPTION_BUDGET}", text, f"must be {ALLOWED}")
    when = new.get(labels.DO_NOT_DISRUPT, STARTING)
    if when != STARTING:
        yield invalid(f"metadata.annotations.{labels.DO_NOT_DISRUPT}", when, f"must be {STARTING}")
