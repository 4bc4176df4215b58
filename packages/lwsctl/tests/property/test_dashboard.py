"""Tests that the cost of a page change does not depend on unchanged parts."""

import copy
from collections.abc import Callable
from functools import partial

import msgspec
from testkit import work
from tests import builders

from kuberuntime.objects.meta import JSONObject, ObjectKey
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Rendering, difference
from lwsctl.dashboard.pages import nowpage, setpage
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.groups import Rank, rank_of
from lwsctl.model.leaderworkerset import View, view
from lwsctl.observation.conditionwatch import KnownRanks

SIZE = 8
ADDRESS = Address(kind=PageKind.SET, key=ObjectKey("default", "web"))


class LargeSet:
    """A LeaderWorkerSet with ready groups of 8 pods. `change` makes one rank not ready."""

    def __init__(self, groups: int) -> None:
        self.lws = builders.leaderworkerset_object(replicas=groups, size=SIZE)
        leaders = [builders.leader_pod(self.lws, index, ready=True) for index in range(groups)]
        workers = [builders.worker_pod(leader, rank, ready=True) for leader in leaders for rank in range(1, SIZE)]
        self.pods = [*leaders, *workers]
        for number, pod in enumerate(self.pods):
            pod["metadata"]["uid"] = f"uid-{number}"

    def change(self) -> None:
        """Replace a pod in the same way as an informer."""
        pod: JSONObject = copy.deepcopy(self.pods[-1])
        pod["status"] = {"phase": "Pending"}
        self.pods[-1] = pod

    def view(self, describe: Callable[[JSONObject], Rank]) -> View:
        """Return the view."""
        return view(self.lws, self.pods, describe)


def snapshot(found: View) -> Snapshot:
    return Snapshot(namespace="", now=builders.NOW, views=[found])


def changed(groups: int) -> tuple[Snapshot, Rendering]:
    """Return the snapshot after a change, and the page before the change."""
    large, ranks = LargeSet(groups), KnownRanks()
    before = setpage.render(snapshot(large.view(ranks.build_reader())), ADDRESS, PageFacts())
    large.change()
    return snapshot(large.view(ranks.build_reader())), before


def test_a_view_reads_only_the_pods_that_changed() -> None:
    def cost(groups: int) -> tuple[int, int]:
        large, ranks = LargeSet(groups), KnownRanks()
        first = work.lines(lambda: large.view(ranks.build_reader()))
        large.change()
        return first, work.lines(lambda: large.view(ranks.build_reader()))

    (first, again), (more, much_later) = cost(20), cost(40)
    assert 4 * (much_later - again) < more - first, "most of the work for the other groups is saved"


def test_a_page_renders_only_the_groups_that_changed() -> None:
    def cost(groups: int) -> tuple[int, int]:
        found, before = changed(groups)
        known = partial(setpage.render, found, ADDRESS, PageFacts(before=before))
        return work.lines(partial(setpage.render, found, ADDRESS, PageFacts())), work.lines(known)

    (first, again), (more, much_later) = cost(20), cost(40)
    assert 6 * (much_later - again) < more - first, "most of the work for the other groups is saved"


def test_a_page_that_is_rendered_again_is_the_same() -> None:
    found, before = changed(20)
    again = setpage.render(found, ADDRESS, PageFacts(before=before))
    fresh = setpage.render(found, ADDRESS, PageFacts())
    assert {region: [piece.html for piece in pieces] for region, pieces in again.items()} == {
        region: [piece.html for piece in pieces] for region, pieces in fresh.items()
    }
    kept = sum(one is other for one, other in zip(again["rows"], before["rows"], strict=True))
    assert kept == 19


def test_a_further_group_of_eight_adds_few_bytes_to_the_page() -> None:
    def size(groups: int) -> int:
        rows = setpage.render(snapshot(LargeSet(groups).view(rank_of)), ADDRESS, PageFacts())["rows"]
        return len("".join(piece.html for piece in rows).encode())

    assert size(40) - size(20) <= 20 * 420


def test_the_bytes_of_a_change_do_not_grow_with_the_set() -> None:
    def size(groups: int, address: Address) -> int:
        large, ranks = LargeSet(groups), KnownRanks()
        render = setpage.render if address.kind is PageKind.SET else nowpage.render
        before = render(snapshot(large.view(ranks.build_reader())), address, PageFacts())
        large.change()
        after = render(snapshot(large.view(ranks.build_reader())), address, PageFacts(before=before))
        return len(msgspec.json.encode(difference(before, after)))

    for address in (ADDRESS, Address(kind=PageKind.NOW)):
        assert size(400, address) < size(40, address) + 50
        assert size(400, address) < 2000
