"""The numbers of all sets in one strip: sets of each kind, groups, ranks, and accelerators wanted, ready and free. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.dashboard.markup import tag
from leaderworkerset.dashboard.pages import cells
from leaderworkerset.dashboard.pages.page import PageFacts
from leaderworkerset.dashboard.pages.templates import leader_and_worker
from leaderworkerset.dashboard.picture import ToldSet, ToldWhole
from leaderworkerset.dashboard.pieces import Piece
from leaderworkerset.decisions.nodefit import Demand, demand_of_pod
from leaderworkerset.diagnosis import nodeamounts
from leaderworkerset.views.groups import View
from leaderworkerset.views.health.verdict import Verdict

ACCELERATOR: Final = re.compile(r".+/(?:.*(?:gpu|tpu|npu|hpu|neuron|mig-).*)", re.IGNORECASE)
"""The names of extended resources that count as accelerators; network cards do not."""


class Accelerators(Struct, frozen=True):
    """The number of accelerators that the groups of all sets request, and that ready ranks have."""

    wanted: int = 0
    ready: int = 0


def piece(sets: Sequence[ToldSet], wholes: Sequence[ToldWhole], facts: PageFacts) -> Piece:
    """Return the strip; `sets` are all LeaderWorkerSets, also those of DisaggregatedSets."""
    views = [part.view for part in sets if part.told.verdict is not Verdict.COMPLETE]
    ranks = [rank for view in views for group in view.groups for rank in group.ranks]
    lacking = sum(view.more * _size(view) for view in views)
    tiles = {"LeaderWorkerSets": _healthy(sets)}
    if wholes:
        tiles["DisaggregatedSets"] = _healthy(wholes)
    tiles |= {
        "groups": _share(sum(view.ready for view in views), sum(view.desired for view in views), "ready"),
        "ranks": _share(sum(rank.is_ready for rank in ranks), len(ranks) + lacking, "ready"),
    }
    counts = accelerators(views)
    free = free_accelerators(facts)
    if counts.wanted or free:
        tiles["accelerators"] = _share(counts.ready, counts.wanted, "ready") + (
            "" if free is None else f", {free} free"
        )
    parts = {name: cells.part(f"totals/{name}", "dd", words) for name, words in tiles.items()}
    entries = [tag("div", tag("dt", name), part.html) for name, part in parts.items()]
    return Piece("totals-list", tag("dl", entries, id="totals-list", class_="totals"), parts=tuple(parts.values()))


def accelerators(views: Sequence[View]) -> Accelerators:
    """Return the accelerators of all desired groups, by the templates of their sets."""
    total = ready = 0
    for view in views:
        leader, worker = (count(demand_of_pod(meta.spec(pod))) for pod in leader_and_worker(view.object))
        total += view.desired * (leader + worker * (_size(view) - 1))
        has = [rank.index for group in view.groups for rank in group.ranks if rank.is_ready]
        ready += sum(worker if index else leader for index in has) if leader or worker else 0
    return Accelerators(total, ready)


def free_accelerators(facts: PageFacts) -> int | None:
    """Return the number of accelerators that no pod requests; None if nodes or pods were not read."""
    if not (facts.knows(NODES) and facts.knows(PODS)):
        return None
    pods = nodeamounts.by_node(facts.get(PODS))
    return sum(_free(node, pods) for node in facts.get(NODES))


def count(amounts: Demand) -> int:
    """Return the number of accelerators in a demand.

    >>> from kuberuntime.objects import quantity
    >>> count({"nvidia.com/gpu": quantity.parse("8"), "cpu": quantity.parse("2"), "rdma/hca": quantity.parse("1")})
    8
    """
    return sum(amount.ceil() for name, amount in amounts.items() if ACCELERATOR.fullmatch(name))


def _free(node: JSONObject, pods: Mapping[str, Sequence[JSONObject]]) -> int:
    if not meta.is_condition_true(node, "Ready") or meta.spec(node).get("unschedulable"):
        return 0
    has, used = nodeamounts.allocatable(node), nodeamounts.held(pods.get(meta.name(node), ()))
    return count({name: max(amount - used.get(name, ZERO), ZERO) for name, amount in has.items()})


def _size(view: View) -> int:
    return int((meta.spec(view.object).get("leaderWorkerTemplate") or {}).get("size", 1))


def _healthy(sets: Sequence[ToldSet] | Sequence[ToldWhole]) -> str:
    """Return the numbers of healthy and of complete sets; complete sets do not count as not healthy."""
    counts = Counter(part.told.verdict for part in sets)
    complete = counts[Verdict.COMPLETE]
    words = _share(counts[Verdict.HEALTHY], len(sets) - complete, "healthy")
    return f"{words}, {complete} complete" if complete else words


def _share(number: int, whole: int, word: str) -> str:
    return f"{number} of {whole} {word}"
