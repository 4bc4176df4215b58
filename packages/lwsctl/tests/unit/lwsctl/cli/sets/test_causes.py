"""Tests that a rollout reports each cause once, and reports it again if it returns."""

import asyncio
import io

import pytest

from lwsctl.cli.cluster.target import Session
from lwsctl.cli.sets import diagnoses
from lwsctl.cli.sets.causes import CauseMonitor, StuckError
from lwsctl.cli.views.progress import ProgressLine
from lwsctl.model.diagnosis import Diagnosis, Subject
from lwsctl.model.health import Verdict


def diagnosis(code: str, sentence: str = "it is so", verdict: Verdict = Verdict.STUCK) -> Diagnosis:
    return Diagnosis(
        target="web",
        verdict=verdict,
        sentence=sentence,
        code=code,
        subject=Subject(kind="Pod", name="web-0"),
        steps=("add nodes", "wait") if code == "LWS-E021" else (),
    )


def test_cause_is_reported_once_and_again_after_it_returns() -> None:
    notes: list[str] = []
    causes = CauseMonitor(Session(None, "ns", None), "web", notes.append)  # type: ignore[arg-type]  # nothing is read
    told = [
        None,
        diagnosis("LWS-E020"),
        diagnosis("LWS-E020", "it is so for 3 s"),
        diagnosis("LWS-E073", verdict=Verdict.PROGRESSING),
        diagnosis("LWS-E020", "it is so for 9 s"),
        diagnosis("LWS-E099", verdict=Verdict.UNKNOWN),
        diagnosis("LWS-E021"),
    ]
    assert [causes.print_cause(one) for one in told] == [False, True, False, True, True, True, True]
    assert notes == [
        "web is stuck (LWS-E020): it is so",
        "web is stuck (LWS-E020): it is so for 9 s",
        "web is stuck (LWS-E021): it is so",
        "next: add nodes",
    ]


def test_stuck_rollout_has_no_time_estimate() -> None:
    causes = CauseMonitor(Session(None, "ns", None), "web", lambda _: None)  # type: ignore[arg-type]  # nothing is read
    seen = []
    for one in (None, diagnosis("LWS-E036"), diagnosis("LWS-E092", verdict=Verdict.PROGRESSING)):
        causes.print_cause(one)
        seen.append(causes.is_stuck)
    assert seen == [False, True, False]


@pytest.mark.parametrize(
    ("before", "at_the_end", "expected"),
    [
        (
            diagnosis("LWS-E071"),
            diagnosis("LWS-E081", verdict=Verdict.PROGRESSING),
            "web is stuck (LWS-E071): see above\n",
        ),
        (diagnosis("LWS-E071"), diagnosis("LWS-E036"), "web is stuck (LWS-E036): it is so\n"),
        (None, diagnosis("LWS-E081", verdict=Verdict.PROGRESSING), "web is progressing (LWS-E081)"),
        (diagnosis("LWS-E071"), None, "web is stuck (LWS-E071): see above\n"),
        (None, None, ""),
    ],
    ids=["starts anew", "another", "nothing before", "not in time", "nothing"],
)
def test_conclusion_refers_to_the_printed_cause(
    before: Diagnosis | None, at_the_end: Diagnosis | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told(*_: object) -> Diagnosis | None:
        return at_the_end

    monkeypatch.setattr(diagnoses, "diagnose_in_time", told)
    causes = CauseMonitor(Session(None, "ns", None), "web", lambda _: None)  # type: ignore[arg-type]  # nothing is read
    causes.print_cause(before)
    said = asyncio.run(causes.final_cause())
    assert said.startswith(f"\n{expected}" if expected else "")
    assert bool(said) is bool(expected)
    assert said.endswith("explain web` for details" if expected else "")


@pytest.mark.virtual_time
@pytest.mark.parametrize(("stuck_after", "end", "notes"), [(0.0, 5, 0), (30.0, 40, 2)])
async def test_wait_fails_when_one_cause_lasts_too_long(
    stuck_after: float, end: float, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A different cause starts a new period. The first cause is active at 5 s, the second from 10 s on."""
    told = iter([diagnosis("LWS-E036"), *[diagnosis("LWS-E071")] * 9])
    seen: list[str] = []

    async def in_time(*_: object) -> Diagnosis:
        return next(told)

    monkeypatch.setattr(diagnoses, "diagnose_in_time", in_time)
    causes = CauseMonitor(Session(None, "ns", None), "web", seen.append, stuck_after=stuck_after)  # type: ignore[arg-type]  # nothing is read
    with pytest.raises(StuckError, match=r"^web is stuck \(LWS-E0.*\): it is so$"):
        await causes.run()
    assert asyncio.get_running_loop().time() == pytest.approx(end, abs=0.01)
    assert len(seen) == notes


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_note_is_printed_above_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    progress = ProgressLine(stream)
    progress.show("1 of 2")
    progress.note("stuck")
    assert stream.getvalue() == "\r\x1b[K1 of 2\r\x1b[Kstuck\n\r\x1b[K1 of 2"


def test_note_between_lines_repeats_no_line() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)
    progress.show("1 of 2")
    progress.note("stuck")
    progress.show("1 of 2")
    progress.show("2 of 2")
    assert stream.getvalue() == "1 of 2\nstuck\n2 of 2\n"
