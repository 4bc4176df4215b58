"""Tests each line in the description of a LeaderWorkerSet, a group and a rank."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from testkit.objects import condition
from tests.builders import leaderworkerset_object, rank_pod

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.eventvalue import EventValue
from lwsctl.cli.views import description, eventlines
from lwsctl.cli.views.description import RECENT, Described
from lwsctl.model import leaderworkerset as sets
from lwsctl.model.failedcontainers import failed_containers
from lwsctl.views.selection import Selection, narrow

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
GOLDEN = Path(__file__).parent / "golden"

OBJECT = leaderworkerset_object(
    replicas=2,
    metadata={
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"team": "search"},
        "annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"},
    },
    template={"subGroupPolicy": {"subGroupSize": 2}},
    status={
        "readyReplicas": 1,
        "updatedReplicas": 2,
        "conditions": [
            {
                "type": "Available",
                "status": "False",
                "lastTransitionTime": "2026-01-01T00:05:00Z",
                "reason": "GroupsAreProgressing",
                "message": "1 of 2",
            }
        ],
    },
)


def pod(group: int, rank: int, state: JSONObject, **status: Any) -> JSONObject:
    """Return a pod with one container in this state."""
    made = {"creationTimestamp": "2026-01-01T00:08:00Z"}
    ready = condition("Ready", is_true="running" in state, lastTransitionTime="2026-01-01T00:09:00Z")
    containers = [{"name": "main", "image": "app:1", "resources": {"limits": {"cpu": "2"}}}]
    statuses = [{"name": "main", "restartCount": 1, "state": state, **status}]
    running: JSONObject = {"podIP": "10.0.0.7", "conditions": [ready], "containerStatuses": statuses}
    return rank_pod(group, rank, key="5f6d", node="node-1", metadata=made, spec={"containers": containers}, **running)


RUNS = {"running": {"startedAt": "2026-01-01T00:09:00Z"}}
FAILED = {"terminated": {"exitCode": 3, "reason": "Error"}}
WAITS = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
VIEW = sets.view(OBJECT, [pod(0, 0, RUNS), pod(0, 1, RUNS), pod(1, 0, FAILED), pod(1, 1, WAITS, lastState=FAILED)])
EVENT = EventValue(
    ident="a",
    last=NOW - timedelta(seconds=90),
    count=2,
    is_warning=True,
    reason="BackOff",
    object="pod/web-1-1",
    message="back-off 10s",
    place=(1, 1),
    reporter="kubelet",
    stored={},
)


def described(chosen: Selection, *events: EventValue, logs: tuple[str, ...] = ()) -> list[str]:
    shown = Described(selection=chosen, view=narrow(VIEW, chosen), events=events, logs=logs)
    return description.lines(shown, NOW)


@pytest.mark.parametrize(
    "chosen", [Selection("web"), Selection("web", 1), Selection("web", 1, 1)], ids=["set", "group", "rank"]
)
def test_description_equals_the_recorded_text(chosen: Selection, request: pytest.FixtureRequest) -> None:
    quoted = "the last lines of web-1-1, container main:\n  boom"
    path = GOLDEN / f"describe-{request.node.callspec.id}.txt"
    text = "\n".join(described(chosen, EVENT, logs=(quoted,))) + "\n"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        pytest.fail(f"{path.name} was not there and is written: read it, and commit it")
    assert text == path.read_text()


def test_description_reports_missing_permission_for_events() -> None:
    chosen = Selection("web")
    shown = Described(selection=chosen, view=narrow(VIEW, chosen), events=None, lws="lws --local -n prod")
    assert description.lines(shown, NOW)[-1] == "Events:         unknown, because you are not permitted to list events"


def test_earlier_events_are_counted() -> None:
    lines = described(Selection("web"), *[EVENT] * (RECENT + 2))
    assert "  … and 2 earlier events: lws events web" in lines
    assert described(Selection("web"))[-1] == "Events:         none"


def test_event_is_a_line_with_its_time() -> None:
    assert eventlines.event_line(EVENT) == "2026-01-01T00:08:30Z Warning BackOff pod/web-1-1 (x2): back-off 10s"


def test_failed_containers_belong_to_unready_ranks() -> None:
    assert [(failed.pod["metadata"]["name"], failed.is_previous_run) for failed in failed_containers(VIEW)] == [
        ("web-1", False),
        ("web-1-1", False),
    ]


def test_init_sidecar_and_ephemeral_containers_are_described() -> None:
    obj = pod(0, 1, RUNS)
    init = [{"name": "load"}, {"name": "proxy", "restartPolicy": "Always"}]
    obj["spec"] |= {"initContainers": init, "ephemeralContainers": [{"name": "debug-1"}]}
    obj["status"]["initContainerStatuses"] = [{"name": "load", "restartCount": 4, "state": FAILED}]
    chosen = Selection("web", 0, 1)
    view = sets.view(OBJECT, [pod(0, 0, RUNS), obj])
    lines = description.lines(Described(selection=chosen, view=narrow(view, chosen), events=()), NOW)
    kinds = {"Init:", "Sidecar:", "Container:", "Ephemeral:"}
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0] in kinds]
    assert rows == [["Init:", "load"], ["Sidecar:", "proxy"], ["Container:", "main"], ["Ephemeral:", "debug-1"]]
    assert "  restarts:     4" in lines
