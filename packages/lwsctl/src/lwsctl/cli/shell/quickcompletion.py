"""Completes clusters, contexts, namespaces, nodes, sets and ranks without importing command modules.

The input is the complete words of a line and the incomplete word. The output is suggestions, or None if click
provides them (options, commands and choices). Because a shell waits for the result, this module does not import
command modules or aiohttp. It imports `clusternames` only for names in a cluster. `completion` handles connections
with a proxy or a server name.
"""

from collections.abc import Sequence
from typing import Final

import click
from click import shell_completion
from click.shell_completion import CompletionItem, ShellComplete

from leaderworkerset.api.conditions import WAIT_WORDS
from lwsctl.cli.faultnames import FAULTS, FaultTarget
from lwsctl.cli.shell.completion import filter_by_prefix
from lwsctl.cli.shell.kubectlparser import LOCAL, OPTIONS, find_cluster_options

NAMED: Final = frozenset({
    "delete", "describe", "events", "exec", "explain", "get", "history", "logs", "move", "port-forward", "recover",
    "restart", "scale", "top", "tree", "wait", "cp",
    *(f"rollout {verb}" for verb in ("status", "history", "diff", "undo", "pause", "resume", "restart")),
    *(f"chaos {fault.name}" for fault in FAULTS.values() if fault.of in {FaultTarget.RANK, FaultTarget.RANKS}),
})  # fmt: skip
"""The commands whose arguments are LeaderWorkerSets, groups or ranks."""

OF_NODES: Final = frozenset(
    {"nodes", "drain", *(f"chaos {fault.name}" for fault in FAULTS.values() if fault.of is FaultTarget.NODE)}
)
OF_CLUSTERS: Final = frozenset({"up", "down"})
VERBS: Final = frozenset({"rollout", "chaos"})

CONDITIONS: Final = (*WAIT_WORDS, "delete", "replicas=", "condition=", "jsonpath=")


def register() -> None:
    """Register this module for all shells, before click registers its completion."""
    for shell in (shell_completion.BashComplete, shell_completion.ZshComplete, shell_completion.FishComplete):
        shell_completion.add_completion_class(type(shell.__name__, (_Quick, shell), {}))


class _Quick(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the suggestions."""
        texts = suggestions(args, incomplete, self.cli)
        if texts is None:
            return super().get_completions(args, incomplete)
        return [CompletionItem(text) for text in texts]


def suggestions(args: Sequence[str], incomplete: str, root: click.Command) -> list[str] | None:
    """Return the suggestions for the last word, or None if click provides the suggestions."""
    option, start = _option(args, incomplete)
    what = ""
    if option == LOCAL or (not option and _command(args) in OF_CLUSTERS):
        from lwsctl.cli.cluster import clusterdirectories

        return filter_by_prefix([place.name for place in clusterdirectories.all_directories()], start)
    if option == "--for" and _command(args) == "wait":
        return filter_by_prefix(CONDITIONS, start)
    if option in {"-n", "--namespace"}:
        what = "namespaces"
    elif not option and not start.startswith("-") and "--" not in args:
        command = _command(args)
        what = "names" if command in NAMED else "nodes" if command in OF_NODES else ""
    if not what:
        return None
    from lwsctl.cli.shell import clusternames

    return clusternames.list_names(what, find_cluster_options(args, root), start)


def _option(args: Sequence[str], incomplete: str) -> tuple[str, str]:
    """Return the option whose value is completed and the start of the value. The option is empty if there is none.

    >>> _option(["get", "-n"], "pr"), _option(["get"], "--local=g"), _option(["get", "--local"], "="), _option(["get"], "we")
    (('-n', 'pr'), ('--local', 'g'), ('--local', ''), ('', 'we'))
    """
    if incomplete == "=":
        return (args[-1] if args else ""), ""
    if incomplete.startswith("--") and "=" in incomplete:
        name, _, value = incomplete.partition("=")
        return name, value
    if len(args) > 1 and args[-1] == "=":
        return args[-2], incomplete
    last = args[-1] if args else ""
    is_open = last.startswith("-") and "=" not in last and last != LOCAL
    return (last if is_open else ""), incomplete


def _command(args: Sequence[str]) -> str:
    """Return the command in the arguments with its subcommand, or an empty result if it is incomplete."""
    words = [word for word in _without_options(args) if not word.startswith("-")]
    return " ".join(words[: 2 if words[:1] and words[0] in VERBS else 1])


def _without_options(args: Sequence[str]) -> list[str]:
    """Return the arguments without the options that select a cluster and without their values."""
    options = {word for names, *_ in OPTIONS for word in names} - {LOCAL}
    rest, words = iter(args), []
    for word in rest:
        if word in options:
            next(rest, None)
        elif word != "=" and not word.startswith("-"):
            words.append(word)
    return words
