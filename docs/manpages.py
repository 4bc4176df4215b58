"""Generates the manual pages from the commands, such as `man lws`, `man lws-get` and `man lws-rollout`.

Wheels install them to share/man/man1. The text is roff with the macros of man(7).
"""
# ruff: noqa: INP001 - part of the scripts beside it

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click

from lwsctl.cli import app
from lwsctl.cli.commandtable import COMMANDS, Command, index_by_name

FOLDER: Final = Path(__file__).parents[1] / "packages/lwsctl/man"

SOURCE: Final = "LeaderWorkerSet in Python"
MANUAL: Final = "Commands"

EXIT_CODES: Final[Mapping[str, str]] = {
    "0": "Success.",
    "1": "Failure. The message on standard error describes the problem, the object and the fix.",
    "2": "Usage error. No changes were made.",
    "124": "Timeout. The message describes the condition that is not met.",
    "130": "The command was interrupted.",
    "141": "The reader closed the output, for example in `lws get | head -1`. No error message is printed.",
}

VARIABLES: Final[Mapping[str, str]] = {
    "KUBECONFIG": "Paths to the kubeconfig files. Defaults to ~/.kube/config.",
    "NO_COLOR": "If this variable is set, colors are disabled, and lines are printed instead of updating tables in place.",
    "TERM": "The value dumb has the same effect, and also disables the progress line.",
    "LWS_STATE_HOME": "Directory of the embedded clusters. Defaults to $XDG_STATE_HOME/lws or ~/.local/state/lws.",
}

EXAMPLES: Final = "\b\n"
"""The marker after which click does not wrap lines."""


def pages() -> dict[Path, str]:
    """Return the content of each page by its path."""
    root = click.Context(app.lws, info_name="lws", max_content_width=1000)
    texts = {FOLDER / "lws.1": overview(root)}
    for name, entry in COMMANDS.items():
        command = _command(app.lws, root, name)
        texts[FOLDER / f"lws-{name}.1"] = "\n".join(_page(command, root, entry)) + "\n"
    return texts


def overview(root: click.Context) -> str:
    """Return the manual page of `lws` itself."""
    lines = [
        *_title("lws", "run groups of pods (one leader and its workers) on Kubernetes or on this machine"),
        ".SH SYNOPSIS",
        r".B lws \fICOMMAND\fR [OPTIONS]",
        ".SH DESCRIPTION",
        _text(
            "To select groups and ranks, use paths: LWS, LWS/GROUP or LWS/GROUP/RANK, for example web/0/2. You can specify the"
            " following options before or after a command. By default, lws uses the same kubeconfig as kubectl."
        ),
        *_options(root),
        ".SH COMMANDS",
        *_definitions((f"lws-{command.name}(1)", command.summary) for command in COMMANDS.values()),
        *_below(),
    ]
    return "\n".join(lines) + "\n"


def _page(command: click.Command, root: click.Context, entry: Command) -> Iterator[str]:
    name = entry.name
    context = click.Context(command, info_name=name, parent=root, max_content_width=1000)
    yield from _title(f"lws-{name}", entry.summary)
    yield ".SH SYNOPSIS"
    yield _synopsis(command, context, name)
    yield ".SH DESCRIPTION"
    yield from _paragraphs(command.help or "")
    yield from _options(context)
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        verbs = index_by_name(entry.verbs)
        for verb in command.list_commands(context):
            yield from _verb(_command(command, context, verb), context, f"{name} {verb}", verbs[verb].examples)
    if entry.examples:
        yield ".SH EXAMPLES"
        yield from _verbatim(entry.examples)
    yield ".SH SEE ALSO"
    yield ".BR lws (1)"


def _verb(command: click.Command, parent: click.Context, name: str, examples: Iterable[str]) -> Iterator[str]:
    context = click.Context(command, info_name=name.rsplit(maxsplit=1)[-1], parent=parent, max_content_width=1000)
    yield f".SS lws {_text(name)}"
    yield _synopsis(command, context, name)
    yield ".PP"
    yield from _paragraphs(command.help or "")
    yield from _definitions(_records(context))
    yield from (".PP", "Examples:", *_verbatim(examples))


def _title(name: str, summary: str) -> list[str]:
    heading = f'.TH "{_text(name.upper())}" "1" "" "{SOURCE}" "{MANUAL}"'
    return [
        r".\" Written by docs/generate_cli.py from the commands. Do not edit: make generate.",
        heading,
        ".SH NAME",
        f"{_text(name)} \\- {_text(summary.rstrip('.'))}",
    ]


def _synopsis(command: click.Command, context: click.Context, name: str) -> str:
    words = " ".join(command.collect_usage_pieces(context))
    return f".B lws {_text(name)}\n{_text(words)}"


def _options(context: click.Context) -> list[str]:
    records = list(_records(context))
    return [".SH OPTIONS", *_definitions(records)] if records else []


def _records(context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in context.command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            yield record[0], re.sub(" +", " ", record[1])


def _definitions(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in pairs:
        yield from (".TP", f".B {_text(term)}", _text(text))


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text. Examples retain their line breaks."""
    for at, part in enumerate(paragraph for paragraph in cleandoc(text).split("\n\n") if paragraph.strip()):
        if at:
            yield ".PP"
        if part.startswith(EXAMPLES):
            yield from _verbatim(part.removeprefix(EXAMPLES).splitlines())
        else:
            yield _text(" ".join(part.split()))


def _verbatim(lines: Iterable[str]) -> list[str]:
    return [".nf", *map(_text, lines), ".fi"]


def _below() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    yield from _definitions(EXIT_CODES.items())
    yield ".PP"
    yield _text(
        "lws exec returns the exit code of the executed command. lws explain has additional exit codes. See lws-explain(1)."
    )
    yield ".SH ENVIRONMENT"
    yield from _definitions(VARIABLES.items())


def _text(text: str) -> str:
    """Return a string escaped for roff, so that it contains no roff commands."""
    escaped = (
        text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("^", r"\(ha").replace("~", r"\(ti")
    )
    escaped = escaped.replace("…", "...").replace("'", r"\(aq")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


def _command(group: click.Group, context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    if command is None:
        raise LookupError(name)
    return command
