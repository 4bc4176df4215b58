"""Diagnoses a rollout that makes no progress while a command waits for it, with the causes of `lws explain`.

A cause is printed once, and again after it disappeared. While nothing new is found, the interval between two diagnoses
grows, so that a rollout of hours is not diagnosed all the time.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from leaderworkerset.cli.cluster.target import Session
from leaderworkerset.diagnosis.document import headline
from leaderworkerset.diagnosis.finding import Diagnosis, Verdict

if TYPE_CHECKING:
    from kuberuntime.cache.informer import Change  # it imports what commands without watches do not need

FIRST: Final = 5.0
"""Seconds before the first diagnosis, and between two if the first found a new cause."""

LONGEST: Final = 60.0
"""The maximum seconds between two diagnoses."""


class Causes:
    """Runs beside informers: prints on standard error the cause that a set is stuck for."""

    def __init__(self, session: Session, name: str, note: Callable[[str], None], first: float = FIRST) -> None:
        self._session = session
        self._name = name
        self._note = note
        self._first = first
        self._said: tuple[str, str] | None = None
        self._last = ""

    @property
    def is_stuck(self) -> bool:
        """Return whether the last diagnosis says stuck, so that no estimate of time is useful."""
        return self._said is not None

    def subscribe(self, callback: Callable[["Change"], None]) -> None:
        """Ignore the callback: a diagnosis changes nothing that is awaited."""

    async def wait_synced(self) -> None:
        """Return at once: a diagnosis is never waited for."""

    async def conclude(self) -> str:
        """Return the cause in lines that end an error, and the command that explains it; empty if none is found.

        A program that crashes repeatedly is not stuck while its group restarts: then the last cause explains more than
        that moment.
        """
        from leaderworkerset.cli.commands import explain

        told = await explain.in_time(self._session, self._name)
        found = "" if told is None or told.verdict is Verdict.HEALTHY else headline(told)
        chosen = found if told is not None and told.verdict is Verdict.STUCK else self._last or found
        return chosen and f"\n{chosen}\n{explain.more(self._session, self._name)}"

    async def run(self) -> None:
        """Diagnose repeatedly while the command waits."""
        from leaderworkerset.cli.commands import explain

        pause = self._first
        while True:
            await asyncio.sleep(pause)
            is_new = self.say(await explain.in_time(self._session, self._name))
            pause = self._first if is_new else min(2 * pause, LONGEST)

    def say(self, told: Diagnosis | None) -> bool:
        """Print a cause unless it was printed last; return whether it changed, or disappeared."""
        is_stuck = told is not None and told.verdict is Verdict.STUCK
        found = (told.code, str(told.subject)) if told is not None and is_stuck else None
        is_new = found != self._said
        if told is not None and is_stuck:
            self._last = headline(told)
            if is_new:
                self._note(self._last)
        self._said = found
        return is_new
