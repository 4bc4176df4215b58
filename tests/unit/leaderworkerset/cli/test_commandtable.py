"""Every command of the table exists, has its help, and has examples in it, each one that the command takes."""

from importlib import import_module

import click
import pytest
from tests.typed import read

from leaderworkerset.cli import app
from leaderworkerset.cli.commandtable import COMMANDS, Command

ALL = [*COMMANDS.values(), *(verb for one in COMMANDS.values() for verb in one.verbs)]
EXAMPLES = [(one, line) for one in ALL for line in one.examples]


@pytest.mark.parametrize("entry", ALL, ids=[one.at or one.name for one in ALL])
def test_every_command_of_the_table_exists_and_has_its_help(entry: Command) -> None:
    module, attribute = entry.place
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.name == entry.name
    assert command.help


@pytest.mark.parametrize("entry", COMMANDS.values(), ids=COMMANDS)
def test_examples_are_shown_below_the_help(entry: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.examples
    assert app.run([entry.name, "--help"]) == 0
    printed = capsys.readouterr().out
    for line in entry.examples:
        assert f"  {line}\n" in printed


@pytest.mark.parametrize(("entry", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_is_taken(entry: Command, line: str) -> None:
    typed = line.removeprefix("source <(").removesuffix(")").split(" > ")[0]
    assert typed.split()[:2] == ["lws", entry.name]
    read(typed)
