"""Determines the stages of unready ranks, and describes ranks in sentences. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import ContainerFailure
from kuberuntime.texts.masking import mask_message
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Subject
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import wording
from lwsctl.views.wording import format_count

Stage: TypeAlias = Callable[[Rank], bool]

NEVER_BEGAN: Final = frozenset({"StartError", "ContainerCannotRun", "CreateContainerError"})
"""The reasons of runs that failed before the container process started."""

QUOTED: Final = 600
"""The number of characters at the start of a message that are read and quoted."""


def is_missing(rank: Rank) -> bool:
    """Return whether the rank has no pod."""
    return rank.object is None


def is_terminating(rank: Rank) -> bool:
    """Return whether the pod is being deleted."""
    return rank.object is not None and meta.is_deleting(rank.object)


def is_unscheduled(rank: Rank) -> bool:
    """Return whether the pod is not assigned to a node."""
    return rank.object is not None and not rank.node and not is_terminating(rank)


def is_placed(rank: Rank) -> bool:
    """Return whether the pod is assigned to a node, and is not being deleted."""
    return rank.object is not None and bool(rank.node) and not is_terminating(rank)


def is_scheduled_or_recorded(rank: Rank) -> bool:
    """Return whether the pod is assigned to a node, or the record describes the failure of the previous pod."""
    return is_placed(rank) or recorded_run(rank) is not None


def recorded_run(rank: Rank) -> ContainerFailure | None:
    """Return the failed run of the previous pod in the recreation record, or None if there is none."""
    return next((run for run in rank.deaths if run.is_recorded), None)


def members(observed: Observed) -> Iterator[tuple[Group, Rank]]:
    """Yield the selected ranks. Ready ranks are included, because they may have failed before."""
    for group in observed.view.groups:
        yield from ((group, rank) for rank in group.ranks if observed.rank in (None, rank.index))


def unready_ranks(observed: Observed) -> Iterator[tuple[Group, Rank]]:
    """Yield the selected ranks that are not ready or failed recently."""
    return ((group, rank) for group, rank in members(observed) if not rank.is_ready or rank.deaths)


def pod_subject(rank: Rank) -> Subject:
    """Return the pod of a rank as the subject of a sentence. A rejected leader has no group yet."""
    if not rank.place.startswith("/"):
        return Subject(kind="Pod", name=rank.pod, group=rank.group, rank=rank.index)
    return Subject(kind="Pod", name=rank.pod)


def find_pod(view: View, name: str) -> JSONObject | None:
    """Return the pod with this name, or None if no rank has it."""
    return next((rank.object for rank in view.ranks if rank.pod == name), None)


def find_rank(observed: Observed, subject: Subject) -> Rank:
    """Return the rank whose pod is the subject of the finding."""
    return next(rank for _, rank in observed.unready_ranks if rank.pod == subject.name)


def others_suffix(count: int) -> str:
    """Return the suffix after the name of the first rank, with the number of other ranks."""
    return f" (and {format_count(count - 1, 'more rank')})" if count > 1 else ""


def rank_states(members: Iterable[Rank], most: int = 3) -> tuple[str, ...]:
    """Return a line for each of the first ranks with its state and reason."""
    return tuple(
        f"{rank.pod}: {wording.state(rank)}{f': {quote_message(rank.why)}' if rank.why else ''}"
        for rank in islice(members, most)
    )


def quote_message(text: str) -> str:
    """Return a message on one line, with masked secrets, and truncated to fit in a terminal."""
    line = " ".join(mask_message(text).split())
    return line if len(line) <= QUOTED else f"{line[:QUOTED]}…"


def container_statuses(rank: Rank) -> Sequence[JSONObject]:
    """Return the container statuses of a rank, init containers first, or an empty list if it has no pod."""
    return podstate.container_statuses(rank.object or {})


def waiting_containers(rank: Rank) -> Iterator[tuple[str, str, str]]:
    """Yield the container, reason and message for each waiting container."""
    for status in container_statuses(rank):
        state: dict[str, Any] = (status.get("state") or {}).get("waiting") or {}
        if state.get("reason"):
            yield str(status.get("name")), str(state["reason"]), mask_message(str(state.get("message") or ""))


def rejected_starts(rank: Rank) -> Iterator[tuple[str, str, str]]:
    """Yield the container, reason and message of runs that failed before the process started.

    Recorded runs are included.
    """
    for run in rank.deaths:
        if run.end.get("reason") in NEVER_BEGAN:
            yield run.container, str(run.end["reason"]), mask_message(str(run.end.get("message") or ""))


def warning_messages(observed: Observed, rank: Rank, *reasons: str, of_any: bool = False) -> list[str]:
    """Return Warning event messages about a rank's pod, the latest first. With `of_any`, include previous pods."""
    warnings = observed.warnings.about(observed.view.namespace, "Pod", rank.pod)
    own = [warning for warning in warnings if warning.reason in reasons and (of_any or warning.uid == rank.uid)]
    return [warning.message for warning in sorted(own, key=lambda warning: warning.last, reverse=True)]
