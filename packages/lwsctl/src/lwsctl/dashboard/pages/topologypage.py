"""Shows racks, their nodes, their accelerators by set, and space for additional groups. Pure.

The domains have the label for exclusive topology, or labels for racks or zones. Whether a group fits is an optimistic
estimate, as in the built-in gang gate (`core/gang/fit.py`). Nodes without accelerators show their CPUs instead.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.quantity import ZERO
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.api import labels
from leaderworkerset.decisions.nodefit import Amounts, count_needs, demand_of_pod, free_space
from lwsctl.dashboard.address import Address, PageForm
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Content, Safe, join, tag
from lwsctl.dashboard.pages import cells, totals
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.pages.templates import group_pods
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.diagnosis import nodeamounts
from lwsctl.model.leaderworkerset import View
from lwsctl.model.nodestate import Node, nodes_of
from lwsctl.rollout import relocation
from lwsctl.views.wording import format_count

ZONE: Final = "topology.kubernetes.io/zone"
USUAL_KEYS: Final = ("topology.kubernetes.io/rack", ZONE)
EVERYWHERE: Final = "All nodes"
ELSEWHERE: Final = "Other nodes"
CPU: Final = "cpu"
SQUARE: Final = 14
"""The width of the square of an accelerator, in pixels."""

COLORS: Final = 8
"""The number of colors for sets in the style. If there are more sets, colors are reused."""

MOST_GROUPS: Final = 10
"""The maximum number of additional groups that are counted for a set."""

UNKNOWN: Final = "Free amounts are unknown, because there are too many pods, or they cannot be listed."


class NodeDevices(Struct, frozen=True):
    """The accelerators of a node, or its CPUs without accelerators, with the total and the usage by owner.

    The owner is the key of a set, or None for other pods.
    """

    total: int
    users: Mapping[ObjectKey | None, int]
    are_cpus: bool = False

    @property
    def free(self) -> int:
        """Return the number of devices that are not requested. Failed devices may be requested."""
        return max(self.total - sum(self.users.values()), 0)

    @property
    def description(self) -> str:
        """Return the number of free devices.

        >>> NodeDevices(8, {None: 6}).description
        '2 of 8 GPUs free'
        """
        return f"{self.free:,} of {self.total:,} {'CPUs' if self.are_cpus else 'GPUs'} free"


class Nodes(Struct, frozen=True):
    """The nodes, whether their pods are known, and the topology label or an empty string.

    `domains` contains the nodes by domain name, and `squares` contains the accelerators by node name.
    """

    listed: Sequence[Node]
    has_pods: bool
    key: str
    domains: Mapping[str, Sequence[Node]]
    squares: Mapping[str, NodeDevices]

    def free(self, nodes: Iterable[Node]) -> dict[str, str]:
        """Return the free accelerators of nodes, or the free CPUs if no node has accelerators."""
        every = [self.squares[node.name] for node in nodes]
        own = [squares for squares in every if not squares.are_cpus] or every
        name = "GPUs" if own and not own[0].are_cpus else "CPUs"
        share = totals.format_share(sum(squares.free for squares in own), sum(squares.total for squares in own))
        return {f"{name} free": share}


class FitCounts(Struct, frozen=True):
    """The number of additional groups of a set that fit in each domain and in total, and the blocking nodes."""

    domains: Mapping[str, int]
    total: int
    blocking: str


def reads(_: Address) -> Sequence[Query]:
    """Return the lists of nodes and of all pods on them."""
    return [Query(NODES), Query(PODS)]


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    title, summary = tag("h1", "Topology", class_="heard"), region("div", "summary", rendering)
    if address.format is PageForm.TABLE:
        caption = "Free amount of each resource"
        parts = [region("thead", "columns", rendering), region("tbody", "nodes", rendering)]
        table = tag("table", tag("caption", caption), parts, class_="plain")
        return join(title, summary, cells.scroll_box(table, caption))
    sets = region("select", "sets", rendering, data_go="topology?set=")
    choice = tag("label", "Where does another group fit? ", sets)
    tools = tag("div", region("span", "fit", rendering), choice, class_="tools")
    return join(
        title,
        tag("div", summary, tools, class_="overview"),
        region("p", "legend", rendering, class_="legend"),
        region("div", "racks", rendering, class_="racks"),
    )


def render(snapshot: Snapshot, address: Address, facts: PageFacts) -> Rendering:
    """Return the fragments."""
    nodes = _read_nodes(snapshot, facts)
    rendering: dict[str, list[Fragment]] = {
        "trouble": cells.outdated_notes(snapshot),
        "summary": [_totals_fragment(nodes)],
    }
    if address.format is PageForm.TABLE:
        names = nodeamounts.resource_names(nodes.listed)
        rows = [_node_row(nodes, node, names) for node in nodes.listed]
        return rendering | {"columns": [cells.header_row(["Node", "Domain", "Status", *names])], "nodes": rows}
    colors = {view.key: at % COLORS + 1 for at, view in enumerate(sorted(snapshot.views, key=lambda view: view.key))}
    view = next((view for view in snapshot.views if str(view.key) == address.other), None)
    fitting = None if view is None or not nodes.has_pods else _count_fitting_groups(snapshot, view, nodes)
    if view is not None:
        colors = {view.key: 0}
    return rendering | {
        "sets": list(_set_options(snapshot, address)),
        "fit": [_fit_fragment(fitting)] if fitting is not None else [],
        "legend": list(_color_legend(colors, nodes, is_chosen=view is not None)),
        "racks": [_domain_fragment(nodes, name, colors, fitting) for name in nodes.domains],
    }


def text(snapshot: Snapshot, _: Address, facts: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    nodes = _read_nodes(snapshot, facts)
    yield "; ".join(f"{name}: {words}" for name, words in _text_totals(nodes).items())
    for node in nodes.listed:
        free = ", ".join(f"{name} {_free_share(node, name)}" for name in nodeamounts.resource_names([node]))
        yield f"{node.name} ({_domain_name(node, nodes.key)}): {node.status}; {free}"


def _read_nodes(snapshot: Snapshot, facts: PageFacts) -> Nodes:
    objects, has_pods = sorted(facts.get(NODES), key=meta.name), facts.is_read_kind(PODS)
    nodes = nodes_of(objects, facts.get(PODS) if has_pods else None)
    key = domain_key(snapshot.views, objects)
    domains: dict[str, list[Node]] = {}
    for node in nodes:
        domains.setdefault(_domain_name(node, key), []).append(node)
    in_order = dict(sorted(domains.items(), key=lambda item: (item[0] == ELSEWHERE, item[0])))
    return Nodes(nodes, has_pods, key, in_order, {node.name: _node_devices(node) for node in nodes})


def _domain_name(node: Node, key: str) -> str:
    """Return the domain of a node. If the node has a zone, the zone is the prefix."""
    labels_of_node = meta.labels(node.object)
    name = labels_of_node.get(key, "") or (ELSEWHERE if key else EVERYWHERE)
    zone = labels_of_node.get(ZONE, "") if key != ZONE else ""
    return f"{zone} / {name}" if zone else name


def domain_key(views: Sequence[View], nodes: Sequence[JSONObject]) -> str:
    """Return the label for exclusive topology, racks or zones, or an empty string if no label applies."""
    keys_of_sets = (meta.annotations(view.object).get(labels.EXCLUSIVE_TOPOLOGY, "") for view in views)
    keys = [*filter(None, keys_of_sets), *USUAL_KEYS]
    return next((key for key in keys if any(key in meta.labels(node) for node in nodes)), "")


def _text_totals(nodes: Nodes) -> Mapping[str, str]:
    """Return the totals in text format."""
    ready = sum(node.is_ready for node in nodes.listed)
    facts = {"Nodes": f"{len(nodes.listed):,}, {ready:,} ready"}
    facts |= {"Domains": f"{len(nodes.domains)} by {nodes.key}"} if nodes.key else {}
    return facts | nodes.free(nodes.listed) if nodes.has_pods else facts


def _totals_fragment(nodes: Nodes) -> Fragment:
    """Return the totals, and a note about unknown amounts."""
    note = "" if nodes.has_pods else UNKNOWN if nodes.listed else "There are no nodes, or they cannot be listed."
    entries = [tag("div", tag("dt", name), tag("dd", words)) for name, words in _text_totals(nodes).items()]
    facts, hint = tag("dl", entries, class_="facts"), tag("p", note, class_="hint") if note else None
    return Fragment("summary-text", tag("div", facts if nodes.listed else None, hint, id="summary-text"))


def _node_devices(node: Node) -> NodeDevices:
    """Return the accelerators of a node and their users. If the node has no accelerators, return its CPUs."""
    number = totals.accelerator_count(node.allocatable)
    are_cpus = not number
    amounts: dict[ObjectKey | None, int] = {}
    for pod in node.pods or ():
        requests = demand_of_pod(meta.spec(pod))
        amount = requests.get(CPU, ZERO).ceil() if are_cpus else totals.accelerator_count(requests)
        name = meta.labels(pod).get(labels.NAME)
        owner = ObjectKey(meta.namespace(pod), name) if name else None
        if amount:
            amounts[owner] = amounts.get(owner, 0) + amount
    return NodeDevices(number or node.allocatable.get(CPU, ZERO).ceil(), amounts, are_cpus)


def _set_options(snapshot: Snapshot, address: Address) -> Iterator[Fragment]:
    """Yield the sets that can be selected."""
    yield cells.update_part("option/", "option", "Choose a set", value="")
    for view in sorted(snapshot.views, key=lambda view: view.key):
        key = str(view.key)
        yield cells.update_part(f"option/{key}", "option", key, value=key, selected=key == address.other)


def _color_legend(colors: Mapping[ObjectKey, int], nodes: Nodes, *, is_chosen: bool) -> Iterator[Fragment]:
    """Yield the color of each set if there are enough colors."""
    if not nodes.has_pods:
        return
    if len(colors) > COLORS:
        yield cells.update_part(
            "legend/colors", "span", "Each color is a set. Point at a node to show its sets, or select a set."
        )
    entries = {str(key): f"s{color}" for key, color in colors.items()} if len(colors) <= COLORS else {}
    entries |= {"other sets": "dim"} if is_chosen else {}
    for words, color in (entries | {"other pods": "others", "free": "free"}).items():
        yield cells.update_part(f"legend/{words}", "span", tag("i", class_=color), f" {words}")


def _domain_fragment(nodes: Nodes, name: str, colors: Mapping[ObjectKey, int], fitting: FitCounts | None) -> Fragment:
    """Return a domain with its nodes, and the number of additional groups of the selected set that fit in it."""
    own, key = nodes.domains[name], f"rack/{name}"
    parts = tuple(_node_fragment(nodes, node, colors) for node in own)
    amounts = nodes.free(own).items() if nodes.has_pods else ()
    free = next((f"{words} {kind}" for kind, words in amounts), format_count(len(own), "node"))
    badge = (
        None
        if fitting is None
        else tag(
            "b",
            f"Fits {fitting.domains[name]}",
            title=_fit_text(fitting.domains[name]),
            class_="ready" if fitting.domains[name] else "missing",
        )
    )
    title = tag("h2", name, " ", tag("small", free), badge)
    return Fragment(
        key, tag("section", title, tag("ul", [part.html for part in parts]), id=key, class_="rack"), parts=parts
    )


def _node_fragment(nodes: Nodes, node: Node, colors: Mapping[ObjectKey, int]) -> Fragment:
    name, squares, status = node.name, nodes.squares[node.name], node.status
    owners = sorted(squares.users.items(), key=lambda item: (item[0] is None, item[0] or ("", "")))
    words = [f"{owner or 'other pods'} {amount}" for owner, amount in owners]
    title = "; ".join([f"{name}: {squares.description if nodes.has_pods else status}", *words])
    warning = None if status == "Ready" else tag("small", f"⚠ {status}", class_="problem")
    content: list[Content] = [tag("span", name, " ", warning), _node_squares(squares, owners, colors)]
    return cells.update_part(f"n/{name}", "li", content, title=title, data_find=f"{name} {' '.join(words)}")


def _node_squares(
    squares: NodeDevices, owners: Sequence[tuple[ObjectKey | None, int]], colors: Mapping[ObjectKey, int]
) -> Safe | None:
    """Return a square for each accelerator in the color of its set. CPUs are shown as a single bar."""
    if not squares.total:
        return None
    rects, at = [], 0
    for owner, amount in owners:
        width = min(amount, squares.total - at)
        color = "others" if owner is None else f"s{colors[owner]}" if owner in colors else "dim"
        rects += [tag("rect", class_=color, x=at, width=width, height=1)] if width > 0 else []
        at += width
    width = SQUARE * (8 if squares.are_cpus else squares.total)
    box = f"0 0 {squares.total} 1"
    kind = "whole" if squares.are_cpus else "squares"
    return tag(
        "svg",
        rects,
        viewBox=box,
        width=width,
        height=SQUARE - 3,
        preserveAspectRatio="none",
        class_=kind,
        aria_hidden="true",
    )


def _node_row(nodes: Nodes, node: Node, names: Sequence[str]) -> Fragment:
    shares = [_free_share(node, resource) for resource in names]
    return cells.plain_row(
        f"n/{node.name}", node.name, _domain_name(node, nodes.key), node.status, *shares, find=node.name
    )


def _free_share(node: Node, name: str) -> str:
    return nodeamounts.format_share(node, name) + ("" if node.pods is None else " free")


def _count_fitting_groups(snapshot: Snapshot, view: View, nodes: Nodes) -> FitCounts:
    """Return where additional groups of a set fit, based on requests, taints and exclusive topology."""
    used = relocation.node_usage(pod for node in nodes.listed for pod in node.pods or ())
    group, key = group_pods(view), meta.annotations(view.object).get(labels.EXCLUSIVE_TOPOLOGY, "")
    own = (other for other in snapshot.views if other.namespace == view.namespace)
    occupied = {rank.node for other in own for part in other.groups for rank in part.ranks}

    def number(listed: Sequence[Node]) -> int:
        objects = [node.object for node in listed]
        if key:
            return _fitting_exclusive_groups(group, relocation.free_domains(key, objects, occupied), used)
        return _fitting_groups(group, objects, used)

    domains = {name: number(listed) for name, listed in nodes.domains.items()}
    total = number(nodes.listed)
    needs = frozenset(count_needs(group))
    return FitCounts(
        domains,
        total,
        "" if total else relocation.insufficient_resources([node.object for node in nodes.listed], used, needs),
    )


def _fit_fragment(fitting: FitCounts) -> Fragment:
    none = f"No other group fits: {fitting.blocking}"
    words = f"{_fit_text(fitting.total)} in all" if fitting.total else none
    return cells.update_part("fit-words", "span", words, class_="ready" if fitting.total else "problem")


def _fit_text(number: int) -> str:
    """Return the number of groups that fit.

    >>> _fit_text(1), _fit_text(MOST_GROUPS), _fit_text(0)
    ('1 group fits', '10 or more groups fit', 'No group fits')
    """
    if number >= MOST_GROUPS:
        return f"{MOST_GROUPS} or more groups fit"
    return f"{format_count(number, 'group')} {'fits' if number == 1 else 'fit'}" if number else "No group fits"


def _fitting_groups(group: Sequence[JSONObject], nodes: Sequence[JSONObject], used: Mapping[str, Amounts]) -> int:
    space, needs = free_space(nodes, used), count_needs(group)
    return next((number for number in range(MOST_GROUPS) if not space.place(needs)), MOST_GROUPS)


def _fitting_exclusive_groups(
    group: Sequence[JSONObject], parts: Sequence[Sequence[JSONObject]], used: Mapping[str, Amounts]
) -> int:
    """Return the number of groups that fit if each group requires a separate domain."""
    needs = count_needs(group)
    return min(sum(free_space(nodes, used).place(needs) for nodes in parts), MOST_GROUPS)


PAGE: Final = Page(title=lambda _: "Topology", frame=frame, render=render, text=text, reads=reads)
