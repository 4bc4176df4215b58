"""Tests that each command has a manual page with known macros, which groff renders without a warning."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from docs import manpages

from lwsctl.cli import app
from lwsctl.cli.commandtable import COMMANDS

NAMES = ["lws.1", *(f"lws-{name}.1" for name in COMMANDS)]

MACROS = {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".BR", ".nf", ".fi"}


@cache
def pages() -> dict[str, str]:
    """Return all pages by file name. They are created on demand, so that test collection is fast."""
    return {path.name: text for path, text in manpages.pages().items()}


def test_every_command_has_a_page() -> None:
    """`docs.generate_cli --check` compares the files."""
    assert set(pages()) == set(NAMES)


def test_every_page_has_its_sections_and_only_known_macros() -> None:
    for name in NAMES:
        lines = pages()[name].splitlines()
        assert {line.split(" ")[0] for line in lines if line.startswith(".")} - {r".\""} <= MACROS, name
        assert not [line for line in lines if line.startswith("'")], name
        sections = [line.removeprefix(".SH ") for line in lines if line.startswith(".SH")]
        assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name
        assert lines[1].startswith(f'.TH "{name.removesuffix(".1").upper()}" "1"'.replace("-", r"\-"))
        assert lines.count(".nf") == lines.count(".fi"), name


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("groff") is None, reason="groff shows manual pages")
@pytest.mark.parametrize("name", ["lws.1", "lws-rollout.1", "lws-explain.1", "lws-run.1"])
def test_groff_renders_the_text_of_a_page(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(pages()[name])
    words = ["groff", "-man", "-ww", "-Tascii", "-P-c", "-rLL=200n", str(path)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    text = re.sub(" +", " ", re.sub(".\b", "", shown.stdout))
    expected = {
        "lws.1": "--kubeconfig FILE",
        "lws-rollout.1": "lws rollout undo web --to-revision 3",
        "lws-explain.1": "4 stuck or crashing (action is required)",
        "lws-run.1": "--until",
    }
    assert expected[name] in text


def test_special_characters_are_escaped() -> None:
    assert manpages._text(".B it's -o `x` a\\b") == r"\&.B it\(aqs \-o \(gax\(ga a\eb"


def options(command: click.Command, words: str) -> Iterator[tuple[str, click.Option]]:
    """Yield the options of a command and of its subcommands, with the command name."""
    yield from ((words, option) for option in command.params if isinstance(option, click.Option))
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=words)
        for name in command.list_commands(context):
            verb = command.get_command(context, name)
            assert verb is not None
            yield from options(verb, f"{words} {name}")


def test_every_option_has_a_description() -> None:
    assert [(words, option.opts[0]) for words, option in options(app.lws, "lws") if not option.help] == []
