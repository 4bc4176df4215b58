"""Counts the groups, ranks, nodes and accelerators of one set and of all sets. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.decisions.nodefit import Demand, demand_of_pod
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.pages.templates import leader_and_worker
from lwsctl.model.leaderworkerset import View
from lwsctl.model.nodestate import nodes_of

ACCELERATOR: Final = re.compile(r".+/(?:.*(?:gpu|tpu|npu|hpu|neuron|mig-).*)", re.IGNORECASE)
"""Extended resource names of accelerators, without network cards."""


class Accelerators(Struct, frozen=True):
    """The number of accelerators that groups request, and the numbers that ready and unready groups use."""

    requested: int = 0
    ready: int = 0
    idle: int = 0


def all_totals(views: Sequence[View], facts: PageFacts) -> Mapping[str, str]:
    """Return the totals of all sets in text format. Complete sets are excluded."""
    running = [view for view in views if not view.is_complete]
    ranks = [rank for view in running for rank in view.ranks]
    lacking = sum(view.more * view.size for view in running)
    sums = {
        "Groups": format_share(sum(view.ready for view in running), sum(view.desired for view in running)),
        "Ranks": format_share(sum(rank.is_ready for rank in ranks), len(ranks) + lacking),
    }
    counts, free = accelerators(running), free_accelerators(facts)
    if counts.requested or free:
        sums["GPUs"] = format_share(counts.ready, counts.requested)
        sums |= {} if free is None else {"GPUs free": f"{free:,}"}
    return sums


def accelerators(views: Iterable[View]) -> Accelerators:
    """Return the accelerators of all desired groups, based on the templates of their sets."""
    total = ready = idle = 0
    for view in views:
        leader, worker = (accelerator_count(demand_of_pod(meta.spec(pod))) for pod in leader_and_worker(view.object))
        total += view.desired * (leader + worker * (view.size - 1))
        if not (leader or worker):
            continue
        for group in view.groups:
            is_idle = not group.is_ready
            for rank in group.ranks:
                own = worker if rank.index else leader
                ready += own if rank.is_ready else 0
                idle += own if is_idle and rank.node else 0
    return Accelerators(total, ready, idle)


def free_accelerators(facts: PageFacts) -> int | None:
    """Return the number of accelerators that are not requested, or None if nodes or pods were not read."""
    if not (facts.is_read_kind(NODES) and facts.is_read_kind(PODS)):
        return None
    nodes = nodes_of(facts.get(NODES), facts.get(PODS))
    return sum(
        accelerator_count({name: node.free(name) for name in node.allocatable})
        for node in nodes
        if node.status == "Ready"
    )


def accelerator_count(amounts: Demand) -> int:
    """Return the number of accelerators in pod requirements.

    >>> from kuberuntime.objects import quantity
    >>> accelerator_count({"nvidia.com/gpu": quantity.parse("8"), "cpu": quantity.parse("2"), "rdma/hca": quantity.parse("1")})
    8
    """
    return sum(amount.ceil() for name, amount in amounts.items() if ACCELERATOR.fullmatch(name))


def node_count(view: View) -> int:
    """Return the number of nodes that run pods of a set."""
    return len({rank.node for rank in view.ranks if rank.node})


def worker_image(view: View) -> str:
    """Return the image of the first worker container, without its registry.

    >>> short_image("registry.example.com:5000/ml/vllm-openai:v0.11.0"), short_image("vllm@sha256:0123456789abcdef")
    ('vllm-openai:v0.11.0', 'vllm@0123456')
    """
    for template in reversed(leader_and_worker(view.object)):
        for container in meta.spec(template).get("containers") or ():
            return short_image(str(container.get("image") or ""))
    return ""


def short_image(reference: str) -> str:
    """Return an image reference without registry and path. The digest is shortened."""
    name, _, digest = reference.rpartition("/")[2].partition("@")
    return f"{name}@{digest.removeprefix('sha256:')[:7]}" if digest else name


def format_share(number: int, total: int) -> str:
    """Return part of a total in short form.

    >>> format_share(4, 1200)
    '4 / 1,200'
    """
    return f"{number:,} / {total:,}"
