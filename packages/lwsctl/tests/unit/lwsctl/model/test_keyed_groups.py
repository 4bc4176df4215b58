"""Tests groups with random keys, which a prefix of the key selects instead of an index."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.builders import leaderworkerset_object, rank_pod

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.cli import targets
from lwsctl.cli.errors import UsageError
from lwsctl.cli.logsrequest import group_name
from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import applyforecast, restarts, rolloutprogress
from lwsctl.views.changes import group_lines, subjects
from lwsctl.views.document import document
from lwsctl.views.eventhistory import History
from lwsctl.views.grouprows import group_rows
from lwsctl.views.selection import Selection, narrow

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD, NEW, GONE = "95e88034", "0b1c2d3e", "12345678"
"""The third key consists only of digits, which is possible."""


def lws(replicas: int = 2, **status: Any) -> JSONObject:
    obj = leaderworkerset_object(replicas=replicas, size=2)
    spec = obj["spec"] | {"groupIdentity": "Hash"}
    return obj | {"spec": spec, "status": {"readyReplicas": 2, "updatedReplicas": 2} | status}


def pod(key: str, rank: int, *, age: int = 0, ready: bool = True, revision: str = "r1", **fields: Any) -> JSONObject:
    """Return a pod of the group with this key. `age` is the second in which it was created."""
    own: JSONObject = {
        "labels": {labels.GROUP_INDEX: key.ljust(40, "f")},
        "annotations": {labels.GROUP_IDENTITY: "Hash"},
    }
    own |= {"name": f"web-7d9f8b6c4-{key[:5]}" if rank == 0 else f"web-{key}-{rank}", "uid": f"{key}-{rank}"}
    metadata = own | {"creationTimestamp": f"2026-01-01T00:00:{age:02}Z"} | fields
    spec = {"hostname": f"web-{key}"} if rank == 0 else {}
    return rank_pod(key, rank, key=revision, ready=ready, metadata=metadata, spec=spec)


def two(*more: JSONObject) -> View:
    """Return a LeaderWorkerSet with two groups, and additional pods."""
    return view(lws(), [pod(OLD, 0), pod(OLD, 1), pod(NEW, 0, age=9), *more])


def test_youngest_group_is_first_and_leaderless_group_last() -> None:
    shown = two(pod(GONE, 1, deletionTimestamp="2026-01-01T00:01:00Z"))
    assert [(group.index, group.name) for group in shown.groups] == [(0, NEW), (1, OLD), (2, GONE)]
    assert [rank.place for rank in shown.groups[2].ranks] == [f"{GONE}/1"]
    (missing,) = [rank for group in shown.groups for rank in group.ranks if rank.object is None]
    assert (missing.place, missing.pod) == (f"{NEW}/1", f"web-{NEW}-1")


def test_groups_with_missing_leaders_are_counted() -> None:
    shown = view(lws(), [pod(OLD, 0), pod(OLD, 1)])
    assert (len(shown.groups), shown.more) == (1, 1)


def test_group_is_named_by_a_key_prefix_or_the_whole_key() -> None:
    assert targets.parse(f"web/{GONE}/1") == Selection("web", GONE, 1)
    assert targets.parse(f"web/{OLD.ljust(40, 'f')}") == Selection("web", OLD)
    assert group_name(GONE) == GONE
    with pytest.raises(UsageError, match="is not a valid path"):
        targets.parse("web/95e8")
    chosen = narrow(two(), Selection("web", OLD, 1))
    assert [rank.pod for group in chosen.groups for rank in group.ranks] == [f"web-{OLD}-1"]
    assert f"{labels.GROUP_INDEX}=" not in Selection("web", OLD).label_selector()


def test_documents_rows_and_lines_name_groups_by_key() -> None:
    shown = two()
    assert [group["group"] for group in document([shown])["items"][0]["groups"]] == [NEW, OLD]
    assert {fold.group_names for fold in group_rows(shown.groups, NOW)} == {NEW, OLD}
    found = subjects([shown], NOW)
    assert f"web group {OLD}" in found
    many = view(lws(20), [pod(f"{number:08x}", rank) for number in range(20) for rank in (0, 1)])
    known = subjects([many], NOW)
    gone = {name: f"{name}: deleted" for name in known if "group" in name}
    (line,) = group_lines(gone, known, NOW)
    assert line.endswith(",… (20): deleted")


def test_restart_waits_for_the_replacement_groups() -> None:
    whole = view(lws(), [pod(OLD, 0), pod(OLD, 1), pod(NEW, 0, age=9), pod(NEW, 1)])
    old = restarts.pods_to_delete(whole, [OLD])
    assert old == {OLD: f"{OLD}-0"}
    assert [rank.pod for rank in restarts.next_batch(whole, old, 1).ranks] == [f"web-7d9f8b6c4-{OLD[:5]}"]
    replaced = view(lws(), [pod(NEW, 0), pod(NEW, 1), pod(GONE, 0, age=20, ready=False)])
    assert restarts.next_batch(replaced, old, 1).unready_groups == (GONE,)
    ready = view(lws(), [pod(NEW, 0), pod(NEW, 1), pod(GONE, 0, age=20), pod(GONE, 1)])
    assert restarts.next_batch(ready, old, 1).unready_groups == ()


def test_rollout_is_measured_by_the_youngest_groups() -> None:
    deployment = {"metadata": {"labels": {labels.TEMPLATE_REVISION_HASH: "r2"}}}
    pods = [pod(OLD, 0), pod(OLD, 1), pod(NEW, 0, age=1), pod(NEW, 1)]
    surge = view(
        lws(), [*pods, pod(GONE, 0, age=9, revision="r2"), pod(GONE, 1, age=9, revision="r2")], leaders=deployment
    )
    found = rolloutprogress.measure_progress(surge, NOW)
    assert (found.done_groups, found.updated_groups, found.desired_groups, found.is_complete) == (1, 1, 2, False)


def test_plan_reports_that_the_order_is_open() -> None:
    before, after = lws(), lws()
    container = after["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    template = {"spec": {"containers": [container | {"image": "app:2"}]}}
    changed = after["spec"]["leaderWorkerTemplate"] | {"workerTemplate": template}
    after = after | {"spec": after["spec"] | {"leaderWorkerTemplate": changed}}
    told = applyforecast.lines(applyforecast.forecast_apply(view(before, two().pods), after))
    assert "a new revision: the Deployment controller replaces all groups in any order; at most" in told[-1]
    told = applyforecast.lines(applyforecast.forecast_apply(view(before, two().pods), lws(3)))
    assert told[-1] == "no new revision: 3 groups of 2 pods desired"


@pytest.mark.parametrize(
    ("kind", "name", "place"),
    [
        ("Pod", f"web-7d9f8b6c4-{OLD[:5]}", (OLD, 0)),
        ("Pod", "web-7d9f8b6c4-zzzzz", (None, None)),
        ("Pod", f"web-{GONE}-1", (GONE, 1)),
        ("StatefulSet", f"web-{NEW}", (NEW, None)),
        ("ReplicaSet", "web-7d9f8b6c4", (None, None)),
        ("Deployment", "web", (None, None)),
    ],
)
def test_events_are_placed_by_pods_and_by_names(kind: str, name: str, place: Any) -> None:
    event = {
        "metadata": {"uid": "e"},
        "involvedObject": {"kind": kind, "name": name},
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    found = History(lws(), two().pods).parse(event)
    assert found is not None
    assert found.place == place
    assert History(lws(), two().pods).parse(event | {"involvedObject": {"kind": kind, "name": "other"}}) is None
