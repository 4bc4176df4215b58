"""Formats output for users, such as counts with a noun, durations, and rank states. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from kuberuntime.objects import ordinals
from kuberuntime.objects.duration import human
from kuberuntime.texts.wording import format_count as format_count  # noqa: PLC0414 - texts of this package import it from here
from kuberuntime.texts.wording import join_names as join_names  # noqa: PLC0414
from leaderworkerset.api.groupname import GroupName
from lwsctl.model.groups import MISSING, NOT_CREATED, Rank

PLAIN_STATES: Final = {MISSING: NOT_CREATED, "Completed": "completed"}
"""States that `kubectl get pods` does not print, or that are normal although they look like errors."""

duration = human


def updated_groups(updated: int, desired: int, with_surge: int) -> str:
    """Return the number of updated groups.

    With `with_surge`, surge groups are included, as in `status.updatedReplicas`.

    >>> updated_groups(2, 3, 2), updated_groups(2, 3, 3)
    ('2 of 3 groups updated', '2 of 3 groups and 1 surge group updated')
    """
    surge = f" and {format_count(with_surge - updated, 'surge group')}" if with_surge > updated else ""
    return f"{updated} of {format_count(desired, 'group')}{surge} updated"


def places(names: Sequence[GroupName]) -> str:
    """Format group names. Indexes are formatted as ranges, and keys are separated by commas.

    >>> places([0, 1, 2, 5]), places(["95e88034", "0b1c2d3e"])
    ('0-2,5', '95e88034,0b1c2d3e')
    """
    numbers = [name for name in names if isinstance(name, int)]
    return ",".join(filter(None, [ordinals.ranges(numbers), *(name for name in names if isinstance(name, str))]))


def format_groups(names: Sequence[GroupName]) -> str:
    """Format groups for use in a sentence.

    >>> format_groups([1]), format_groups([0, 1])
    ('group 1', 'groups 0-1')
    """
    return f"group{'s' if len(names) > 1 else ''} {places(names)}"


def state(rank: Rank) -> str:
    """Return the state of a rank for users. If its container is simulated, the state has a mark."""
    word = PLAIN_STATES.get(rank.state, rank.state)
    return f"{word} (stub)" if rank.is_stub else word


def reason(rank: Rank) -> str:
    """Return the reason why a rank is not ready, or an empty string if its state already shows the reason."""
    return "" if rank.why == NOT_CREATED else rank.why


def age(created: str, now: datetime) -> str:
    """Return the time since an RFC 3339 timestamp, rounded as in kubectl.

    >>> from datetime import UTC
    >>> age("2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 3, 20, tzinfo=UTC))
    '3m20s'
    """
    if not created:
        return ""
    return duration(now - datetime.fromisoformat(created))
