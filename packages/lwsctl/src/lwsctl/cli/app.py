"""Implements the `lws` command. This is the only module that handles the errors of commands.

Options that select a cluster (`-n`, `--context`, `--kubeconfig`, `--local`) can be before or after the command, as in
kubectl.
"""

import io
import os
import sys
from functools import partial
from itertools import pairwise
from typing import NoReturn

import click

import lwsctl
from kuberuntime import standardstreams
from kuberuntime.errors import flatten
from kuberuntime.standardstreams import PIPE_CLOSED
from lwsctl.cli import errors, suggestions
from lwsctl.cli.commandtable import COMMANDS, SECTIONS, Needs
from lwsctl.cli.shell.kubectlparser import LOCAL, cluster_option_values, cluster_options
from lwsctl.cli.shell.lazygroup import LazyGroup


@partial(cluster_options, hidden=False)
@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 success, 1 failure, 2 usage error, 124 timeout, 130 interrupted, 141 broken pipe.",
)
@click.version_option(lwsctl.__version__, "--version", prog_name="lws", message="%(prog)s %(version)s")
@click.pass_context
def lws(ctx: click.Context) -> None:
    """Run groups of pods (one leader and its workers) on Kubernetes or on this machine."""
    if Needs.CLUSTER not in COMMANDS[str(ctx.invoked_subcommand)].needs:
        return
    from lwsctl.cli.cluster.target import Target

    ctx.obj = Target(**cluster_option_values(ctx))  # type: ignore[arg-type]  # the options are texts


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its exit code."""
    standardstreams.open_missing_streams()
    if "_LWS_COMPLETE" in os.environ:
        from lwsctl.cli.shell import quickcompletion

        quickcompletion.register()
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # the error message is discarded
        code = PIPE_CLOSED
    standardstreams.exit_now(code)


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code. Each expected error is printed as one message."""
    try:
        result = lws.main(arguments, prog_name=program(), standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return errors.INTERRUPTED
    except standardstreams.ClosedOutputError:
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the edge of the program: unexpected errors are raised again
        code = report(error)
        if note := misplaced_name(arguments):
            click.echo(note, err=True)
        return code
    return result if isinstance(result, int) else 0


def misplaced_name(arguments: list[str]) -> str:
    """Return a note if `--local` is followed by a cluster name, which must be an argument of `--local`."""
    from lwsctl.cli.cluster import clusterdirectories

    following = dict(pairwise(arguments)).get(LOCAL, "")
    if (
        not clusterdirectories.NAME.fullmatch(following)
        or not clusterdirectories.cluster_directory(following).is_cluster
    ):
        return ""
    return f"note: `{LOCAL} {following}` selects the cluster {clusterdirectories.DEFAULT}; use `{LOCAL}={following}` to select the cluster {following}"


def report(error: Exception) -> int:
    """Print an expected error as one message on stderr and return its exit code. Raise any other error."""
    from kuberuntime.errors import KubeError
    from lwsctl.cli.views import terminal

    if isinstance(error, click.ClickException):
        if isinstance(error, click.NoSuchOption):
            error.possibilities = similar_options(error)  # type: ignore[misc]  # click knows only those of the command
        error.message = terminal.lines(error.message)  # type: ignore[misc]  # declared final, but only its display changes
        output = io.StringIO()
        error.show(output)
        click.echo(output.getvalue().replace("Error: ", "error: ", 1), err=True, nl=False)  # as for all other errors
        return errors.USAGE if isinstance(error, click.UsageError) else errors.FAILED
    raised = flatten(error)
    if not all(isinstance(leaf, errors.CommandError | KubeError | OSError) for leaf in raised):
        raise error
    if any(isinstance(leaf, OSError) for leaf in raised) and (broken := standardstreams.drop_output()) is not None:
        if isinstance(broken, BrokenPipeError):  # no message, for example for `lws get | head -1`
            return PIPE_CLOSED
        raised = [broken]
    elif any(isinstance(leaf, BrokenPipeError) for leaf in raised) and standardstreams.has_no_reader():
        return PIPE_CLOSED
    for text in dict.fromkeys(map(errors.describe, raised)):
        terminal.print_text(f"error: {text}", err=True)
    codes = [leaf.exit_code for leaf in raised if isinstance(leaf, errors.CommandError)]
    return codes[0] if codes else errors.FAILED


def similar_options(error: click.NoSuchOption) -> list[str]:
    """Return the most similar option. The options that select a cluster are also considered."""
    commands = [lws, *([error.ctx.command] if error.ctx else [])]
    options = (param for command in commands for param in command.params if isinstance(param, click.Option))
    return suggestions.similar_words(error.option_name, (name for option in options for name in option.opts))[:1]


def program() -> str:
    """Return the executable name for usage messages. A kubectl plugin has a different name."""
    return "kubectl lws" if sys.argv[0].endswith("kubectl-lws") else "lws"
