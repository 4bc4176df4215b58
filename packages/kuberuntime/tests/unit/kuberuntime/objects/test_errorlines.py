"""Tests which output line of a process explains its exit, with the output of many programs."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kuberuntime.objects import errorlines
from kuberuntime.objects.errorlines import ErrorLine

CORPUS = Path(__file__).with_name("lastlines.txt")


class Case(NamedTuple):
    """The output lines of a process, and the line to quote."""

    lines: tuple[str, ...]
    telling: ErrorLine


def cases() -> Iterator[Case]:
    """Yield the paragraphs of the test data."""
    for paragraph in CORPUS.read_text().split("\n\n"):
        marked = [line for line in paragraph.split("\n") if line and not line.startswith("#")]
        if marked:
            (telling,) = [line for line in marked if line[0] in ">?"]
            yield Case(tuple(line[2:] for line in marked), ErrorLine(telling[2:].strip(), is_certain=telling[0] == ">"))


@pytest.mark.parametrize("case", [*cases()], ids=lambda case: case.telling.line[:40])
def test_relevant_line_of_a_program_is_quoted(case: Case) -> None:
    assert errorlines.first_error(case.lines)[:2] == case.telling[:2]


def test_corpus_has_over_a_hundred_programs() -> None:
    assert len([*cases()]) >= 100
