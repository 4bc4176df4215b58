"""Diagnoses a set while `run`, `wait` or `rollout status` waits. The causes are the same as in `lws explain`.

A cause is printed once, and again if it reappears. The interval between two diagnoses increases while no new cause is
found, so that long rollouts are not diagnosed continuously.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from kuberuntime.clock import SystemClock
from lwsctl.cli import sharedoptions
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError
from lwsctl.cli.sets import diagnoses
from lwsctl.diagnosis.document import headline
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import AS_DESIRED, NEEDS_USER

if TYPE_CHECKING:
    from kuberuntime.cache.informer import Change  # its imports are only needed for watches

FIRST: Final = 5.0
"""The delay in seconds before the first diagnosis, and before the next one after a new cause is found."""

LONGEST: Final = 60.0
"""The maximum delay in seconds between diagnoses."""


class StuckError(CommandError):
    """Raised if a set makes no progress. The message contains the reason."""


def stuck_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that stop a wait because of its cause. `stuck_after` reads these options."""
    fail_fast = click.option(
        "--fail-fast", is_flag=True, help="Exit as soon as an object is stuck. Equivalent to --stuck-after 0."
    )
    stuck_after = click.option(
        "--stuck-after",
        type=sharedoptions.limit,
        metavar="DURATION",
        help="If an object is stuck for this duration, print the cause and exit with code 1. Disabled by default.",
    )
    return stuck_after(fail_fast(command))


class CauseMonitor:
    """Runs concurrently with informers, and prints on stderr why a set is stuck and the next step.

    With `stuck_after`, it raises StuckError if the set has been stuck for this number of seconds because of one
    cause.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        note: Callable[[str], None],
        first: float = FIRST,
        stuck_after: float | None = None,
    ) -> None:
        self._session = session
        self._name = name
        self._note = note
        self._first = first
        self._stuck_after = stuck_after
        self._said: tuple[str, str] | None = None
        self._last = self._reference = self._notice = ""

    @property
    def is_stuck(self) -> bool:
        """Return whether the last diagnosis is stuck, because a time estimate is then not useful."""
        return self._said is not None

    def subscribe(self, callback: Callable[["Change"], None]) -> None:
        """Ignore the callback, because a diagnosis does not change the awaited condition."""

    async def wait_synced(self) -> None:
        """Return immediately, because commands never wait for a diagnosis."""

    async def final_cause(self) -> str:
        """Return the cause and the command that explains it, or an empty string if there is no cause."""
        cause = await self.last_cause()
        return cause and f"\n{cause}\n{diagnoses.details_hint(self._session, self._name)}"

    async def last_cause(self) -> str:
        """Return the current or the previous cause, or an empty string if there is none.

        A cause that was printed is not repeated, and the result contains only its code. A container that crashes
        repeatedly is not stuck while its group restarts, so that the last cause is more informative.
        """
        diagnosis = await diagnoses.diagnose_in_time(self._session, self._name)
        cause = "" if diagnosis is None or diagnosis.verdict in AS_DESIRED else headline(diagnosis)
        is_current = diagnosis is not None and diagnosis.verdict in NEEDS_USER
        cause = cause if is_current else self._last or cause
        return self._reference if cause == self._last else cause

    async def run(self) -> None:
        """Diagnose the set repeatedly while the command waits. Raise an error if the set is stuck for too long."""
        clock, since, pause = SystemClock(), 0.0, self._first
        while True:
            await asyncio.sleep(pause)
            is_new = self.print_cause(await diagnoses.diagnose_in_time(self._session, self._name))
            pause = self._first if is_new else min(2 * pause, LONGEST)
            if self.is_stuck and self._stuck_after is not None:
                since = clock.monotonic() if is_new else since
                remaining = since + self._stuck_after - clock.monotonic()
                if remaining <= 0:
                    raise StuckError(self._last if self._stuck_after else self._notice)
                pause = min(pause, remaining)

    def print_cause(self, diagnosis: Diagnosis | None) -> bool:
        """Print a cause and its first step, unless it is the last cause that was printed.

        Return whether the cause changed or disappeared.
        """
        is_stuck = diagnosis is not None and diagnosis.verdict in NEEDS_USER
        identity = (diagnosis.code, str(diagnosis.subject)) if diagnosis is not None and is_stuck else None
        is_new = identity != self._said
        if diagnosis is not None and is_stuck:
            self._last = headline(diagnosis)
            self._reference = headline(replace(diagnosis, sentence="see above")) if diagnosis.code else self._last
            lines = [self._last, *(f"next: {step}" for step in diagnosis.steps[:1])]
            self._notice = "\n".join(lines)
            for line in lines if is_new and self._stuck_after != 0 else ():  # an immediate error contains the notice
                self._note(line)
        self._said = identity
        return is_new
