"""Defines the command table. Help, completion, the reference, the manual and lazy imports are derived from it.

A new command is a module below `cli/commands` and an entry here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Flag
from typing import Final

from lwsctl.cli.faultnames import FAULTS

GLOBAL_OPTIONS: Final = "You can specify the global options -n, --context, --kubeconfig and --local before or after the command (see `lws --help`)."


class Needs(Flag):
    """The requirements of a command, which are known before its module is imported."""

    NOTHING = 0
    CLUSTER = 1
    """The command has options that select a cluster. Modules for connections are imported only for these commands."""
    LOGS = 2
    """The command writes logs or watches objects, which can result in log messages."""
    MACHINE = 4
    """The command starts a cluster in its process. Garbage collection is therefore disabled during the start."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command or subcommand of `lws`, with all data that is needed before its module is imported."""

    name: str
    summary: str
    examples: tuple[str, ...] = ()
    """Example command lines for the help and the reference. A test parses them."""
    at: str = ""
    """The module in `cli/commands`. Defaults to the command name.

    The name in the module follows a colon, and defaults to `command`.
    """
    needs: Needs = Needs.CLUSTER
    verbs: "tuple[Command, ...]" = ()

    @property
    def place(self) -> tuple[str, str]:
        """Return the module, and the name of the click command in it.

        >>> Command("port-forward", "").place
        ('lwsctl.cli.commands.port_forward', 'command')
        """
        module, _, attribute = (self.at or self.name.replace("-", "_")).partition(":")
        return f"lwsctl.cli.commands.{module}", attribute or "command"

    @property
    def epilog(self) -> str:
        r"""Return the text below the command help. click does not wrap lines after \b.

        >>> Command("version", "", ("lws version",), needs=Needs.NOTHING).epilog
        '\x08\nExamples:\n  lws version'
        """
        parts = ["\n".join(["\b", "Examples:", *(f"  {line}" for line in self.examples)])] if self.examples else []
        return "\n\n".join([*parts, GLOBAL_OPTIONS] if Needs.CLUSTER in self.needs else parts)


def index_by_name(commands: Iterable[Command]) -> Mapping[str, Command]:
    """Return the commands by name, in the same order."""
    return {command.name: command for command in commands}


COMMANDS: Final = index_by_name(
    (
        Command(
            "run",
            "Run manifests on this machine in a temporary cluster.",
            (
                "lws run -f lws.yaml --image app=./app --until done",
                "lws run -f lws.yaml --stub --until ready --timeout 1m",
            ),
            at="local.run",
            needs=Needs.CLUSTER | Needs.LOGS | Needs.MACHINE,
        ),
        Command(
            "up",
            "Start the embedded cluster.",
            ("lws up --detach", "lws up gpus --nodes 4 --node-capacity nvidia.com/gpu=8"),
            at="local.up",
            needs=Needs.CLUSTER | Needs.LOGS | Needs.MACHINE,
        ),
        Command("down", "Stop the embedded cluster.", ("lws down", "lws down gpus --delete"), at="local.down"),
        Command("clusters", "List local clusters.", ("lws clusters",), at="local.clusters"),
        Command(
            "apply",
            "Apply manifests.",
            (
                "lws apply -f lws.yaml",
                "lws apply -f lws.yaml --dry-run=server",
                "lws apply -k ./overlay -n prod -o name",
            ),
        ),
        Command(
            "plan",
            "Predict the effects of applying manifests.",
            ("lws plan -f lws.yaml", "lws plan -f lws.yaml --snapshot saved.yaml"),
            at="rollout.plan",
        ),
        Command(
            "diff",
            "Show the differences between live objects and manifests.",
            ("lws diff -f lws.yaml",),
            at="rollout.diff",
        ),
        Command(
            "get",
            "Display LeaderWorkerSets by group and rank.",
            (
                "lws get",
                "lws get web/0 -o wide",
                "lws get -A --not-ready",
                "lws get web --watch",
                "lws get web -o jsonpath='{.spec.replicas}'",
                "lws get web/0 -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName",
            ),
        ),
        Command(
            "explain",
            "Explain why an object is not ready, and how to fix it.",
            ("lws explain", "lws explain web", "lws explain web/0/1", "lws explain -A -o json"),
        ),
        Command(
            "tree",
            "Show DisaggregatedSets, LeaderWorkerSets, groups and ranks as a tree.",
            ("lws tree", "lws tree web --ranks", "lws tree -A --not-ready"),
            at="inspect.tree",
        ),
        Command(
            "dashboard",
            "Open a web dashboard that shows groups, ranks, problems and rollouts.",
            (
                "lws dashboard",
                "lws dashboard --local --no-browser",
                "lws dashboard -A --allow-actions",
                "lws dashboard --export web > web.html",
            ),
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "describe",
            "Show details of a LeaderWorkerSet, group, rank or DisaggregatedSet.",
            ("lws describe web", "lws describe web/0", "lws describe web/0/1"),
            at="inspect.describe",
        ),
        Command(
            "nodes",
            "List nodes with their free resources, labels and taints.",
            ("lws nodes", "lws nodes node-0", "lws nodes --show-labels -l gpu=h100", "lws nodes -o name"),
            at="inspect.nodes",
        ),
        Command(
            "top",
            "Show the CPU, memory and GPU usage of ranks.",
            ("lws top", "lws top web/0", "lws top --sort memory -A", "lws top web -o json"),
            at="inspect.top",
        ),
        Command(
            "events",
            "List the events of a LeaderWorkerSet.",
            ("lws events web", "lws events web/0/1 --warnings", "lws events web --watch --since 10m"),
            at="inspect.events",
        ),
        Command(
            "history",
            "List the recorded failures of groups.",
            ("lws history --local", "lws history web", "lws history web/0#3", "lws history web/0 -o json"),
            at="inspect.history",
        ),
        Command(
            "doctor",
            "Check the installation in a cluster, and this machine.",
            ("lws doctor", "lws doctor --no-machine -o json", "lws doctor --no-cluster", "lws doctor -f lws.yaml"),
            at="inspect.doctor",
        ),
        Command(
            "logs",
            "Print the logs of ranks.",
            (
                "lws logs web/0/1",
                "lws logs web decode -f --rank 0 --since 10m",
                "lws logs web --grep 'error|warn' --tail 100",
                "lws logs web/0/1 --previous",
                "lws logs -l app=llama --tail 20",
            ),
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command("exec", "Execute a command in a rank.", ("lws exec web/0/1 -- nvidia-smi", "lws exec -it web -- bash")),
        Command(
            "cp",
            "Copy files to and from ranks.",
            ("lws cp ./model web:/models/", "lws cp web/0/1:/tmp/trace.json .", "lws cp web/0:/var/log/app ./logs"),
            at="inspect.cp",
        ),
        Command(
            "port-forward",
            "Forward one or more local ports to a rank.",
            ("lws port-forward web 8080", "lws port-forward web/1/0 9000:8080"),
        ),
        Command(
            "scale",
            "Set the number of groups in a LeaderWorkerSet.",
            (
                "lws scale web --replicas 4",
                "lws scale split --role decode --replicas 6",
                "lws scale web --replicas 2 --prefer-broken --dry-run",
                "lws scale web --replicas 2 --recreate-broken",
            ),
        ),
        Command(
            "wait",
            "Wait until objects meet a condition.",
            (
                "lws wait web decode",
                "lws wait --all --fail-fast",
                "lws wait web --for replicas=2 --timeout 10m",
                "lws wait web --for delete",
            ),
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "rollout",
            "Manage rollouts: status, history, diff, undo, pause, resume, restart.",
            ("lws rollout status web", "lws rollout history web", "lws rollout undo web --to-revision 3"),
            at="rollout.rollout",
            needs=Needs.CLUSTER | Needs.LOGS,
            verbs=(
                Command(
                    "status",
                    "Show the status of a rollout.",
                    (
                        "lws rollout status web",
                        "lws rollout status web --timeout 600",
                        "lws rollout status web --no-watch",
                    ),
                    at="rollout.rolloutstatus",
                ),
                Command(
                    "history",
                    "List the revisions of a LeaderWorkerSet.",
                    ("lws rollout history web", "lws rollout history web --revision 3"),
                    at="rollout.rollouthistory",
                ),
                Command(
                    "diff",
                    "Show the differences between two revisions.",
                    ("lws rollout diff web", "lws rollout diff web 3", "lws rollout diff web 3 5"),
                    at="rollout.rolloutdiff",
                ),
                Command(
                    "undo",
                    "Roll back to a previous revision.",
                    ("lws rollout undo web", "lws rollout undo web --to-revision 3", "lws rollout undo web --dry-run"),
                    at="rollout.undo",
                ),
                Command("pause", "Pause a rollout.", ("lws rollout pause web",), at="rollout.pause"),
                Command("resume", "Resume a paused rollout.", ("lws rollout resume web",), at="rollout.pause:resume"),
                Command(
                    "restart",
                    "Restart groups.",
                    ("lws rollout restart web", "lws rollout restart web/0 web/3"),
                    at="rollout.restart",
                ),
            ),
        ),
        Command(
            "restart",
            "Restart groups (the same command as `lws rollout restart`).",
            ("lws restart web", "lws restart web/0 web/3", "lws restart web/1/2", "lws restart web --dry-run"),
            at="rollout.restart",
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "drain",
            "Cordon nodes and wait until their groups have been moved.",
            ("lws drain node-7", "lws drain node-7 node-8 --dry-run", "lws drain node-7 --cancel"),
            at="rollout.drain",
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "move",
            "Move a group to other nodes.",
            ("lws move web/3", "lws move web/3 --off node-7"),
            at="rollout.move",
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "recover",
            "Recreate groups that have reached the restart limit.",
            ("lws recover web", "lws recover web/1 web/2"),
            at="rollout.recover",
            needs=Needs.CLUSTER,
        ),
        Command(
            "chaos",
            "Inject faults into a local cluster.",
            (
                "lws chaos kill web/0/1",
                "lws chaos partition web/0/0 web/0/1 --for 20s",
                "lws chaos run -f storm.yaml --probe http://127.0.0.1:8080/health",
                "lws chaos random --seed 7 --minutes 5",
            ),
            at="local.chaos",
            needs=Needs.CLUSTER | Needs.LOGS,
            verbs=(
                *(
                    Command(
                        fault.name,
                        fault.summary,
                        (fault.example,),
                        at=f"local.chaosfaults:{fault.name.replace('-', '_')}",
                    )
                    for fault in FAULTS.values()
                ),
                Command(
                    "run",
                    "Inject a sequence of faults from a file.",
                    ("lws chaos run -f storm.yaml",),
                    at="local.chaosfaults:run",
                ),
                Command(
                    "random",
                    "Inject random faults.",
                    ("lws chaos random --seed 7",),
                    at="local.chaosfaults:random",
                ),
                Command("list", "List active faults.", ("lws chaos list",), at="local.chaosfaults:listing"),
                Command("undo", "Stop all active faults.", ("lws chaos undo",), at="local.chaosfaults:undo"),
            ),
        ),
        Command(
            "delete",
            "Delete LeaderWorkerSets, DisaggregatedSets or the objects in manifests.",
            ("lws delete web", "lws delete -f lws.yaml --no-wait"),
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "manager",
            "Run the controllers and webhooks for a Kubernetes cluster.",
            ("lws manager --config /etc/lws/config.yaml",),
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "operator",
            "Run the operator, which installs the manager.",
            ("lws operator",),
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "install",
            "Install or upgrade the manager in a cluster.",
            ("lws install --wait", "lws install --dry-run=client -o yaml"),
            needs=Needs.CLUSTER | Needs.LOGS,
        ),
        Command(
            "uninstall", "Remove the manager from a cluster.", ("lws uninstall",), needs=Needs.CLUSTER | Needs.LOGS
        ),
        Command(
            "must-gather", "Collect diagnostic data in a directory.", ("lws must-gather",), at="inspect.must_gather"
        ),
        Command(
            "completion",
            "Print the completion script for a shell.",
            ("source <(lws completion bash)", "lws completion fish > ~/.config/fish/completions/lws.fish"),
            at="version:completion",
            needs=Needs.NOTHING,
        ),
        Command(
            "schema",
            "Print the JSON Schema of manifests for editors.",
            ("lws schema > lws.schema.json", "lws schema LeaderWorkerSet"),
            at="inspect.manifestschema",
            needs=Needs.NOTHING,
        ),
        Command("help", "Show the help for a command.", ("lws help", "lws help rollout undo"), needs=Needs.NOTHING),
        Command("version", "Print the version of lws.", ("lws version",), needs=Needs.NOTHING),
    )
)

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "On this machine": ("run", "up", "down", "clusters", "chaos"),
    "Apply": ("apply", "plan", "diff", "scale", "wait", "delete"),
    "Observe": ("get", "explain", "tree", "describe", "events", "history", "top", "nodes", "dashboard", "doctor"),
    "Work in ranks": ("logs", "exec", "cp", "port-forward"),
    "Roll out and move": ("rollout", "restart", "recover", "drain", "move"),
    "Run the manager": ("install", "uninstall", "manager", "operator", "must-gather"),
    "Other": ("completion", "schema", "help", "version"),
}
"""The commands grouped by purpose, as in `lws --help`."""
