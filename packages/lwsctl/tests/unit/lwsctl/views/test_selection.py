"""Tests the selection of a group or rank, and a view that is limited to it."""

import pytest

from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views.selection import Selection, narrow

RANKS = tuple(
    tuple(Rank(group=group, index=rank, pod=f"web-{group}-{rank}", state="Running") for rank in (0, 1))
    for group in (0, 1)
)
VIEW = View(
    name="web",
    namespace="default",
    ready=2,
    desired=2,
    up_to_date=2,
    created="",
    groups=tuple(Group(index=index, ranks=ranks, revision="key") for index, ranks in enumerate(RANKS)),
    object={},
)


@pytest.mark.parametrize(
    ("chosen", "places"),
    [
        (Selection("web"), ["0/0", "0/1", "1/0", "1/1"]),
        (Selection("web", 1), ["1/0", "1/1"]),
        (Selection("web", 1, 1), ["1/1"]),
        (Selection("web", 7), []),
    ],
)
def test_view_is_limited_to_the_selection(chosen: Selection, places: list[str]) -> None:
    cut = narrow(VIEW, chosen)

    assert [rank.place for group in cut.groups for rank in group.ranks] == places
    assert all(group.revision == "key" for group in cut.groups)


def test_labels_select_the_selection() -> None:
    assert Selection("web", 0).label_selector() == (
        "leaderworkerset.sigs.k8s.io/name=web,leaderworkerset.sigs.k8s.io/group-index=0"
    )
