"""The cluster that `lws run` assumes for a manifest: `--nodes auto --gpus auto`.

Without these options nothing is assumed; if the nodes lack what the manifest needs, a note suggests them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.local.clusteroptions import AUTO, ClusterOptions
from leaderworkerset.cli.local.localcluster import nodes_in, nodes_of
from leaderworkerset.cli.reading.manifests import Document
from leaderworkerset.cli.rehearsal import nodepools, surroundings
from leaderworkerset.cli.rehearsal.demands import Demand, demands_of
from leaderworkerset.cli.rehearsal.nodepools import Pool
from leaderworkerset.core.gang.provider import DEFAULT_SCHEDULER
from localkube.cluster import DEFAULT_CLASS_NAME, PROVISIONER, Nodes

GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Assumed:
    """The objects to apply, the nodes, and the notes to print before."""

    documents: Sequence[Document]
    nodes: Nodes
    lines: tuple[str, ...] = ()


def assume(documents: Sequence[Document], options: ClusterOptions) -> Assumed:
    """Return the nodes and objects that the documents need, as far as they are to be derived."""
    for document in documents:
        for name in surroundings.values(document.object, "schedulerName"):
            if name != DEFAULT_SCHEDULER:
                raise CommandError(
                    f"{document.place}: schedulerName {name}: the cluster of lws run has no such scheduler, and pods would wait "
                    "for it: leave schedulerName out to run the groups without it"
                )
    demands = [demand for document in documents for demand in demands_of(document.object)]
    if AUTO not in (options.nodes, options.gpus_per_node):
        return Assumed(documents, nodes_of(options), _offer(demands, options))
    found = [_combined(pool, options) for pool in _pools(demands, options)]
    total = sum(pool.count for pool in found)
    if total > nodepools.MOST:
        raise CommandError(
            f"--nodes auto: the manifest needs {total} nodes, and at most {nodepools.MOST} are simulated: "
            "give fewer replicas, or --nodes with a number"
        )
    lines = tuple(f"assumed: {pool}" for pool in found)
    if options.nodes != AUTO:
        return Assumed(documents, nodes_in(found), lines)
    around = surroundings.rehearsed(documents, provisioner=PROVISIONER, there=(DEFAULT_CLASS_NAME,))
    return Assumed(around.documents, nodes_in(found), (*lines, *(f"assumed: {line}" for line in around.assumptions)))


def _pools(demands: Sequence[Demand], options: ClusterOptions) -> list[Pool]:
    """Return the pools before the options of the command line are added."""
    if options.nodes == AUTO:
        found = nodepools.pools(demands) or [Pool(count=1)]
        return found if options.gpus_per_node == AUTO else list(map(nodepools.without_resources, found))
    capacity = tuple(f"{name}={amount}" for name, amount in sorted(nodepools.largest(demands).items()))
    return [Pool(count=options.nodes, capacity=capacity, sources=tuple(demand.source for demand in demands))]


def _combined(pool: Pool, options: ClusterOptions) -> Pool:
    """Add the options of the command line: they apply to every node, and override what is assumed."""
    typed = _typed(options)
    labels, capacity = _names(typed.labels), _names(typed.capacity)
    return replace(
        pool,
        labels=(*(word for word in pool.labels if not _names([word]) & labels), *typed.labels),
        taints=tuple(dict.fromkeys([*pool.taints, *typed.taints])),
        capacity=(*(word for word in pool.capacity if not _names([word]) & capacity), *typed.capacity),
    )


def _typed(options: ClusterOptions) -> Pool:
    gpus = (f"{GPU}={options.gpus_per_node}",) if options.gpus_per_node > 0 else ()
    return Pool(
        count=options.nodes,
        labels=options.node_labels,
        taints=options.node_taints,
        capacity=(*options.node_capacity, *gpus),
    )


def _names(words: Sequence[str]) -> set[str]:
    """Return the names in a text like NAME=VALUE,NAME=VALUE."""
    return {part.partition("=")[0] for word in words for part in word.split(",")}


def _offer(demands: Sequence[Demand], options: ClusterOptions) -> tuple[str, ...]:
    """Return the note about what the nodes lack; none if they lack nothing."""
    typed = _typed(options)
    capacity, labels = _names(typed.capacity), _names(typed.labels)
    own = {"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"}
    lacking = dict.fromkeys(name for demand in demands for name in demand.resources if name not in capacity)
    lacking |= dict.fromkeys(
        f"label {key}" for demand in demands for key, _ in demand.labels if key not in labels | own
    )
    if not lacking:
        return ()
    what = f"note: no node here has what the manifest requires ({', '.join(lacking)}), so pods will wait"
    return (f"{what}: --nodes auto --gpus auto simulates the nodes that it needs",)
