"""Waits for a condition of a LeaderWorkerSet or a DisaggregatedSet; what is missing is known at every moment."""

from collections.abc import Callable

from kuberuntime import timeouts
from leaderworkerset.observation.following import Followed, OneSet, following
from leaderworkerset.views.disaggregation import Shown
from leaderworkerset.views.missing import Check


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
    """Wait until nothing is missing, and return the view then; `report` is called with what is missing at every change."""
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
        async with timeouts.within(timeout), following(*informers.all, *beside) as objects:
            await objects.until(is_done)
    except TimeoutError as error:
        raise WaitTimeoutError(name, timeout or 0, missing, informers.view()) from error
    return seen
