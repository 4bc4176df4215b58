"""Tests that strings from a cluster are printed as text instead of control sequences."""

import asyncio
import io
from datetime import UTC, datetime

import pytest

from kuberuntime.errors import InternalError
from lwsctl.cli import app
from lwsctl.cli.views import output, terminal
from lwsctl.cli.views.live import PlainDisplay
from lwsctl.cli.views.progress import ProgressLine
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import changes

ATTACK = "\x1b]0;owned\a\x9b2J\r\u202eforged\n"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def view(why: str) -> View:
    rank = Rank(group=0, index=0, pod="web-0", state=why, why=why, address=why, node=why)
    groups = (Group(index=0, ranks=(rank,)),)
    return View(name="web", namespace="a", ready=0, desired=1, up_to_date=0, created="", groups=groups, object={})


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_control_characters_are_escaped_and_letters_kept() -> None:
    assert terminal.escape(ATTACK) == r"^[]0;owned\x07\x9b2J\r\u202eforged\n"
    assert terminal.escape("Größe 大小 ✓") == "Größe 大小 ✓"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("line", "colored"),
    [
        ("web-0   CrashLoopBackOff   no", "\x1b[31mCrashLoopBackOff\x1b[0m"),
        ("web-0   ContainerCreating   no", "\x1b[33mContainerCreating\x1b[0m"),
        ("web-0   Running   yes", "\x1b[32mRunning\x1b[0m"),
        ("web is stuck (LWS-E041): no node", "\x1b[31mLWS-E041\x1b[0m"),
    ],
)
def test_states_are_colored_on_a_terminal(line: str, colored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    output = Terminal()
    monkeypatch.setattr("sys.stdout", output)
    terminal.print_states(line)
    assert colored in output.getvalue()


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_states_have_no_color_when_disabled(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, value)
    output = Terminal()
    monkeypatch.setattr("sys.stdout", output)
    terminal.print_states("web-0   Error")
    assert output.getvalue() == "web-0   Error\n"


def test_names_that_contain_a_state_are_not_colored() -> None:
    assert terminal.colorize("Running-late my-Error Errors") == "Running-late my-Error Errors"


def test_repeated_reason_is_folded() -> None:
    rows = output.table(("POD",), [("a",), ("b",), ("c",)], whys=("no node", "no node", "other"))
    assert rows == ["POD   WHY", "a     no node", 'b     "', "c     other"]


def test_line_breaks_are_kept() -> None:
    assert terminal.lines("a\a\nb\t") == "a\\x07\nb\\t"


def test_tables_have_no_control_characters() -> None:
    table = output.groups(view(ATTACK).groups, NOW, wide=True)
    assert len(table) == 2
    assert all(map(is_harmless, table))
    assert "^[]0;owned" in table[1]


def test_changes_and_live_views_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    PlainDisplay().update([view(ATTACK)])
    for line in changes.lines({}, changes.subjects([view(ATTACK)], NOW)).values():
        terminal.print_text(line)
    told = capsys.readouterr()
    assert "^[]0;owned" in told.err
    assert "^[]0;owned" in told.out
    assert is_harmless(told.err + told.out)


def test_server_errors_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.report(InternalError({"code": 500, "message": ATTACK})) == 1
    told = capsys.readouterr().err
    assert "^[]0;owned" in told
    assert is_harmless(told)


@pytest.mark.virtual_time
async def test_plain_progress_skips_changes_except_the_last() -> None:
    stream = io.StringIO()

    progress = ProgressLine(stream, between=2)
    for count in range(12):
        progress.show(f"{count} ready")
        await asyncio.sleep(0.7)
    await asyncio.sleep(2)
    progress.show("late")
    progress.clear()
    progress.show("next")
    progress.clear()
    assert stream.getvalue().splitlines() == ["0 ready", "2 ready", "5 ready", "8 ready", "11 ready", "late", "next"]


def test_progress_has_no_control_characters() -> None:
    stream = io.StringIO()
    ProgressLine(stream).show(ATTACK)
    assert is_harmless(stream.getvalue())
    assert stream.getvalue().count("\n") == 1
