"""Tests that a watch on a pipe prints at most one line per second for each group, and the last state."""

import json
from datetime import timedelta

import pytest
from msgspec.structs import replace
from testkit.fakeclock import FakeClock
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from lwsctl.cli import targets
from lwsctl.cli.commands.get import LineWatcher, ObjectWatcher, quotations, render, with_usage
from lwsctl.cli.sets.shown import QUOTED, GetRequest, select_views
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.lists import Lists

WANTED = GetRequest((), None, everywhere=False, selector="", managed_fields=False)


def views(ready: int, groups: int = 1) -> list[View]:
    found = tuple(
        Group(
            index=group,
            ranks=tuple(
                Rank(group=group, index=at, pod=f"web-{group}-{at}", state="Running", is_ready=at < ready)
                for at in range(4)
            ),
        )
        for group in range(groups)
    )
    return [View(name="web", namespace="prod", ready=0, desired=1, up_to_date=0, created="", groups=found, object={})]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watcher(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> LineWatcher:
    """Return a watcher that has printed its tables."""
    watcher = LineWatcher(WANTED, clock)
    watcher.update(views(0))
    assert "web-0-3" in capsys.readouterr().out
    return watcher


def test_watch_prints_one_line_per_group_and_second(
    clock: FakeClock, watcher: LineWatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    for ready in (1, 2, 3):
        watcher.update(views(ready))
    clock.time += timedelta(seconds=1)
    watcher.update(views(3))
    watcher.update(views(3))
    assert capsys.readouterr().out.splitlines() == [
        "web/0/0: Running, ready",
        "web group 0: 3 of 4 ranks ready (1 Running)",
    ]


def test_watch_prints_groups_independently(watcher: LineWatcher, capsys: pytest.CaptureFixture[str]) -> None:
    watcher.update(views(1))
    watcher.update(views(1, groups=2))
    assert capsys.readouterr().out.splitlines() == [
        "web/0/0: Running, ready",
        "web group 1: 1 of 4 ranks ready (3 Running)",
    ]


def test_watch_prints_pending_lines_at_the_end(watcher: LineWatcher, capsys: pytest.CaptureFixture[str]) -> None:
    watcher.update(views(1))
    watcher.update([])
    watcher.update(views(4))
    watcher.close()
    assert capsys.readouterr().out.splitlines()[-1] == "web group 0: 4 of 4 ranks ready"


def test_watch_prints_a_deleted_set_once(
    clock: FakeClock, watcher: LineWatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    watcher.update(views(1))
    for _ in range(3):
        clock.time += timedelta(seconds=1)
        watcher.update([])
    assert capsys.readouterr().out.splitlines() == ["web/0/0: Running, ready", "web: deleted"]


def test_watch_combines_groups_with_equal_changes(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    watcher = LineWatcher(WANTED, clock)
    watcher.update(views(0, groups=60))
    capsys.readouterr()
    for ready in (1, 2, 3):
        watcher.update(views(ready, groups=60))
        clock.time += timedelta(seconds=0.5)
    watcher.update(views(3, groups=50))
    clock.time += timedelta(seconds=1)
    watcher.update(views(3, groups=50))
    assert capsys.readouterr().out.splitlines() == [
        "web groups 0-59: 60 of 240 ranks ready (3 Running)",
        "web groups 0-59: 180 of 240 ranks ready (1 Running)",
        "web groups 50-59: deleted",
    ]


def failed_set(index: int) -> View:
    pod = {
        "metadata": {"name": f"web{index}-0", "namespace": "prod"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]},
    }
    rank = Rank(group=0, index=0, pod=f"web{index}-0", state="Error", object=pod)
    groups = (Group(index=0, ranks=(rank,)),)
    return View(
        name=f"web{index}", namespace="prod", ready=0, desired=1, up_to_date=0, created="", groups=groups, object={}
    )


def test_last_lines_of_failed_ranks_come_from_few_kubelets() -> None:
    transport = ScriptedTransport(*[respond(200, f"boom {index}\n".encode()) for index in range(QUOTED)])
    shown = [failed_set(index) for index in range(QUOTED + 2)]
    lines = run(quotations(Client(transport), shown))
    assert lines[:3] == ["", "the last lines of web0-0, container main:", "  boom 0"]
    assert len(transport.requests) == QUOTED


def test_watch_prints_each_object_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = ObjectWatcher("json")
    for version in ("1", "1", "2"):
        obj = {"kind": "LeaderWorkerSet", "metadata": {"uid": "a", "resourceVersion": version, "managedFields": []}}
        watcher.update([replace(views(0)[0], object=obj)])
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["metadata"]["resourceVersion"] for line in lines] == ["1", "2"]
    assert "managedFields" not in lines[0]


def test_table_wider_than_the_terminal_folds_its_reasons() -> None:
    (view,) = views(3)
    why = "serve: python3: can't open file 'serve.py' (Error, exit code 2); waiting to be restarted"
    ranks = tuple(rank if rank.is_ready else replace(rank, why=why) for rank in view.groups[0].ranks)
    view = replace(view, groups=(replace(view.groups[0], ranks=ranks),))
    wide, narrow = render([view], WANTED, columns=200), render([view], WANTED, columns=80)
    assert any(line.startswith("0 ") and line.endswith(why) for line in wide)
    assert max(map(len, narrow)) <= 80
    assert " ".join(" ".join(narrow).split()).endswith(f"web-0-3: {why}")
    assert render([view], WANTED) == wide


@pytest.mark.parametrize(
    "refused", [failure(404, "NotFound"), failure(403, "Forbidden"), respond(503, b"no endpoints")]
)
def test_usage_is_omitted_without_a_metrics_api(refused: Response) -> None:
    lists = Lists(Client(ScriptedTransport(refused)))
    assert run(with_usage(lists, [failed_set(0)], "prod")) == [failed_set(0)]


def test_wide_table_shows_the_measured_usage() -> None:
    metrics = {"metadata": {"name": "web0-0", "namespace": "prod"}, "containers": [{"usage": {"cpu": "250m"}}]}
    transport = ScriptedTransport(respond(200, {"metadata": {}, "items": [metrics]}))
    views = run(with_usage(Lists(Client(transport)), [failed_set(0)], "prod"))
    lines = render(views, replace(WANTED, form="wide"))
    assert lines[3].split()[-2:] == ["CPU", "MEMORY"]
    assert lines[4].split()[-2:] == ["0.25", "-"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ["leaderworkerset.leaderworkerset.x-k8s.io/web"]),
        (("web",), ["leaderworkerset.leaderworkerset.x-k8s.io/web"]),
        (("web", "web/0"), ["leaderworkerset.leaderworkerset.x-k8s.io/web"]),
        (("web/1",), [f"pod/web-1-{rank}" for rank in range(4)]),
        (("web/0/2", "web/1/3"), ["pod/web-0-2", "pod/web-1-3"]),
    ],
)
def test_format_name_prints_pods_for_groups_and_ranks(words: tuple[str, ...], names: list[str]) -> None:
    request = replace(WANTED, selections=tuple(map(targets.parse, words)), form="name")
    with_pods = [
        replace(
            view,
            groups=tuple(
                replace(group, ranks=tuple(replace(rank, object={}) for rank in group.ranks)) for group in view.groups
            ),
        )
        for view in views(4, groups=2)
    ]
    assert render(select_views(with_pods, request), request) == names
