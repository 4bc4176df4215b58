"""Writes docs/reference/cli.md and the manual pages. With `--check`, only reports files that are out of date.

python -m docs.generate_cli [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
from docs import generatedpage, manpages

from lwsctl.cli import app
from lwsctl.cli.commandtable import COMMANDS, index_by_name
from lwsctl.cli.gocommand import GoCommand

PAGE = Path(__file__).parent / "reference" / "cli.md"

INTRODUCTION = """\
# Commands

<!-- Written by docs/generate_cli.py from the commands themselves. Do not edit: make generate. -->

This page describes all commands of `lws` and their options. Run `lws COMMAND [OPTIONS]`, or `kubectl lws COMMAND [OPTIONS]` if `kubectl-lws` is in PATH.
To select groups and ranks, use paths: `LWS`, `LWS/GROUP` or `LWS/GROUP/RANK`, for example `web/0/2`.

## Cluster options

You can specify these options before or after a command. By default, `lws` uses the same kubeconfig as kubectl,
which is `$KUBECONFIG` or `~/.kube/config`, and its current context.

{options}

## Exit codes

| Code | Meaning |
|---|---|
{exit_codes}

`lws exec` returns the exit code of the executed command. [`lws explain`](causes.md) has three additional exit codes:

- 3: The object is progressing or starting, and no action is required.
- 4: The object is stuck or crashing, and action is required.
- 5: The object is not ready for an unknown reason.

## Output

Commands print results to standard output, and progress, notes and errors to standard error. On a terminal, `lws run` and `lws get --watch` update
a table in place. Otherwise, they print plain lines.

The output formats `json` and `yaml` are stable. They contain API objects, or a document with `apiVersion: lws/v1`. The meaning of existing fields does not
change, but new fields can be added. `lws get -o view` prints such a document, which contains groups, ranks and reasons. With `--watch`, each JSON document
is printed on one line.

| Variable | Description |
|---|---|
| `NO_COLOR` | If this variable is set, colors are disabled, and lines are printed instead of updating tables in place. |
| `TERM=dumb` | This value has the same effect, and also disables the progress line. |
| `LWS_STATE_HOME` | Directory of the embedded clusters. Defaults to `$XDG_STATE_HOME/lws` or `~/.local/state/lws`. |

## Completion

For Bash, add `source <(lws completion bash)` to `~/.bashrc`. For Zsh, add `source <(lws completion zsh)` to `~/.zshrc`. For fish, run
`lws completion fish > ~/.config/fish/completions/lws.fish`.

## Manual pages

To read the manual pages, run `man lws`, or, for example, `man lws-get` for a single command. The wheel installs the pages in `share/man/man1`, where
`man` finds them through PATH.
"""


def page() -> str:
    """Return the complete page."""
    root = click.Context(app.lws, info_name="lws", max_content_width=200)
    parts = [INTRODUCTION.format(options=table(root), exit_codes=exit_codes())]
    for name in COMMANDS:
        command = app.lws.get_command(root, name)
        if command is None:
            raise LookupError(name)
        parts += sections(command, click.Context(command, info_name=name, parent=root, max_content_width=200), name)
    return "\n".join(parts)


def exit_codes() -> str:
    """Return the table rows of the exit codes."""
    return "\n".join(f"| {code} | {escape(text)} |" for code, text in manpages.EXIT_CODES.items())


def sections(command: click.Command, context: click.Context, name: str) -> Iterator[str]:
    """Return the description of a command, followed by its subcommands."""
    yield section(command, context, name)
    if isinstance(command, click.Group):
        for verb in command.list_commands(context):
            subcommand = command.get_command(context, verb)
            if subcommand is None:
                raise LookupError(verb)
            below = click.Context(subcommand, info_name=verb, parent=context, max_content_width=200)
            yield section(subcommand, below, f"{name} {verb}")


def section(command: click.Command, context: click.Context, name: str) -> str:
    """Return the description of one command."""
    words = " ".join(command.collect_usage_pieces(context))
    description = paragraphs(command.help or "")
    return f"## lws {name}\n\n`lws {name} {words}`\n\n{description}\n\n{options(command, context)}\n{examples(name)}"


def options(command: click.Command, context: click.Context) -> str:
    """Return the options of a command, or its flags if it has flags in Go syntax."""
    return f"```text\n{command.flags_help()}\n```" if isinstance(command, GoCommand) else table(context)


def examples(name: str) -> str:
    """Return the examples of a command as a block, which a test parses but does not run."""
    command, _, verb = name.partition(" ")
    entry = index_by_name(COMMANDS[command].verbs)[verb] if verb else COMMANDS[command]
    lines = entry.examples
    return "\n".join(["", "```text", *lines, "```", ""]) if lines else ""


def paragraphs(text: str) -> str:
    """Return the help of a command, with each paragraph on one line and with examples as code."""
    parts = [part for part in cleandoc(text).split("\n\n") if part.strip()]
    return "\n\n".join(
        f"```bash\n{part.removeprefix(manpages.EXAMPLES)}\n```"
        if part.startswith(manpages.EXAMPLES)
        else part.replace("\n", " ")
        for part in parts
    )


def table(context: click.Context) -> str:
    """Return the option table of a command, without --help, which all commands have."""
    rows = [f"| `{names}` | {escape(text)} |" for names, text in records(context)]
    return (
        "\n".join(["| Option | Description |", "|---|---|", *rows])
        if rows
        else "This command has no additional options."
    )


def records(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the options of a command in the same form as in its help."""
    for parameter in context.command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            yield record[0].replace("|", " or "), re.sub(" +", " ", record[1])


def escape(text: str) -> str:
    """Return the string, escaped for a table cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    sys.exit(generatedpage.write("the commands themselves", lambda: {PAGE: page()} | manpages.pages(), manpages.FOLDER))
