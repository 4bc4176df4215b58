"""Finds containers that a kubelet killed after a failed probe or hook, which only events report.

The functions are pure.

Such a container exits after SIGTERM, often with code 0, so that its exit code does not describe the failure.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from leaderworkerset.api.recreationrecord import RECORDED

KILLING: Final = "Killing"
PROBE: Final = re.compile(r"Container (?P<container>\S{1,253}) failed (?P<kind>liveness|startup) probe")
"""The message pattern of events with the reason Killing."""

HOOK_FAILED: Final = "FailedPostStartHook"
HOOK: Final = re.compile(r"for Container \"(?P<container>[^\"]+)\"")
"""A part of the message in these events. Later kubelets omit it."""

READ: Final = 2000
"""The maximum number of message characters that are read."""


class Kill(Struct, frozen=True):
    """A killed container (empty if unknown), a failed probe or hook (such as `liveness probe`), and the event."""

    container: str
    cause: str
    uid: str
    message: str
    last: datetime

    def __str__(self) -> str:
        """Return the reason as a phrase for use in a sentence."""
        return f"the {self.cause} failed, so the kubelet killed the container"

    @property
    def is_probe_failure(self) -> bool:
        """Return whether a probe failed instead of a hook."""
        return self.cause.endswith("probe")


def kill_from_event(uid: str, reason: str, message: str, last: datetime) -> Kill | None:
    """Return the kill that an event reports for the pod with this UID, or None if it does not report a kill."""
    if reason == KILLING and (match := PROBE.match(message)):
        return Kill(match["container"], f"{match['kind']} probe", uid, message, last)
    if reason == HOOK_FAILED:
        match = HOOK.search(message[:READ])
        return Kill(match["container"] if match else "", "postStart hook", uid, message, last)
    return None


def latest_kill(kills: Iterable[Kill], uid: str, container: str) -> Kill | None:
    """Return the most recent container kill in the pod with this UID, or None if no container was killed."""
    own = (kill for kill in kills if uid and kill.uid == uid and kill.container in ("", container))
    return max(own, key=lambda kill: kill.last, default=None)


def kill_of_failure(kills: Iterable[Kill], uid: str, failure: str) -> Kill | None:
    """Return the most recent kill of the container in a recorded failure, or None if it was not killed."""
    ended = RECORDED.fullmatch(failure)
    return latest_kill(kills, uid, ended["container"]) if ended else None
