"""Thirty failing programs: the first and the last error, cause and next step, from whole logs and from their ends."""

import pytest
from tests.explanations.failinglogs import FailingLog, programs

from kuberuntime.objects import errorlines

PROGRAMS = [*programs()]


def test_table_has_thirty_programs_with_long_logs() -> None:
    assert len({program.name for program in PROGRAMS}) >= 30
    assert min(len(program.lines) for program in PROGRAMS) >= 100


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_first_and_last_error_of_a_log_are_named(program: FailingLog) -> None:
    assert errorlines.telling(program.lines) == program.error
    assert errorlines.telling(program.lines[-errorlines.JUDGED :]) == program.error


@pytest.mark.parametrize("most", [1, 5, 10])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_excerpt_of_a_log_has_its_first_error(program: FailingLog, most: int) -> None:
    lines = errorlines.excerpt(program.lines, most)
    assert errorlines.telling(lines)[:2] == program.error[:2]
    assert len(lines) <= most + 2
