"""Tests a few schedules of `make simulate`: random schedules, crashes at every write, and planted bugs."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.seeds import first_tier
from tests.simulation.schedules import forking, planted
from tests.simulation.schedules.campaign import Summary
from tests.simulation.schedules.playing import Verdict

pytestmark = pytest.mark.slow

SEEDS = 10
"""The number of random schedules of each kind. `make simulate SEEDS=...` plays more."""

BUDGET = 60
"""The number of schedules in which a planted bug must be found."""


def play(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Play the schedule in a separate process, which forks."""
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    chosen = {**os.environ, "PYTHONHASHSEED": "0"} | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, env=chosen)


@pytest.mark.parametrize(
    "what",
    first_tier(
        [
            ("--crashes", "create", "fail", "replace", "--seeds", "0"),
            ("--seeds", str(SEEDS)),
            ("--seeds", "0", "--misuse", str(SEEDS)),
            ("--seeds", "0", "--clocks", str(SEEDS)),
            ("--seeds", "0", "--in-place", str(SEEDS)),
        ],
        2,
    ),
    ids=["deaths", "random", "misuse", "clocks", "in place"],
)
def test_random_schedules_violate_nothing(what: tuple[str, ...]) -> None:
    played = play(*what, "--processes", "1")
    assert played.returncode == 0, played.stdout + played.stderr
    assert "violations: 0" in played.stdout
    count = re.search(r"^(\d+) schedules", played.stdout, re.MULTILINE)
    assert count is not None
    assert int(count[1]) >= SEEDS


@pytest.mark.parametrize(
    "what",
    first_tier([("--crashes", "roll", "grow"), ("--misuse", "1"), ("--clocks", "1")]),
    ids=["deaths", "misuse", "clocks"],
)
def test_manager_crash_fails_its_schedule_only(what: tuple[str, ...]) -> None:
    played = play("--bug", "ends-at-an-update", "--seeds", "0", *what)
    assert played.returncode == 1
    assert "Traceback" not in played.stderr
    assert "  an actor broke: AssertionError('edited')" in played.stdout
    count = re.search(r"^(\d+) schedules .*^violations: (\d+)$", played.stdout, re.MULTILINE | re.DOTALL)
    assert count is not None
    assert int(count[1]) >= 2
    assert int(count[2]) >= 2


@pytest.mark.long
def test_every_planted_bug_is_found() -> None:
    assert len(planted.BUGS) >= 15
    hunted = play("--hunt", "--seeds", str(BUDGET))
    assert hunted.returncode == 0, hunted.stdout + hunted.stderr
    assert hunted.stdout.rstrip().endswith(
        f"{len(planted.BUGS)} of {len(planted.BUGS)} planted bugs were found; missed: none"
    )


@pytest.mark.parametrize("name", planted.BUGS)
def test_planted_bug_replaces_existing_code(name: str) -> None:
    with planted.bug(name):
        pass


def test_reference_names_every_planted_bug() -> None:
    page = Path("docs/reference/simulation.md").read_text()
    assert [name for name in planted.BUGS if f"| `{name}` |" not in page] == []


@pytest.mark.parametrize("seed", ["2.7", "5.5"])  # in 5.5, the order of the garbage collector's watches matters
def test_seed_gives_the_same_schedule_in_every_process(seed: str) -> None:
    first = play("--seed", seed).stdout
    again = play("--seed", seed, PYTHONHASHSEED="1", **{f"SHIFTS_ADDRESSES_{n}": "x" * n for n in range(40)}).stdout
    assert first == again
    assert first.startswith(f"seed {seed}: ")


def test_summary_adds_up_the_played_schedules() -> None:
    summary = Summary()
    summary.add(
        Verdict(seed="1.0", violations=[], writes=3, steps=2, faults={"409": 1}, happened=["roll"], declared=b"{}")
    )
    summary.add(Verdict(seed="1.1", violations=["bad"], writes=4, steps=5, faults={"409": 2}, happened=["roll"]))
    assert list(summary.lines()) == [
        "2 schedules of 0.0 virtual hours: 7 writes, 7 changes checked, 0 recreations, 2 different ends",
        "happened: roll 2",
        "faults: 409 3",
        "violations: 1",
    ]


def test_endless_branch_is_stopped_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(forking, "LONGEST", 0.2)

    async def spins(_: forking.Send) -> None:
        while True:  # noqa: ASYNC110 - it never ends
            await asyncio.sleep(0)

    with pytest.raises(forking.BranchError, match="ended with 70"):
        asyncio.run(forking.branch(spins, lambda _: None))
    assert "a branch used 0.2 s of the processor" in capfd.readouterr().err
