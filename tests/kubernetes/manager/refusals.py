"""Finds rejected creations of existing objects. Each of them must repeat an unconfirmed creation.

A manager abandons a write that is not answered before its lease requires an answer, so that it never writes as one of
two leaders; the API server may perform it all the same. The next attempt then finds the object and continues. The same
happens if the API server itself timed out, and if a manager was killed between its request and the answer. A refused
creation without a previous unconfirmed one comes from a late cache, or from two active managers.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from tests.controlplane.audit import described

from kuberuntime.objects.timestamps import parse

CONFLICT: Final = 409

ABANDONED: Final = re.compile(r'"create StatefulSet [^/]+/([^:/]+): POST [^"]*(?:did not respond|was cancelled)')
"""The log line for a request that the manager canceled."""

FAILED: Final = 500
"""The lowest status code after which the object may have been created."""


def unexplained(events: Sequence[Mapping[str, Any]], logs: Iterable[str], kills: Sequence[datetime]) -> list[str]:
    """Return the rejected creations of StatefulSets that do not repeat a canceled or interrupted creation."""
    abandoned = Counter(match[1] for line in logs for match in ABANDONED.finditer(line))
    last: dict[str, tuple[datetime, int]] = {}
    found: list[str] = []
    for event in sorted(events, key=lambda one: str(one["requestReceivedTimestamp"])):
        if described(event) != "create statefulsets":
            continue
        name, at = event["objectRef"]["name"], parse(event["requestReceivedTimestamp"])
        code = event["responseStatus"].get("code")
        before = last.get(name)
        last[name] = at, code
        if code != CONFLICT or (before and (before[1] >= FAILED or any(before[0] <= kill <= at for kill in kills))):
            continue
        if abandoned[name]:
            abandoned[name] -= 1
        else:
            found.append(f"{name} at {at:%T}, after {before}")
    return found
