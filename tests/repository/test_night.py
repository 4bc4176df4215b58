"""Tests that each long campaign uses existing commands and tests, and has a line in the report."""

import importlib.util
import re
from pathlib import Path

import pytest
from testkit.repository import ROOT
from tests import night
from tests.night import CAMPAIGNS, Campaign, Outcome


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda one: one.name)
def test_programs_of_a_campaign_exist(campaign: Campaign) -> None:
    _, words = campaign.words
    paths = [word for word in words if word.startswith(("tests/", "packages/"))]
    modules = [words[at + 1] for at, word in enumerate(words) if word == "-m"]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [name for name in modules if not importlib.util.find_spec(name)] == []
    assert paths or modules


def test_night_ends_with_a_report_and_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "python -c 'import os, sys; print(os.environ[\"SEEDS\"]); sys.exit(3)'"
    monkeypatch.setattr(night, "CAMPAIGNS", (Campaign("a", "x", f"SEEDS=7 {said}"), Campaign("b", "y", "python -V")))
    monkeypatch.setattr(night, "REPORT", tmp_path / "build/night.md")
    monkeypatch.setattr(night, "ROOT", tmp_path)
    assert night.main([]) == 1
    assert "build/night.md: 1 of 2 passed" in capsys.readouterr().out
    text = (tmp_path / "build/night.md").read_text()
    assert re.findall(r"^\| ([ab]) \| [xy] \| (\S+)", text, re.MULTILINE) == [("a", "FAILED"), ("b", "passed")]
    assert "## a\n\n```\n7\n```" in text
    assert night.main(["b"]) == 0


def test_unknown_campaign_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        night.main(["nothing"])
    assert "no campaign nothing; there are schedules, " in capsys.readouterr().err


def test_outcomes_without_output_are_reported() -> None:
    assert "| schedules |" in night.report([Outcome(CAMPAIGNS[0], 0, 60.0, ())])
