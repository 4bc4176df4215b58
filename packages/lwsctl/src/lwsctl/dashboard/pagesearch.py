"""Searches sets, groups, ranks, nodes and causes that contain all words of a query. Pure.

The input is the snapshot and the text. The output is results by kind, at most `MOST` of each, and the number of other
results. The search also finds ranks by pod, node and state, and sets by cause.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.diagnosis.catalogue import BY_CODE
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.groups import Group, Rank
from lwsctl.model.health import WORDS
from lwsctl.model.leaderworkerset import View

MOST: Final = 6
"""The maximum number of results of each kind."""

LONGEST: Final = 200
"""The maximum number of characters of a query."""

HINT: Final = (
    "Enter the name of a set, a group (web/3), a rank (web/3/1), a pod, a node, a state, or a cause (LWS-E036)."
)


class SearchResult(Struct, frozen=True):
    """A search result with its title, a detail, the address of its page, and additional words that match."""

    title: str
    detail: str
    href: str
    words: str = ""

    def sort_key(self, words: Sequence[str]) -> int | None:
        """Return a sort key that puts the best results first, or None if a word is missing."""
        text = f"{self.title} {self.detail} {self.words}".lower()
        if not all(word in text for word in words):
            return None
        title = self.title.lower()
        return 0 if title in words else 1 if any(map(title.startswith, words)) else 2


class ResultGroup(Struct, frozen=True):
    """The best results of a kind, and the number of other results."""

    kind: str
    best: Sequence[SearchResult]
    other_count: int = 0


def search(snapshot: Snapshot, text: str) -> list[ResultGroup]:
    """Return the results by kind, or no results if the query is empty."""
    words = text[:LONGEST].lower().split()
    if not words:
        return []
    kinds = {
        "Sets": _set_results(snapshot),
        "Groups": _group_results(snapshot),
        "Ranks": _rank_results(snapshot),
        "Nodes": _node_results(snapshot),
        "Causes": _cause_results(),
    }
    return list(filter(None, (_best_results(kind, hits, words) for kind, hits in kinds.items())))


def results_html(snapshot: Snapshot, text: str) -> Safe:
    """Return the results as list items. If there are no results, return the kinds of objects that can be searched."""
    kinds = search(snapshot, text)
    if not kinds:
        words = f"No results for {text[:LONGEST]!r}. " if text.strip() else ""
        return tag("li", words, HINT, class_="hint")
    return join(*(_items(hits) for hits in kinds))


def _items(hits: ResultGroup) -> Safe:
    items = [tag("li", tag("a", hit.title, href=hit.href), " ", tag("small", hit.detail)) for hit in hits.best]
    more = (
        tag("li", f"and {hits.other_count} more; enter a longer search term", class_="hint")
        if hits.other_count
        else None
    )
    return join(tag("li", hits.kind, class_="kind"), items, more)


def _best_results(kind: str, hits: Iterator[SearchResult], words: Sequence[str]) -> ResultGroup | None:
    ranked = [(rank, hit) for hit in hits if (rank := hit.sort_key(words)) is not None]
    best = [hit for _, hit in sorted(ranked, key=lambda pair: (pair[0], len(pair[1].title), pair[1].title))]
    return ResultGroup(kind, best[:MOST], max(len(best) - MOST, 0)) if best else None


def _set_results(snapshot: Snapshot) -> Iterator[SearchResult]:
    for item in snapshot.ordered:
        yield _set_result(item, PageKind.WHOLE if isinstance(item, SetView) else PageKind.SET)
        if isinstance(item, SetView):
            yield from (_set_result(part, PageKind.SET) for part in item.parts)


def _set_result(item: Shown, kind: PageKind) -> SearchResult:
    diagnosis = item.diagnosis
    detail = " · ".join(filter(None, [item.namespace, WORDS[diagnosis.verdict], diagnosis.code]))
    return SearchResult(item.name, detail, Address(kind=kind, key=item.key).path(), diagnosis.sentence)


def _group_results(snapshot: Snapshot) -> Iterator[SearchResult]:
    for view, group in _all_groups(snapshot):
        title = f"{view.name}/{group.name}"
        yield SearchResult(
            title, f"{view.namespace} · group · {group.readiness.value}", _display_path(view, f"{group.name}/0")
        )


def _rank_results(snapshot: Snapshot) -> Iterator[SearchResult]:
    for view, group in _all_groups(snapshot):
        yield from (_rank_result(view, rank) for rank in group.ranks)


def _rank_result(view: View, rank: Rank) -> SearchResult:
    detail = " · ".join(filter(None, [view.namespace, rank.state, rank.node]))
    return SearchResult(
        f"{view.name}/{rank.place}", detail, _display_path(view, rank.place), f"{rank.pod} {rank.readiness.value}"
    )


def _node_results(snapshot: Snapshot) -> Iterator[SearchResult]:
    """Yield the nodes on which ranks run. The topology page contains all other nodes."""
    ranks: dict[str, int] = {}
    for _, group in _all_groups(snapshot):
        for rank in group.ranks:
            ranks[rank.node] = ranks.get(rank.node, 0) + 1
    for name, count in ranks.items():
        if name:
            query = urlencode({"find": name})
            yield SearchResult(name, f"node · ranks: {count}", f"{PageKind.TOPOLOGY.value}?{query}")


def _cause_results() -> Iterator[SearchResult]:
    for cause in BY_CODE.values():
        href = Address(kind=PageKind.CAUSE, episode=cause.code).path()
        yield SearchResult(cause.code, cause.title, href)


def _all_groups(snapshot: Snapshot) -> Iterator[tuple[View, Group]]:
    return ((view, group) for view in snapshot.views for group in view.groups)


def _display_path(view: View, place: str) -> str:
    return f"{Address(kind=PageKind.SET, key=view.key).path()}?rank={quote(place)}"
