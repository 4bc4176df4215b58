"""Containers that a kubelet killed because a probe or a hook failed: only its events show it. Pure.

The exit code of such a container is the program's answer to SIGTERM, often 0, and says nothing about the failure.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

KILLING: Final = "Killing"
PROBE: Final = re.compile(r"Container (?P<container>\S{1,253}) failed (?P<kind>liveness|startup) probe")
"""The message of an event with the reason Killing."""

HOOK_FAILED: Final = "FailedPostStartHook"
HOOK: Final = re.compile(r"for Container \"(?P<container>[^\"]+)\"")
"""Part of the message of an event with that reason; newer kubelets omit it."""

READ: Final = 2000
"""The characters of a message that are read."""


class Kill(Struct, frozen=True):
    """A killed container (empty: not named) of a pod, what failed, such as `liveness probe`, and the event."""

    container: str
    what: str
    uid: str
    message: str
    last: datetime

    def __str__(self) -> str:
        """Return the reason as part of a sentence."""
        return f"the {self.what} failed, so the kubelet killed the container"

    @property
    def is_by_probe(self) -> bool:
        """Return whether a probe failed, not a hook."""
        return self.what.endswith("probe")


def of_event(uid: str, reason: str, message: str, last: datetime) -> Kill | None:
    """Return the kill that an event about the pod with this UID reports; None if it reports none."""
    if reason == KILLING and (match := PROBE.match(message)):
        return Kill(match["container"], f"{match['kind']} probe", uid, message, last)
    if reason == HOOK_FAILED:
        match = HOOK.search(message[:READ])
        return Kill(match["container"] if match else "", "postStart hook", uid, message, last)
    return None


def of_run(kills: Iterable[Kill], uid: str, container: str) -> Kill | None:
    """Return the last kill of a container of the pod with this UID; None if there is none."""
    own = (kill for kill in kills if uid and kill.uid == uid and kill.container in ("", container))
    return max(own, key=lambda kill: kill.last, default=None)
