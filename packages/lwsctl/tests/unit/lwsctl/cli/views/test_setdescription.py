"""Tests each line in the description of a DisaggregatedSet."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests import builders
from tests.disaggregated import disaggregatedset_object, role
from tests.unit.lwsctl.model.test_disaggregatedset import part

from leaderworkerset.api.eventvalue import EventValue
from lwsctl.cli.views import description
from lwsctl.cli.views.description import Described
from lwsctl.model.disaggregatedset import set_view
from lwsctl.model.leaderworkerset import View
from lwsctl.views.selection import Selection

GOLDEN = Path(__file__).parent / "golden"

OBJECT = disaggregatedset_object(
    [
        role("prefill", 2, image="prefill:2", size=4, rollout={"maxSurge": 1, "maxUnavailable": 0}),
        role("decode", external=True),
    ],
    metadata={"creationTimestamp": builders.NOW.isoformat(), "labels": {"team": "search"}},
    status={
        "observedGeneration": 1,
        "roleStatuses": [{"name": "prefill", "replicas": 3, "updatedReplicas": 1}],
        "conditions": [
            {
                "type": "Available",
                "status": "False",
                "lastTransitionTime": builders.NOW.isoformat(),
                "reason": "Rolling",
                "message": "1 of 2",
            }
        ],
    },
    placementPolicy={"type": "ExclusiveSlice", "topology": "rack"},
)
EVENT = EventValue(
    ident="a",
    last=builders.NOW - timedelta(seconds=90),
    count=1,
    is_warning=False,
    reason="CreatingLeaderWorkerSet",
    object="disaggregatedset/split",
    message="created split-0-new-prefill",
    place=(None, None),
    reporter="lws",
    stored={},
)
ROLLING = [part("prefill", 2, ready=1, revision="old"), part("prefill", 1), part("decode", 1, revision="old")]


@pytest.mark.parametrize(("name", "parts"), [("set-rolling", ROLLING), ("set-new", [])])
def test_description_equals_the_recorded_text(name: str, parts: list[View]) -> None:
    quoted = ("the last lines of split-0-old-prefill-1, container main:\n  boom",) if parts else ()
    events = (EVENT,) if parts else ()
    shown = Described(selection=Selection("split"), view=set_view(OBJECT, parts), events=events, logs=quoted)
    path = GOLDEN / f"describe-{name}.txt"
    text = "\n".join(description.lines(shown, builders.NOW + timedelta(minutes=3))) + "\n"
    if not path.exists():
        path.write_text(text)
        pytest.fail(f"{path.name} was not there and is written: read it, and commit it")
    assert text == path.read_text()
