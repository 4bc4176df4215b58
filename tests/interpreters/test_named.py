"""Tests that pages, classifiers and tools list the same Python versions."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.interpreters.environments import ROOT

TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
PROJECT = tomllib.loads((ROOT / "packages/leaderworkerset/pyproject.toml").read_text())
CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")
TRIED = [found[1] for one in PROJECT["project"]["classifiers"] if (found := CLASSIFIER.fullmatch(one))]
OLDEST = PROJECT["project"]["requires-python"].removeprefix(">=")
PAGES = ("README.md", "docs/how-to/first-steps.md", "Makefile")


def text_of(name: str) -> str:
    return " ".join((ROOT / name).read_text().split())


def test_classifiers_cover_all_versions_from_the_oldest_python() -> None:
    minors = [int(version.partition(".")[2]) for version in TRIED]
    assert TRIED[0] == OLDEST
    assert minors == list(range(minors[0], minors[0] + len(minors)))


@pytest.mark.parametrize("name", PAGES)
def test_pages_and_make_name_the_oldest_python(name: str) -> None:
    assert re.findall(r"Python (3\.\d+) or (?:later|newer)", text_of(name)) == [OLDEST]


def test_make_rejects_an_older_python() -> None:
    assert f"sys.version_info < ({OLDEST.replace('.', ', ')})" in text_of("Makefile")


def test_first_steps_name_tested_pythons_and_the_next_one() -> None:
    following = f"3.{int(TRIED[-1].partition('.')[2]) + 1}"
    found = re.search(r"tested with Python (\S+) to (\S+)\. With Python (\S+),", text_of("docs/how-to/first-steps.md"))
    assert found is not None
    assert found.groups() == (TRIED[0], TRIED[-1], following)


def test_contributing_names_the_same_pythons() -> None:
    first = ", ".join(TRIED[:-1])
    assert f"every tested minor version: {first} and {TRIED[-1]}." in text_of("CONTRIBUTING.md")


def test_tools_check_for_the_oldest_python() -> None:
    assert TOOLS["ruff"]["target-version"] == f"py{OLDEST.replace('.', '')}"
    assert TOOLS["mypy"]["python_version"] == OLDEST
    assert set(re.findall(r"--python-version (\S+)", text_of("Makefile"))) == {OLDEST}


def test_manager_image_has_a_tested_python() -> None:
    images = re.findall(r"\bpython:(3\.\d+)-slim@", (ROOT / "deploy" / "Containerfile").read_text())
    assert set(images) <= set(TRIED)
    assert images


def test_make_reports_an_outdated_python(tmp_path: Path) -> None:
    """The check runs on any Python 3 version. In this test, the interpreter reports version 3.9."""
    recipe = (ROOT / "Makefile").read_text()
    check = re.search(r"\$\(PYTHON\) -c '(import sys; sys\.exit\(.*)'", recipe)
    assert check is not None
    old = tmp_path / "old.py"
    old.write_text(f"import sys\nsys.version_info = (3, 9, 2)\nsys.version = '3.9.2 (old)'\n{check[1]}\n")
    result = subprocess.run([sys.executable, str(old)], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.strip()) == (
        1,
        f"Python {OLDEST} or newer is needed, this is 3.9.2: make PYTHON=/path/to/another",
    )
