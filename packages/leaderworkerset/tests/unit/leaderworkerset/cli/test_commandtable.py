"""Every command of the table exists, has its help, and has examples in it, each one that the command takes."""

from importlib import import_module

import click
import pytest
from tests.typed import read

from leaderworkerset.cli import app
from leaderworkerset.cli.commandtable import COMMANDS

ALL = [*COMMANDS.values(), *(verb for one in COMMANDS.values() for verb in one.verbs)]


def test_every_command_of_the_table_exists_and_has_its_help() -> None:
    for entry in ALL:
        module, attribute = entry.place
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        assert command.name == entry.name
        assert command.help, entry


def test_examples_are_shown_below_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, entry in COMMANDS.items():
        assert entry.examples, name
        assert app.run([name, "--help"]) == 0
        printed = capsys.readouterr().out
        for line in entry.examples:
            assert f"  {line}\n" in printed


def test_every_example_is_taken() -> None:
    for name, line in ((one.name, line) for one in ALL for line in one.examples):
        typed = line.removeprefix("source <(").removesuffix(")").split(" > ")[0]
        assert typed.split()[:2] == ["lws", name]
        read(typed)
