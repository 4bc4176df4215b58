"""Computes pools of simulated nodes on which all pods of the manifests fit, for `--nodes auto --gpus auto`.

Pods with the same required labels and tolerated taints share a pool. Pods that request GPUs or must be separate from
others have dedicated nodes. Other pods share a node. Groups with exclusive topology have as many domains of the same
size as there are groups, so that each group fits in each domain.

A pod with fewer requirements may be scheduled on a node for other pods and use its GPUs, because kube-scheduler
scoring does not prevent this. Therefore, a pool has an additional node for each such pod of other pools. It also has
an additional domain for each pod or group that could use a domain of an exclusive group.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import quantity
from kuberuntime.objects.quantity import Quantity
from lwsctl.cli.rehearsal.podrequirements import Demand

MOST: Final = 1000
"""The maximum number of simulated nodes, as for `--nodes`."""


class Pool(Struct, frozen=True, kw_only=True):
    """Identical nodes, in the format of the node options, and the objects that require them."""

    count: int
    labels: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    capacity: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a description of the assumption.

        >>> str(Pool(count=2, labels=("pool=gpu",), capacity=("nvidia.com/gpu=8",), sources=("pod/a",)))
        '2 nodes with label pool=gpu, nvidia.com/gpu=8 (for pod/a)'
        """
        parts = [
            *(f"label {word}" for word in self.labels),
            *(f"taint {word}" for word in self.taints),
            *self.capacity,
        ]
        what = f" with {', '.join(parts)}" if parts else ""
        return f"{self.count} node{'s' if self.count > 1 else ''}{what} (for {', '.join(self.sources)})"


def derive_pools(demands: Iterable[Demand]) -> list[Pool]:
    """Return the node pools that the demands require, or no pools if the demands have no requirements."""

    def sort(demand: Demand) -> tuple[object, ...]:
        return (demand.labels, demand.taints, tuple(sorted(domain.key for domain in demand.domains)))

    node_pools: list[Pool] = []
    ordered_demands = sorted(demands, key=sort)
    for _, group in groupby(ordered_demands, key=sort):
        members = list(group)
        node_pools.append(_build_pool(members, ordered_demands, first=sum(pool.count for pool in node_pools)))
    return node_pools


def _build_pool(members: Sequence[Demand], demands: Sequence[Demand], first: int) -> Pool:
    others = [demand for demand in demands if demand not in members and _fits(demand, members)]
    resources = largest_requests(members)
    takers = [demand for demand in others if demand.resources.keys() & resources.keys() and not demand.domains]
    pods = _pod_count(takers) + (sum(demand.pods for demand in members if demand.is_spread) or 1)
    labels = [f"{key}={value}" for key, value in members[0].labels]
    count, unit = pods, 1
    keys = {domain.key for demand in members for domain in demand.domains}
    for size, key in sorted((_nodes_per_domain(members, key), key) for key in keys):
        repels = {domain.repels for demand in members for domain in demand.domains if domain.key == key}
        repelled = [demand for demand in others if repels & {*demand.pod_labels}]
        outside = (demand for demand in repelled if all(domain.key != key for domain in demand.domains))
        number = _domain_count(demands, key) + _pod_count(outside)
        sharing = takers if "" in repels else [demand for demand in takers if demand not in repelled]
        unit *= -(-(size + _pod_count(sharing)) // unit)  # a domain contains all nodes of its smaller domains
        offset = f"(i-{first})" if first else "i"
        labels.append(f"{key}=domain-{{{offset}//{unit}}}" if unit > 1 else f"{key}=domain-{{{offset}}}")
        count = max(count, number * unit)
    return Pool(
        count=count,
        labels=tuple(labels),
        taints=members[0].taints,
        capacity=tuple(f"{name}={amount}" for name, amount in sorted(resources.items())),
        sources=tuple(demand.source for demand in members),
    )


def _fits(demand: Demand, members: Sequence[Demand]) -> bool:
    """Return whether pods of another pool could be scheduled on the nodes of this pool."""
    labels, taints, resources = members[0].labels, members[0].taints, largest_requests(members)
    return (
        set(demand.labels) <= set(labels)
        and set(demand.taints) >= set(taints)
        and demand.resources.keys() <= resources.keys()
    )


def _nodes_per_domain(members: Sequence[Demand], key: str) -> int:
    """Return the number of nodes of this pool that each topology domain requires."""
    sizes: dict[str, int] = {}
    for demand in members:
        for domain in demand.domains:
            if domain.key == key:
                sizes[domain.owner] = sizes.get(domain.owner, 0) + (domain.pods if demand.is_spread else 0)
    return max(1, *sizes.values())


def _domain_count(demands: Iterable[Demand], key: str) -> int:
    """Return the number of topology domains that the groups of all pools use at the same time."""
    numbers: dict[str, int] = {}
    for domain in (domain for demand in demands for domain in demand.domains if domain.key == key):
        numbers[domain.owner] = max(numbers.get(domain.owner, 0), domain.number)
    return sum(numbers.values())


def _pod_count(demands: Iterable[Demand]) -> int:
    return sum(demand.pods for demand in demands)


def largest_requests(members: Iterable[Demand]) -> dict[str, Quantity]:
    """Return the largest amount of each resource that one pod requests."""
    amounts: dict[str, Quantity] = {}
    for demand in members:
        for name, amount in demand.resources.items():
            amounts[name] = max(amounts.get(name, quantity.ZERO), amount)
    return amounts


def without_resources(pool: Pool) -> Pool:
    """Return the pool without the resources that only some nodes provide."""
    return replace(pool, capacity=())
