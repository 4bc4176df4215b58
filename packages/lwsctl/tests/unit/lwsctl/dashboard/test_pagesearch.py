"""Tests the search for workloads, groups, ranks, nodes and causes."""

import pytest
from tests import builders
from tests.unit.lwsctl.dashboard.test_pages import KEY, STUCK, snapshot, web

from lwsctl.dashboard import pagesearch
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.leaderworkerset import view


def found(shown: Snapshot, text: str) -> dict[str, list[str]]:
    """Return the titles of the results by kind."""
    return {hits.kind: [hit.title for hit in hits.best] for hits in pagesearch.search(shown, text)}


@pytest.mark.parametrize(
    ("text", "kind", "title"),
    [
        ("web", "Sets", "web"),
        ("WEB/1", "Groups", "web/1"),
        ("web/1/1", "Ranks", "web/1/1"),
        ("web-1-1", "Ranks", "web/1/1"),
        ("default enough", "Sets", "web"),
        ("lws-e036", "Causes", "LWS-E036"),
    ],
)
def test_search_finds_each_kind(text: str, kind: str, title: str) -> None:
    shown = snapshot(web(ready=False), web(metadata={"name": "other"}), diagnoses={KEY: STUCK})
    assert found(shown, text)[kind][0] == title


def test_search_counts_hits_that_are_not_listed() -> None:
    (ranks,) = [hits for hits in pagesearch.search(snapshot(web(groups=5, size=4)), "web/") if hits.kind == "Ranks"]
    assert (len(ranks.best), ranks.other_count) == (pagesearch.MOST, 20 - pagesearch.MOST)


def test_search_links_a_node_to_the_filtered_topology() -> None:
    lws = builders.leaderworkerset_object(replicas=1, size=1)
    shown = snapshot(view(lws, [builders.leader_pod(lws, 0) | {"spec": {"nodeName": "rack-7"}}]))
    (hits,) = [hits for hits in pagesearch.search(shown, "rack-7") if hits.kind == "Nodes"]
    assert [hit.href for hit in hits.best] == ["topology?find=rack-7"]


def test_search_proposes_what_to_type_when_nothing_matches() -> None:
    html = pagesearch.results_html(snapshot(web()), "<nobody>")
    assert "No results for &#x27;&lt;nobody&gt;&#x27;" in html
    assert "LWS-E036" in pagesearch.results_html(snapshot(), " ")
