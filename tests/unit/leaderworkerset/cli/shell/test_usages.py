"""Every command has examples in its help, and every example is one that the command takes."""

import pytest
from tests.typed import read

from leaderworkerset.cli import app
from leaderworkerset.cli.shell import usages

ALL = [(name, line) for name, lines in usages.EXAMPLES.items() for line in lines]


def test_every_command_has_examples() -> None:
    assert usages.EXAMPLES.keys() == app.COMMANDS.keys()
    assert all(usages.EXAMPLES.values())


@pytest.mark.parametrize("name", list(usages.EXAMPLES))
def test_examples_are_shown_below_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([name, "--help"]) == 0
    printed = capsys.readouterr().out
    for line in usages.EXAMPLES[name]:
        assert f"  {line}\n" in printed


@pytest.mark.parametrize(("name", "line"), ALL, ids=[line for _, line in ALL])
def test_an_example_is_taken(name: str, line: str) -> None:
    typed = line.removeprefix("source <(").removesuffix(")").split(" > ")[0]
    assert typed.split()[:2] == ["lws", name]
    read(typed)
