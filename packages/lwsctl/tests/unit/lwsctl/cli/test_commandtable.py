"""Tests that each command in the table exists, has help with examples, and accepts each example."""

from importlib import import_module

import click
import pytest
from tests.typed import read

from lwsctl.cli import app, errors
from lwsctl.cli.commandtable import COMMANDS, SECTIONS, Needs
from lwsctl.cli.shell.lazygroup import INSTEAD

NAMED = {
    **COMMANDS,
    **{f"{entry.name} {verb.name}": verb for entry in COMMANDS.values() for verb in entry.verbs},
}


def test_every_command_of_the_table_has_help() -> None:
    for entry in NAMED.values():
        module, attribute = entry.place
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        assert command.name == entry.name
        assert command.help, entry


def test_no_command_is_replaced_by_advice() -> None:
    assert not INSTEAD.keys() & COMMANDS.keys()


def test_examples_are_part_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words, entry in NAMED.items():
        assert entry.examples, words
        assert app.run([*words.split(), "--help"]) == 0
        printed = capsys.readouterr().out
        assert "\n  Examples:\n" in printed
        assert ("global options" in " ".join(printed.split())) == (Needs.CLUSTER in entry.needs)
        for line in entry.examples:
            assert f"  {line}\n" in printed


def test_every_example_is_valid() -> None:
    for words, line in ((words, line) for words, entry in NAMED.items() for line in entry.examples):
        typed = line.removeprefix("source <(").removesuffix(")").split(" > ")[0]
        assert f"{typed} ".startswith(f"lws {words} ")
        read(typed)


def test_every_command_is_in_one_section_of_the_help() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(COMMANDS)


def test_usage_errors_start_like_other_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["get", "--nope"]) == errors.USAGE
    assert "\nerror: No such option" in capsys.readouterr().err
