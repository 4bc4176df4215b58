"""The command `lws`: a table of commands, each imported only when it is used, and the only place that handles errors.

Options that select a cluster (`-n`, `--context`, `--kubeconfig`, `--local`) may stand before or after the command, as
with kubectl; they are moved to the front before click reads the words.
"""

import sys
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NoReturn

import click

import leaderworkerset
from leaderworkerset.cli import errors, nearmisses, streams
from leaderworkerset.cli.process import collection, leaving, lightlogging
from leaderworkerset.cli.shell import usages
from leaderworkerset.cli.shell.hoisting import LOCAL, hoist

COMMANDS: Final = {
    "run": "Run manifests on this machine: start a cluster, apply, watch, tear down.",
    "up": "Start the embedded cluster.",
    "down": "Stop the embedded cluster.",
    "clusters": "List the embedded clusters of this machine.",
    "apply": "Apply manifests.",
    "plan": "Show what applying manifests would do, step by step.",
    "diff": "Show what applying manifests would change.",
    "get": "Show LeaderWorkerSets by group and rank.",
    "explain": "Say why something is not ready, and what to do.",
    "tree": "Show LeaderWorkerSets, groups and ranks as a tree.",
    "describe": "Describe a LeaderWorkerSet, a group, a rank or a DisaggregatedSet on one page.",
    "nodes": "Show nodes: what is free on each, labels, taints, and who holds it.",
    "events": "Show what happened to a LeaderWorkerSet, in order.",
    "doctor": "Check the installation and this machine.",
    "logs": "Print the logs of ranks.",
    "exec": "Run a command in a rank.",
    "cp": "Copy files to ranks, or from them.",
    "port-forward": "Reach a port of a rank from this machine.",
    "scale": "Change the number of groups.",
    "wait": "Wait for a condition.",
    "rollout": "Follow and steer rollouts: status, history, diff, undo, pause, resume, restart.",
    "restart": "Replace groups by new ones of the same program.",
    "delete": "Delete LeaderWorkerSets or the objects of manifests.",
    "manager": "Run the controllers and webhooks for a Kubernetes cluster.",
    "operator": "Keep the manager installed as the object `cluster` specifies.",
    "install": "Install the manager on a cluster, or update it in place.",
    "uninstall": "Remove the manager from a cluster.",
    "must-gather": "Write diagnostic data into a directory.",
    "completion": "Print the completion script of a shell.",
    "version": "Print the version.",
}

LOCAL_COMMANDS: Final = ("run", "up", "down", "clusters")
"""Commands that start, stop and list clusters of this machine."""

ROLLOUT_COMMANDS: Final = ("rollout", "restart", "plan", "diff")
"""Commands that show, steer and predict rollouts."""

INSPECT_COMMANDS: Final = ("tree", "describe", "nodes", "events", "doctor", "cp", "must-gather")
"""Commands that inspect what runs."""

UNTARGETED: Final = ("version", "completion")
"""Commands that address no cluster: modules for connections are not imported for them."""

FOLDERS: Final = {
    **dict.fromkeys(LOCAL_COMMANDS, "commands.local"),
    **dict.fromkeys(ROLLOUT_COMMANDS, "commands.rollout"),
    **dict.fromkeys(INSPECT_COMMANDS, "commands.inspect"),
}
"""The folders of commands outside of `commands`."""


class LazyGroup(click.Group):
    """Finds commands in the table; imports a command's module when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        """Import the command; the list of all commands needs only the table's texts."""
        if name not in COMMANDS:
            return None
        if name in lightlogging.LOGGING:
            lightlogging.load()
        module = import_module(module_of(name))
        command: click.Command = module.command
        command.epilog = command.epilog or usages.epilog(name)
        return command

    def make_context(self, *words: Any, **options: Any) -> click.Context:
        """Parse the words; this also prints help."""
        with streams.read_by_somebody():
            return super().make_context(*words, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed standard output ends it, for which click would use another exit code."""
        with streams.read_by_somebody():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, suggest the most similar ones."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{nearmisses.hint(args[0], COMMANDS)}")
        if args[0] in collection.STARTS:
            ctx.with_resource(collection.put_off())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def module_of(name: str) -> str:
    """Return the module of a command.

    >>> module_of("port-forward"), module_of("up")
    ('leaderworkerset.cli.commands.port_forward', 'leaderworkerset.cli.commands.local.up')
    """
    return f"leaderworkerset.cli.{FOLDERS.get(name, 'commands')}.{name.replace('-', '_')}"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 124 timed out, 130 interrupted, 141 nobody reads the output.",
)
@click.option("-n", "--namespace", metavar="NAME", help="The namespace; otherwise the context's, or default.")
@click.option("--context", "context_name", metavar="NAME", help="The context of the kubeconfig.")
@click.option("--kubeconfig", metavar="FILE", help="The kubeconfig; otherwise $KUBECONFIG or ~/.kube/config.")
@click.option(
    LOCAL,
    metavar="[=NAME]",
    help="Address an embedded cluster of this machine: default, or NAME, written --local=NAME.",
)
@click.version_option(leaderworkerset.__version__, "--version", prog_name="lws", message="%(prog)s %(version)s")
@click.pass_context
def lws(ctx: click.Context, /, **options: Any) -> None:
    """Run groups of pods (one leader, its workers) on Kubernetes or on this machine."""
    if ctx.invoked_subcommand in UNTARGETED:
        return
    from leaderworkerset.cli.cluster.target import Target

    ctx.obj = Target(**options)


def main(words: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    streams.prepare()
    try:
        code = run(sys.argv[1:] if words is None else words)
    except BrokenPipeError:  # nobody reads the error message
        code = errors.PIPE_CLOSED
    leaving.leave(code)


def run(words: list[str]) -> int:
    """Run the command line; every expected error becomes one message and an exit code."""
    try:
        result = lws.main(hoist(words, lws), prog_name=program(), standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return errors.INTERRUPTED
    except streams.UnreadError:
        return errors.PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the edge of the program: unexpected errors are raised again
        code = report(error)
        if note := misplaced_name(words):
            click.echo(note, err=True)
        return code
    return result if isinstance(result, int) else 0


def misplaced_name(words: list[str]) -> str:
    """Return a note if `--local` is followed by the name of a cluster, which it does not read from there."""
    from leaderworkerset.cli.cluster import places

    following = dict(pairwise(words)).get(LOCAL, "")
    if not places.NAME.fullmatch(following) or not places.place(following).is_cluster:
        return ""
    return (
        f"note: `{LOCAL} {following}` addresses the cluster {places.DEFAULT}; the cluster {following} is addressed by "
        f"`{LOCAL}={following}`"
    )


def report(error: Exception) -> int:
    """Print an expected error as one message on standard error and return its exit code; raise any other."""
    from kuberuntime.errors import KubeError
    from leaderworkerset.cli.views import terminal

    if isinstance(error, click.ClickException):
        error.message = terminal.lines(error.message)  # type: ignore[misc]  # declared final, but only its display changes
        error.show()
        return errors.USAGE if isinstance(error, click.UsageError) else errors.FAILED
    found = errors.leaves(error)
    if not all(isinstance(leaf, errors.CommandError | KubeError | OSError) for leaf in found):
        raise error
    if any(isinstance(leaf, OSError) for leaf in found) and (broken := streams.drop_output()) is not None:
        if isinstance(broken, BrokenPipeError):  # as for `lws get | head -1`: no message
            return errors.PIPE_CLOSED
        found = [broken]
    elif any(isinstance(leaf, BrokenPipeError) for leaf in found) and streams.is_unread():
        return errors.PIPE_CLOSED
    for text in dict.fromkeys(map(errors.describe, found)):
        terminal.say(f"error: {text}", err=True)
    codes = [leaf.exit_code for leaf in found if isinstance(leaf, errors.CommandError)]
    return codes[0] if codes else errors.FAILED


def program() -> str:
    """Return the name for usage lines: kubectl calls the plug-in by another one."""
    return "kubectl lws" if sys.argv[0].endswith("kubectl-lws") else "lws"
