"""Formats the report of a storm as text and as machine-readable data. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.storms.storm import Step
from lwsctl.cli.storms.stormeffects import Happened, StormEffects

WORDS: Final[dict[Happened, str]] = {
    "failed": "it was not ready",
    "ending": "it was deleted",
    "gone": "its pod was deleted",
    "made": "recreated",
    "ready": "ready",
}


class ProbeCounts(Struct):
    """The result of a probe.

    Contains the number of requests and of failed requests, and the longest time without a response in seconds.

    `outages` are the periods (start, end) without a response, in seconds after the start of the storm.
    """

    url: str
    requests: int = 0
    failures: int = 0
    longest: float = 0.0
    first_error: str = ""
    outages: list[tuple[float, float]] = field(default_factory=list)


class StormStep(Struct, frozen=True):
    """An attempted step and its time in seconds since the start of the storm.

    `error` is the reason why the step had no effect.
    """

    time: float
    step: Step
    error: str = ""


class StormReport(Struct):
    """A storm and its results.

    `recovered` is the time in seconds from the last fault until all ranks were ready. If it is None, `unready` lists
    the problems, and is empty if the storm was interrupted. Ranks that were not ready `before` the storm, or whose group
    failed shortly before, are not part of the result.
    """

    steps: list[StormStep] = field(default_factory=list)
    effects: StormEffects = field(default_factory=StormEffects)
    probe: ProbeCounts | None = None
    recovered: float | None = None
    unready: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    @property
    def is_successful(self) -> bool:
        """Return whether all faults took effect and all ranks were ready at the end."""
        return self.recovered is not None and not any(deed.error for deed in self.steps)


def lines(report: StormReport) -> Iterator[str]:
    """Yield the lines of the report. The actions were printed during the storm."""
    witness, probe = report.effects.without_ranks(report.before), report.probe
    first = witness.first_failure()
    yield (
        f"First failed: {first.rank} after {first.at:.1f} s ({first.reason or WORDS[first.change]})."
        if first
        else "No rank failed."
    )
    if recreations := witness.count_recreations():
        yield f"Recreated: {_outages_text(recreations)}."
    if failed := witness.count_failures():
        yield f"Rank failures: {_outages_text(failed)}."
    if report.before:
        yield f"Ignored because they were not ready before the storm: {', '.join(report.before)}."
    if report.recovered is None:
        yield (
            f"Not ready at the end: {', '.join(report.unready)}."
            if report.unready
            else "The storm was interrupted, so it is unknown whether all ranks became ready again."
        )
    else:
        yield f"All ranks were ready {report.recovered:.1f} s after the last fault."
    if probe is not None:
        yield f"Probe {probe.url}: {probe.requests} requests, {probe.failures} failed" + (
            f"; longest time without a response {probe.longest:.1f} s; first error: {probe.first_error}."
            if probe.failures
            else "."
        )


def document(report: StormReport) -> JSONObject:
    """Return the report as machine-readable data."""
    witness, probe = report.effects.without_ranks(report.before), report.probe
    first = witness.first_failure()
    return {
        "apiVersion": "lws/v1",
        "kind": "StormReport",
        "faults": [
            {"at": round(deed.time, 3), "fault": str(deed.step), "refused": deed.error or None} for deed in report.steps
        ],
        "firstFailed": {"rank": first.rank, "at": round(first.at, 3), "why": first.reason or WORDS[first.change]}
        if first
        else None,
        "recreated": witness.count_recreations(),
        "failures": witness.count_failures(),
        "notReady": report.unready,
        "notReadyBefore": report.before,
        "recoveredAfter": None if report.recovered is None else round(report.recovered, 3),
        "probe": None
        if probe is None
        else {
            "url": probe.url,
            "requests": probe.requests,
            "failed": probe.failures,
            "longestOutage": round(probe.longest, 3),
            "firstError": probe.first_error or None,
        },
    }


def _outages_text(counts: Mapping[str, int]) -> str:
    return ", ".join(name if count == 1 else f"{name} {count} times" for name, count in counts.items())
