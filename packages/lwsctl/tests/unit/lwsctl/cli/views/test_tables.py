"""Tests the tables and the tree for many groups. Problems come first, and healthy groups share one line."""

import timeit
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from leaderworkerset.api import labels
from lwsctl.cli.commands.inspect import tree
from lwsctl.cli.views.tables import MOST_FOLDS, TableOptions, tables
from lwsctl.model import leaderworkerset as sets
from lwsctl.model.disaggregatedset import set_view
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
CREATED = "2026-01-01T00:00:00Z"


def group(index: int, size: int = 2, *, why: str = "") -> Group:
    ranks = tuple(
        Rank(
            group=index,
            index=at,
            pod=f"web-{index}-{at}" if at else f"web-{index}",
            state="Error" if at and why else "Running",
            why=why if at else "",
            is_ready=not (at and why),
            node=f"node-{at}",
            created=CREATED,
        )
        for at in range(size)
    )
    return Group(index=index, ranks=ranks, revision="abc")


def view(*groups: Group, name: str = "web") -> View:
    obj = {"metadata": {"name": name, "ownerReferences": [{"controller": True, "uid": "of-split"}]}}
    return View(
        name=name,
        namespace="prod",
        ready=sum(one.is_ready for one in groups),
        desired=len(groups),
        up_to_date=len(groups),
        created=CREATED,
        groups=groups,
        object=obj,
    )


MANY = view(*(group(index, why="boom" if index == 7 else "") for index in range(200)))


def test_many_groups_have_a_row_for_each_kind() -> None:
    assert tables([MANY], NOW, TableOptions()) == [
        "NAME   READY   DESIRED   UP-TO-DATE   AGE",
        "web    199     200       200          60s",
        "",
        "GROUPS      READY     STATE     RESTARTS   AGE   REVISION   WHY",
        "7           1/2       1 Error   0          60s   abc        web-7-1: boom",
        "0-6,8-199   398/398   ready     0          60s   abc",
    ]


def fleet(count: int, broken: int) -> list[View]:
    """Return `count` LeaderWorkerSets with two groups. Only the LeaderWorkerSet with this number is not ready."""
    ready = {
        "metadata": {"generation": 1},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]},
    }
    made = [view(group(0, why="boom" if at == broken else ""), group(1), name=f"w{at:03}") for at in range(count)]
    return [replace(one, object=one.object | ready) for one in made]


def test_many_sets_have_a_row_each_and_unready_come_first() -> None:
    lines = tables(fleet(300, 7), NOW, TableOptions())
    assert lines[:3] == [
        "NAME   READY   DESIRED   UP-TO-DATE   AGE   WHY",
        "w007   1       2         2            60s   web-0-1 is Error: boom",
        "w000   2       2         2            60s",
    ]
    assert len(lines) == 1 + 300
    assert tables(fleet(300, 300), NOW, TableOptions(shows_all_namespaces=True))[0] == (
        "NAMESPACE   NAME   READY   DESIRED   UP-TO-DATE   AGE"
    )


def test_rolling_set_shows_its_progress() -> None:
    views = fleet(11, 11)
    rolling = views[4].object | {"status": {"conditions": [{"type": "UpdateInProgress", "status": "True"}]}}
    views[4] = replace(views[4], object=rolling, up_to_date=1)
    assert tables(views, NOW, TableOptions())[1] == "w004   2       2         1            60s   updated 1 of 2 groups"


@pytest.mark.parametrize(
    ("count", "form"), [(10, TableOptions()), (11, TableOptions(is_chosen=True)), (11, TableOptions(is_wide=True))]
)
def test_few_or_named_sets_show_their_groups(count: int, form: TableOptions) -> None:
    assert "w009:" in tables(fleet(count, 3), NOW, form)


def test_every_rank_is_shown_when_requested() -> None:
    assert len(tables([MANY], NOW, TableOptions(shows_every_rank=True))) == 400 + 4
    assert len(tables([MANY], NOW, TableOptions(is_wide=True))) == 400 + 4


def test_list_of_many_problems_is_truncated() -> None:
    different = view(*(group(index, why=f"boom {index}") for index in range(MOST_FOLDS + 5)))
    lines = tables([different], NOW, TableOptions())
    assert len(lines) == MOST_FOLDS + 5
    assert lines[-1] == "… and 5 more groups not ready (use --not-ready to show their ranks)"


def tree_lines(*objects: Any, columns: int | None = None, **options: Any) -> list[str]:
    return tree.tree_lines(tree.branches(*objects, **options), columns)


def test_tree_shows_few_groups_by_rank() -> None:
    assert tree_lines([view(group(0), group(1, why="boom"))], [], NOW) == [
        "NAME              READY   STATE     NODE     REVISION   RESTARTS   AGE   WHY",
        "web               1/2                                              60s",
        "├─ group 0        2/2     ready              abc        0          60s",
        "│  ├─ 0 web-0     yes     Running   node-0              0          60s",
        "│  └─ 1 web-0-1   yes     Running   node-1              0          60s",
        "└─ group 1        1/2     1 Error            abc        0          60s",
        "   ├─ 0 web-1     yes     Running   node-0              0          60s",
        "   └─ 1 web-1-1   no      Error     node-1              0          60s   boom",
    ]


@pytest.mark.parametrize("columns", [None, 200])
def test_tree_has_one_line_per_object_without_a_narrow_terminal(columns: int | None) -> None:
    why = "0/4 nodes are available: " + "insufficient memory, " * 4
    lines = tree_lines([view(group(0, why=why))], [], NOW, columns=columns)
    assert len(lines) == 1 + 1 + 1 + 2
    assert lines[-1].endswith(why.rstrip())


def test_tree_shows_reasons_below_on_a_narrow_terminal() -> None:
    lines = tree_lines([view(group(0, why="node is full"))], [], NOW, columns=60)
    assert not lines[0].endswith("WHY")
    assert lines[5:] == ["1 web-0-1: node is full"]
    assert len(tree_lines([view(group(0, why="full, " * 30))], [], NOW, columns=60)[5:]) == 4


def test_tree_folds_many_groups() -> None:
    assert [line.split("   ")[0] for line in tree_lines([MANY], [], NOW)] == [
        "NAME",
        "web",
        "├─ group 7",
        "└─ groups 0-6,8-199",
    ]
    assert len(tree_lines([MANY], [], NOW, every_rank=True)) == 2 + 200 + 400


def test_tree_of_many_sets_folds_the_ready_ones() -> None:
    shown = [line.split()[0] for line in tree_lines(fleet(12, 7), [], NOW)]
    assert shown[:9] == ["NAME", *(f"w{at:03}" for at in range(8))]
    assert shown[9].startswith("├")
    assert shown[-4:] == ["w008", "w009", "w010", "w011"]
    whole = tree_lines(fleet(12, 7), [], NOW, is_chosen=True)
    assert len(whole) == 1 + 12 * (1 + 2 * 3)
    assert len(shown) == 1 + 12 + 2 * 3


def test_tree_shows_parts_below_their_set() -> None:
    obj = {
        "metadata": {"name": "split", "namespace": "prod", "uid": "of-split", "creationTimestamp": CREATED},
        "spec": {"roles": []},
    }
    part = view(group(0, 1), name="split-0-a-decode")
    lines = tree_lines([part], [set_view(obj, [part])], NOW, with_namespace=True)
    assert [line.partition("0/0" if "prod" in line else "1/1")[0].rstrip() for line in lines[1:-1]] == [
        "prod/split",
        "└─ split-0-a-decode",
        "   └─ group 0",
    ]
    assert tree_lines([], [], NOW) == []


@pytest.mark.slow
def test_printing_many_ranks_costs_little_more_than_reading() -> None:
    own = {"app": "x" * 50}
    pods = [
        {
            "metadata": {
                "name": f"web-{index}-{rank}",
                "labels": own | {labels.GROUP_INDEX: str(index), labels.WORKER_INDEX: str(rank)},
                "annotations": {f"note-{at}": "x" * 60 for at in range(20)},
            },
            "spec": {"containers": [{"name": "main", "env": [{"name": f"V{at}", "value": "1"} for at in range(20)]}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        for index in range(200)
        for rank in range(8)
    ]
    body = msgspec.json.encode(pods)
    lws = {"metadata": {"name": "web"}, "spec": {"replicas": 200, "leaderWorkerTemplate": {"size": 8}}}
    reading = min(timeit.repeat(lambda: msgspec.json.decode(body), number=1, repeat=5))
    showing = min(timeit.repeat(lambda: tables([sets.view(lws, pods)], NOW, TableOptions()), number=1, repeat=5))
    assert showing < 10 * reading
