"""Defines the result of a check, with the problem and the fix. Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject


class Level(StrEnum):
    """The severity of a result. `unknown` means that the state cannot be determined."""

    OK = "ok"
    NOTE = "note"
    UNKNOWN = "unknown"
    WARNING = "warning"
    ERROR = "error"


ORDER: Final = (Level.ERROR, Level.WARNING, Level.UNKNOWN, Level.NOTE, Level.OK)


class CheckResult(Struct, frozen=True):
    """The result of a check. The `code` is stable, and each problem has a fix."""

    code: str
    level: Level
    subject: str
    text: str
    fix: str = ""


class UnreadableObject(Struct, frozen=True):
    """The reason why an object could not be read, which replaces the object."""

    reason: str


Read: TypeAlias = JSONObject | UnreadableObject | None
"""An object, or None if it does not exist."""


def is_healthy(findings: Iterable[CheckResult]) -> bool:
    """Return whether the results contain no errors."""
    return all(finding.level != Level.ERROR for finding in findings)


def sort_by_severity(findings: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the results sorted by severity. Results with the same severity remain in order."""
    return sorted(findings, key=lambda result: ORDER.index(result.level))


def report_lines(findings: Sequence[CheckResult]) -> list[str]:
    """Return the report with a summary and numbered results, problems first."""
    results = sort_by_severity(findings)
    width = max((len(result.subject) for result in results), default=0)
    report = []
    for number, result in enumerate(results, 1):
        report.append(
            f"{number:>3}  {result.level.upper():<7}  {result.subject:<{width}}  {result.text}  [{result.code}]"
        )
        if result.fix:
            report.append(f"{'':>14}{'':<{width}}  fix: {result.fix}")
    counts = {level: sum(result.level == level for result in results) for level in ORDER}
    totals = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    return [*report, "", f"{len(results)} findings: {totals}"]


def document(findings: Sequence[CheckResult]) -> JSONObject:
    """Return the report as machine-readable data with stable field names."""
    return {
        "apiVersion": "lws/v1",
        "kind": "DoctorReport",
        "healthy": is_healthy(findings),
        "findings": [
            {
                "number": number,
                "code": result.code,
                "level": result.level,
                "check": result.subject,
                "text": result.text,
                "fix": result.fix,
            }
            for number, result in enumerate(sort_by_severity(findings), 1)
        ],
    }
