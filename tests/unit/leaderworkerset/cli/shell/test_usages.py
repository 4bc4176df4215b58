"""Every command has examples in its help, and every example is one that the command takes."""

import shlex

import click
import pytest

from leaderworkerset.cli import app
from leaderworkerset.cli.shell import usages
from leaderworkerset.cli.shell.hoisting import hoist

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
    words = shlex.split(line.removeprefix("source <(").removesuffix(")").split(" > ")[0])
    assert words[:2] == ["lws", name]
    root = click.Context(app.lws, info_name="lws")
    rest = hoist(words[1:], app.lws)
    rest = rest[rest.index(name) + 1 :]
    command = app.lws.get_command(root, name)
    assert command is not None
    while isinstance(command, click.Group):
        inner = command.get_command(root, rest[0])
        assert inner is not None, rest
        command, rest = inner, rest[1:]
    command.make_context(name, rest, parent=root)
