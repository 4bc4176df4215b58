"""Waits for a condition of a LeaderWorkerSet or a DisaggregatedSet; what is missing is known at every moment."""

from collections.abc import Callable
from typing import Final

from kuberuntime import timeouts
from leaderworkerset.observation.following import Followed, OneSet, following
from leaderworkerset.views.disaggregation import Shown
from leaderworkerset.views.missing import Check

FIRST_ANSWER: Final = 10.0
"""Seconds for the first state to be known, where no more than that is checked."""


class WaitTimeoutError(TimeoutError):
    """The awaited condition was not reached in time; the text says what was missing.

    `missing` is only that, `view` the last one (None: there was none).
    """

    def __init__(self, name: str, seconds: float, missing: str, view: Shown | None) -> None:
        self.missing = missing
        self.view = view
        super().__init__(f"{name} after {seconds:g} s: {missing}")


async def wait_for(
    informers: OneSet,
    check: Check,
    timeout: float | None,
    *,
    report: Callable[[str], None] = lambda _: None,
    beside: tuple[Followed, ...] = (),
) -> Shown | None:
    """Wait until nothing is missing, and return the view then; `report` is called with what is missing at every change.

    A timeout of 0 checks the first state that is known, as with kubectl.
    """
    missing = "the first answer of the API server"
    seen: Shown | None = None
    name = informers.key.name

    def is_done() -> bool | None:
        nonlocal missing, seen
        seen = informers.view()
        missing = check(seen) or ""
        if missing:
            report(f"{name}: {missing}")
        return None if missing else True

    try:
        async with (
            timeouts.within(FIRST_ANSWER if timeout == 0 else timeout),
            following(*informers.all, *beside) as objects,
        ):
            if is_done() is None and timeout != 0:
                await objects.until(is_done)
    except TimeoutError as error:
        raise WaitTimeoutError(name, timeout or 0, missing, informers.view()) from error
    if missing:
        raise WaitTimeoutError(name, 0, missing, seen)
    return seen
