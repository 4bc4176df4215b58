"""The result of a check: what was checked, what was found, and what to do. Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject


class Level(StrEnum):
    """The severity of a result; `unknown` means that it could not be observed."""

    OK = "ok"
    NOTE = "note"
    UNKNOWN = "unknown"
    WARNING = "warning"
    ERROR = "error"


ORDER: Final = (Level.ERROR, Level.WARNING, Level.UNKNOWN, Level.NOTE, Level.OK)


class CheckResult(Struct, frozen=True):
    """One result of one check; `code` is stable, and each problem has a fix."""

    code: str
    level: Level
    check: str
    text: str
    fix: str = ""


class Unread(Struct, frozen=True):
    """The reason why an object could not be read, in its place."""

    why: str


def is_healthy(findings: Iterable[CheckResult]) -> bool:
    """Return whether no result is an error."""
    return all(finding.level != Level.ERROR for finding in findings)


def ordered(findings: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the results by severity, otherwise in their order."""
    return sorted(findings, key=lambda one: ORDER.index(one.level))


def lines(findings: Sequence[CheckResult]) -> list[str]:
    """Return the report: numbered results, problems first, and a summary."""
    shown = ordered(findings)
    width = max((len(one.check) for one in shown), default=0)
    report = []
    for number, one in enumerate(shown, 1):
        report.append(f"{number:>3}  {one.level.upper():<7}  {one.check:<{width}}  {one.text}  [{one.code}]")
        if one.fix:
            report.append(f"{'':>14}{'':<{width}}  fix: {one.fix}")
    counts = {level: sum(one.level == level for one in shown) for level in ORDER}
    told = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    return [*report, "", f"{len(shown)} findings: {told}"]


def document(findings: Sequence[CheckResult]) -> JSONObject:
    """Return the report with stable field names."""
    return {
        "apiVersion": "lws/v1",
        "kind": "DoctorReport",
        "healthy": is_healthy(findings),
        "findings": [
            {
                "number": number,
                "code": one.code,
                "level": one.level,
                "check": one.check,
                "text": one.text,
                "fix": one.fix,
            }
            for number, one in enumerate(ordered(findings), 1)
        ],
    }
