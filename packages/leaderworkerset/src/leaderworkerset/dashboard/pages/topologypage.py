"""Topology: racks and nodes, their used and free resources, and where a further group would fit. Pure.

The domains are those of the label by which sets are placed (exclusive topology), otherwise racks or zones if nodes have such
labels. Whether a group fits is the optimistic estimate of the built-in gang gate (`core/gang/fit.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from msgspec import Struct, field

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.api import labels
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pages import cells
from leaderworkerset.dashboard.pages.page import Page, PageFacts
from leaderworkerset.dashboard.pages.templates import group_pods
from leaderworkerset.dashboard.picture import Picture
from leaderworkerset.dashboard.pieces import Piece, Rendering, region
from leaderworkerset.decisions.nodefit import Amounts, Demand, Need, add_demand, count_needs, free_space
from leaderworkerset.diagnosis import nodeamounts
from leaderworkerset.diagnosis.causes.scheduling import amount_text
from leaderworkerset.steering import relocation
from leaderworkerset.views.groups import Rank, View
from leaderworkerset.views.wording import counted

ZONE: Final = "topology.kubernetes.io/zone"
USUAL_KEYS: Final = ("topology.kubernetes.io/rack", ZONE)
EVERYWHERE: Final = "the cluster"
MOST_GROUPS: Final = 10
"""The maximum of further groups of a set that are counted."""

MOST_ROWS: Final = 50
"""The maximum of different groups for which it is computed where they fit."""

MOST_DOMAINS: Final = 12
UNKNOWN: Final = "pods of all namespaces may not be listed, or are too many, so what is free is not known"


class Nodes(Struct, frozen=True):
    """The nodes by name, and the label of the domains (empty: there is none).

    `held` has the resources that pods of sets, and other pods, use of each node, by its name; None if pods were not read.
    """

    listed: Sequence[JSONObject]
    held: Mapping[str, Sequence[Demand]] | None
    key: str

    def domain(self, node: JSONObject) -> str:
        """Return the domain of a node."""
        return meta.labels(node).get(self.key, "") or EVERYWHERE

    def place(self, node: JSONObject) -> str:
        """Return the zone of a node, if it has one, and its domain."""
        zone = meta.labels(node).get(ZONE, "") if self.key != ZONE else ""
        return f"{zone} / {self.domain(node)}" if zone else self.domain(node)

    @property
    def domains(self) -> Mapping[str, Sequence[JSONObject]]:
        """Return the nodes of each domain, after those of the cluster."""
        domains: dict[str, list[JSONObject]] = {EVERYWHERE: list(self.listed)}
        for node in self.listed:
            if (name := self.domain(node)) != EVERYWHERE:
                domains.setdefault(name, []).append(node)
        return dict(
            sorted(domains.items(), key=lambda domain: (domain[0] != EVERYWHERE, domain[0]))[: MOST_DOMAINS + 1]
        )


class Space(Struct):
    """The nodes of each domain, the used resources of each node, and the nodes that groups of each namespace have."""

    domains: Mapping[str, Sequence[JSONObject]]
    used: Mapping[str, Amounts]
    taken: AbstractSet[tuple[str, str]]
    _known: dict[frozenset[Need], str] = field(default_factory=dict)

    def blocking(self, needs: frozenset[Need]) -> str:
        """Return the nodes that none of these pods fits, by what each lacks; sets with equal needs share the answer."""
        if needs not in self._known:
            self._known[needs] = relocation.blocking(self.domains[EVERYWHERE], self.used, needs)
        return self._known[needs]


def reads(_: Address) -> Sequence[Query]:
    """Return the lists: nodes, and all pods on them."""
    return [Query(NODES), Query(PODS)]


def frame(_: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    nodes = tag(
        "table",
        tag("caption", "Nodes: what is free of each resource; the bar is filled with what sets and others hold"),
        region("thead", "columns", rendering),
        region("tbody", "nodes", rendering),
        class_="plain",
    )
    fits = tag(
        "table",
        tag("caption", "How many further groups would fit, by requests, taints and exclusive topology"),
        region("thead", "domains", rendering),
        region("tbody", "fits", rendering),
        class_="plain",
    )
    shown_fits, shown_nodes = cells.scrolling(fits, "Where groups would fit"), cells.scrolling(nodes, "Nodes")
    return joined(tag("h1", "Topology"), region("p", "summary", rendering), shown_fits, shown_nodes)


def render(picture: Picture, _: Address, facts: PageFacts) -> Rendering:
    """Return the pieces."""
    nodes = _nodes(picture, facts)
    names = nodeamounts.names(nodes.listed)
    ranks = _ranks(picture)
    domains = nodes.domains
    return {
        "trouble": cells.trouble(picture),
        "summary": [Piece("summary-text", tag("span", _summary(nodes), id="summary-text"))],
        "columns": [cells.columns(["node", "domain", "status", *names, "ranks"])],
        "nodes": [_node_row(nodes, node, names, ranks.get(meta.name(node), ())) for node in nodes.listed],
        "domains": [cells.columns(["set", "a group", *domains, "what blocks"], "domain-names")],
        "fits": [] if nodes.held is None else _fits(picture, domains, nodes.held),
    }


def text(picture: Picture, _: Address, facts: PageFacts) -> Iterator[str]:
    """Yield the lines of the page as text."""
    nodes = _nodes(picture, facts)
    yield _summary(nodes)
    for node in nodes.listed:
        free = ", ".join(f"{name} {_share(nodes, node, name)}" for name in nodeamounts.names([node]))
        yield f"{meta.name(node)} ({nodes.domain(node)}): {nodeamounts.status(node)}; {free}"


def _nodes(picture: Picture, facts: PageFacts) -> Nodes:
    nodes = sorted(facts.get(NODES), key=meta.name)
    pods = nodeamounts.by_node(facts.get(PODS))
    resources = {name: _held(pods.get(name, ())) for name in map(meta.name, nodes)} if facts.knows(PODS) else None
    return Nodes(nodes, resources, domain_key(picture.views, nodes))


def domain_key(views: Sequence[View], nodes: Sequence[JSONObject]) -> str:
    """Return the label of the domains: of exclusive topology, otherwise of racks or zones; empty without any."""
    keys_of_sets = (meta.annotations(view.object).get(labels.EXCLUSIVE_TOPOLOGY, "") for view in views)
    keys = [*filter(None, keys_of_sets), *USUAL_KEYS]
    return next((key for key in keys if any(key in meta.labels(node) for node in nodes)), "")


def _held(pods: Sequence[JSONObject]) -> list[Demand]:
    parts = [[pod for pod in pods if (labels.NAME in meta.labels(pod)) is is_ours] for is_ours in (True, False)]
    return [nodeamounts.held(part) for part in parts]


def _summary(nodes: Nodes) -> str:
    if not nodes.listed:
        return "no nodes, or they may not be listed"
    ready = sum(meta.is_condition_true(node, "Ready") for node in nodes.listed)
    domains = {nodes.domain(node) for node in nodes.listed} - {EVERYWHERE}
    more = f", of which the first {MOST_DOMAINS} are shown" if len(domains) > MOST_DOMAINS else ""
    where = f", {counted(len(domains), 'domain')} by {nodes.key}{more}" if nodes.key else ""
    note = "" if nodes.held is not None else f"; {UNKNOWN}"
    return f"{counted(len(nodes.listed), 'node')}, {ready} ready{where}{note}"


def _ranks(picture: Picture) -> Mapping[str, Sequence[tuple[View, Rank]]]:
    ranks: dict[str, list[tuple[View, Rank]]] = {}
    for view in picture.views:
        for rank in (rank for group in view.groups for rank in group.ranks if rank.node):
            ranks.setdefault(rank.node, []).append((view, rank))
    return ranks


def _node_row(nodes: Nodes, node: JSONObject, names: Sequence[str], ranks: Sequence[tuple[View, Rank]]) -> Piece:
    name = meta.name(node)
    shares = [joined(_share(nodes, node, resource), " ", _bar(nodes, node, resource)) for resource in names]
    places = [f"{view.name} {rank.place}" for view, rank in ranks]
    marks = tag(
        "span",
        [cells.mark(rank, view.name) for view, rank in ranks],
        class_="strip",
        role="img",
        aria_label=", ".join(places),
    )
    return cells.row(
        f"n/{name}",
        name,
        nodes.place(node),
        nodeamounts.status(node),
        *shares,
        marks if ranks else "",
        find=f"{name} {' '.join(places)}",
    )


def _share(nodes: Nodes, node: JSONObject, name: str) -> str:
    total = None if nodes.held is None else add_demand(*nodes.held[meta.name(node)])
    words = nodeamounts.share(name, nodeamounts.allocatable(node).get(name, ZERO), total)
    return words if total is None else f"{words} free"


def _bar(nodes: Nodes, node: JSONObject, name: str) -> Safe | None:
    whole = nodeamounts.allocatable(node).get(name, ZERO)
    if nodes.held is None or not whole:
        return None
    amounts = [part.get(name, ZERO) for part in nodes.held[meta.name(node)]]
    ours, others = (min(100, round(100 * amount.nanos / whole.nanos)) for amount in amounts)
    words = f"{name}: sets {amount_text(amounts[0], name)}, others {amount_text(amounts[1], name)}"
    return tag(
        "svg",
        tag("title", words),
        tag("rect", class_="whole", width=100, height=8),
        tag("rect", class_="ours", width=ours, height=8),
        tag("rect", class_="others", x=ours, width=min(others, 100 - ours), height=8),
        viewBox="0 0 100 8",
        class_="share",
        role="img",
    )


def _fits(
    picture: Picture, domains: Mapping[str, Sequence[JSONObject]], resources: Mapping[str, Sequence[Demand]]
) -> list[Piece]:
    sums = {node: add_demand(*parts) for node, parts in resources.items()}
    used = {node: {name: amount.nanos for name, amount in amounts.items()} for node, amounts in sums.items()}
    nodes_of_groups = {
        (view.namespace, rank.node) for view in picture.views for group in view.groups for rank in group.ranks
    }
    space = Space(domains, used, nodes_of_groups)
    alike: dict[object, list[View]] = {}
    for view in picture.views:
        alike.setdefault(_shape(view), []).append(view)
    rows = [_fit_row(views, space) for views in islice(alike.values(), MOST_ROWS)]
    left_out = [view for views in islice(alike.values(), MOST_ROWS, None) for view in views]
    return (
        [*rows, cells.row("f-more", f"and {counted(len(left_out), 'set')} more", "not computed")] if left_out else rows
    )


def _shape(view: View) -> object:
    """Return what decides where groups of a set fit: sets with equal values share a row."""
    key = meta.annotations(view.object).get(labels.EXCLUSIVE_TOPOLOGY, "")
    return frozenset(count_needs(group_pods(view)).items()), key, view.namespace if key else ""


def _fit_row(views: Sequence[View], space: Space) -> Piece:
    view, *others = views
    group = group_pods(view)
    more = f" and {counted(len(others), 'set')} alike" if others else None
    names = ", ".join(other.name for other in others)
    link = joined(cells.link(PageKind.SET, view.key, view.name), tag("span", more, title=names) if more else None)
    key = meta.annotations(view.object).get(labels.EXCLUSIVE_TOPOLOGY, "")
    occupied = {node for namespace, node in space.taken if namespace == view.namespace}
    counts = [
        _fitting_alone(group, relocation.untaken(key, nodes, occupied), space.used)
        if key
        else _fitting(group, nodes, space.used)
        for nodes in space.domains.values()
    ]
    words = [f"{MOST_GROUPS} or more" if number == MOST_GROUPS else str(number) for number in counts]
    blocking = "" if any(counts) else space.blocking(frozenset(count_needs(group)))
    return cells.row(
        f"f/{view.namespace}/{view.name}",
        link,
        counted(len(group), "pod"),
        *words,
        blocking,
        find=f"{view.name} {names}",
    )


def _fitting(group: Sequence[JSONObject], nodes: Sequence[JSONObject], used: Mapping[str, Amounts]) -> int:
    space, needs = free_space(nodes, used), count_needs(group)
    return next((number for number in range(MOST_GROUPS) if not space.place(needs)), MOST_GROUPS)


def _fitting_alone(
    group: Sequence[JSONObject], parts: Sequence[Sequence[JSONObject]], used: Mapping[str, Amounts]
) -> int:
    """Return the number of groups that fit if each needs a domain of its own."""
    needs = count_needs(group)
    return min(sum(free_space(nodes, used).place(needs) for nodes in parts), MOST_GROUPS)


PAGE: Final = Page(title=lambda _: "Topology", frame=frame, render=render, text=text, reads=reads)
