"""Examples of every command, shown below its help and in the reference. A test parses each."""

from typing import Final

EXAMPLES: Final = {
    "run": (
        "lws run -f lws.yaml --image app=./app --until done",
        "lws run -f lws.yaml --stub --until ready --timeout 60",
    ),
    "up": ("lws up --detach", "lws up gpus --nodes 4 --node-capacity nvidia.com/gpu=8"),
    "down": ("lws down", "lws down gpus --delete"),
    "clusters": ("lws clusters",),
    "apply": (
        "lws apply -f lws.yaml",
        "lws apply -f lws.yaml --dry-run=server",
        "lws apply -k ./overlay -n prod -o name",
    ),
    "plan": ("lws plan -f lws.yaml",),
    "diff": ("lws diff -f lws.yaml",),
    "get": (
        "lws get",
        "lws get web/0 -o wide",
        "lws get -A --not-ready",
        "lws get web --watch",
        "lws get web -o jsonpath='{.spec.replicas}'",
        "lws get web/0 -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName",
    ),
    "explain": ("lws explain", "lws explain web", "lws explain web/0/1", "lws explain -A -o json"),
    "tree": ("lws tree", "lws tree web --ranks", "lws tree -A --not-ready"),
    "describe": ("lws describe web", "lws describe web/0", "lws describe web/0/1"),
    "nodes": ("lws nodes", "lws nodes node-0", "lws nodes --show-labels -l gpu=h100", "lws nodes -o name"),
    "events": ("lws events web", "lws events web/0/1 --warnings", "lws events web --watch --since 10m"),
    "doctor": ("lws doctor", "lws doctor --no-machine -o json", "lws doctor --no-cluster"),
    "logs": (
        "lws logs web/0/1",
        "lws logs web decode -f --rank 0 --since 10m",
        "lws logs web --grep 'error|warn' --tail 100",
        "lws logs web/0/1 --previous",
        "lws logs -l app=llama --tail 20",
    ),
    "exec": ("lws exec web/0/1 -- nvidia-smi", "lws exec -it web -- bash"),
    "cp": (
        "lws cp ./model web:/models/",
        "lws cp web/0/1:/tmp/trace.json .",
        "lws cp web/0:/var/log/app ./logs",
    ),
    "port-forward": ("lws port-forward web 8080", "lws port-forward web/1/0 9000:8080"),
    "scale": ("lws scale web --replicas 4", "lws scale split --role decode --replicas 6"),
    "wait": (
        "lws wait web decode",
        "lws wait --all --fail-fast",
        "lws wait web --for replicas=2 --timeout 600",
        "lws wait web --for delete",
    ),
    "rollout": ("lws rollout status web", "lws rollout history web", "lws rollout undo web --to-revision 3"),
    "restart": ("lws restart web", "lws restart web/0 web/3"),
    "delete": ("lws delete web", "lws delete -f lws.yaml --no-wait"),
    "manager": ("lws manager --config /etc/lws/config.yaml",),
    "operator": ("lws operator",),
    "install": ("lws install --wait", "lws install --dry-run=client -o yaml"),
    "uninstall": ("lws uninstall",),
    "must-gather": ("lws must-gather",),
    "completion": ("source <(lws completion bash)", "lws completion fish > ~/.config/fish/completions/lws.fish"),
    "version": ("lws version",),
}
"""The examples of a command, by its name in the list of commands."""


def epilog(name: str) -> str:
    r"""Return the text below the help of a command; click keeps lines after \b unchanged.

    >>> epilog("version")
    '\x08\nExamples:\n  lws version'
    """
    lines = EXAMPLES.get(name, ())
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)]) if lines else ""
