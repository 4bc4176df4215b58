"""The recording on the front page shows what `lws run` prints now."""

import pytest
from docs.record_run import COMMAND, TEXT, Line, load, shapes
from tests.e2e.harness import Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_a_run_prints_the_kinds_of_lines_that_were_recorded(shell: Shell) -> None:
    result = shell.lws(*COMMAND.split()[1:])
    now = [Line(0.0, text) for text in (result.stdout + result.stderr).splitlines()]
    assert shapes(now) == shapes(load(TEXT.read_text())), "the front page shows something else: make recording"
