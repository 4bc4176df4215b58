"""Records the path of a reader who follows a call from top to bottom, each function at its first call.

A stay is a visit of one file. A return is a stay in a file that was left before. All sources of the manager count, also
`kuberuntime` and the API. The path ends at the embedded API server.
"""

import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, Final, NamedTuple

COUNTED: Final = ("/src/leaderworkerset/", "/src/kuberuntime/")
END: Final = ("/src/localkube/", "/src/testkit/", "/tests/")
"""The embedded API server, and the objects that surround a test."""


class Walk(NamedTuple):
    """The number of stays, different files, and returns."""

    stays: int
    files: int
    returns: int

    def exceeds(self, most: "Walk") -> bool:
        """Return whether any number exceeds its limit."""
        return any(number > limit for number, limit in zip(self, most, strict=True))


def walk(call: Callable[[], object]) -> Walk:
    """Return the path of a reader through a call."""
    stays = stays_of(call)
    return Walk(len(stays), len(set(stays)), len(stays) - len(set(stays)))


def stays_of(call: Callable[[], object]) -> list[str]:
    """Return the visited files in order."""
    frames: list[tuple[str, bool]] = []
    known: set[object] = set()
    stays: list[str] = []

    def follow(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            path, code = frame.f_code.co_filename, frame.f_code
            is_counted = any(part in path for part in COUNTED)
            is_followed = (not frames or frames[-1][1]) and not (stays and any(part in path for part in END))
            frames.append((path if is_counted else "", is_followed and not (is_counted and code in known)))
            known.add(code)
        elif event == "return" and frames:
            frames.pop()
        path, is_followed = frames[-1] if frames else ("", False)
        if path and is_followed and stays[-1:] != [path]:
            stays.append(path)

    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(None)
    return stays


def complete(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine that never suspends, because the API server runs in the same process."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise AssertionError("the coroutine waits")
