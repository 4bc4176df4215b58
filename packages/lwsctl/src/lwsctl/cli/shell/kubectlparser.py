"""Parses command lines as kubectl does.

Cluster options can be anywhere, `-n=prod` and `--wait=false` are valid, and kinds may precede names.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

import click
from click.parser import _OptionParser, _ParsingState
from click.shell_completion import _resolve_context

LOCAL: Final = "--local"
DEFAULTS: Final = {LOCAL: "default", "--stub": "missing"}
"""Options with an optional value, and their defaults. The next argument is never the value."""

KINDS: Final = frozenset({"lws", "leaderworkerset", "leaderworkersets", "disaggregatedset", "disaggregatedsets"})
"""Kinds that may precede a name, with or without API group.

They have no effect, because all names are of these kinds.
"""

OF_ALL: Final = frozenset({"get", "explain", "tree"})
"""The commands that show all objects if no name is specified."""

VALUES: Final = "lwsctl.cluster"
"""The key in `Context.meta` of the options that select a cluster."""

AnyCommand = TypeVar("AnyCommand", bound=click.Command)


def cluster_option_values(context: click.Context) -> dict[str, str]:
    """Return the options that select a cluster, by parameter name."""
    options: dict[str, str] = context.meta.setdefault(VALUES, {})
    return options


def _store_value(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        cluster_option_values(context)[str(parameter.name)] = value
        if context.obj is not None:  # the target was made from the options before the command
            from msgspec.structs import replace

            context.obj = replace(context.obj, **{str(parameter.name): value})


OPTIONS: Final = (
    (("-n", "--namespace"), "NAME", "Namespace to use. Defaults to the namespace of the context."),
    (("--context", "context_name"), "NAME", "Name of the kubeconfig context to use. Defaults to the current context."),
    (("--kubeconfig",), "FILE", "Path to the kubeconfig file. Defaults to $KUBECONFIG or ~/.kube/config."),
    ((LOCAL,), "[=NAME]", "Use the local cluster NAME, which defaults to `default`."),
)


def cluster_options(command: AnyCommand, *, hidden: bool = True) -> AnyCommand:
    """Add the options that select a cluster to a command, and parse its arguments as kubectl does.

    >>> from lwsctl.cli.app import lws
    >>> find_cluster_options(["get", "web", "-n=prod", "--local"], lws), find_cluster_options(["--local=a", "apply", "--dry-run", "--local=b"], lws)
    ({'namespace': 'prod', 'local': 'default'}, {'local': 'b'})
    >>> find_cluster_options(["exec", "-it", "web/0", "-c", "main", "ls", "-n"], lws), find_cluster_options(["logs", "web", "--grep", "--local"], lws)
    ({}, {})
    """
    if not any(LOCAL in parameter.opts for parameter in command.params):
        command.params[:0] = [
            click.Option(names, metavar=metavar, help=text, hidden=hidden, expose_value=False, callback=_store_value)
            for names, metavar, text in OPTIONS
        ]
        command.make_parser = _Parser.of  # type: ignore[method-assign]  # click has no other way to replace its parser
    return command


def find_cluster_options(arguments: Sequence[str], root: click.Command) -> dict[str, str]:
    """Return the options that select a cluster, at any position of an incomplete command line."""
    context = root.make_context("lws", list(arguments), resilient_parsing=True)
    if any(word.startswith("-") for word in context.args):  # only then: this imports the command
        context = _resolve_context(root, {}, "lws", list(arguments))
    return cluster_option_values(context)


class _Parser(_OptionParser):
    @classmethod
    def of(cls, ctx: click.Context) -> "_Parser":
        """Return the parser for the command in a context."""
        parser = cls(ctx)
        for parameter in ctx.command.get_params(ctx):
            parameter.add_to_parser(parser, ctx)
        parser._long_opt |= parser._short_opt  # `-n=prod` is the same as `-n prod`
        return parser

    def _match_long_opt(self, opt: str, explicit_value: str | None, state: _ParsingState) -> None:
        if opt in DEFAULTS and opt in self._long_opt and explicit_value is None:
            self._long_opt[opt].process(DEFAULTS[opt], state)
        elif opt == "--wait" and "--no-wait" in self._long_opt and explicit_value in {"true", "false"}:
            super()._match_long_opt("--wait" if explicit_value == "true" else "--no-wait", None, state)
        else:
            super()._match_long_opt(opt, explicit_value, state)

    def _process_args_for_options(self, state: _ParsingState) -> None:
        """Parse options. For `exec`, parse only options before the command to execute in the rank."""
        is_exec = self.ctx is not None and self.ctx.command.name == "exec"
        self.allow_interspersed_args &= not is_exec
        super()._process_args_for_options(state)
        if is_exec and state.rargs:
            state.largs.append(state.rargs.pop(0))
            super()._process_args_for_options(state)

    def _process_args_for_args(self, state: _ParsingState) -> None:
        """Parse arguments. Remove kinds before names, and a single kind that selects all objects."""
        names, command = state.largs, self.ctx.command if self.ctx is not None else None
        if names and "/" not in names[0] and names[0].partition(".")[0] in KINDS and command is not None:
            state.largs = names[1:] if names[1:] or command.name in OF_ALL else names
        super()._process_args_for_args(state)
