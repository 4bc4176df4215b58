"""Tests that an object which cannot be displayed becomes one line with its error, without affecting others."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import Mask
from leaderworkerset.api.eventvalue import convert
from leaderworkerset.recording import episodebuilder
from leaderworkerset.recording.episodebuilder import GroupObservation
from lwsctl.cli.views import description, tables
from lwsctl.cli.views.description import Described
from lwsctl.dashboard import pageexport
from lwsctl.dashboard.address import Address, PageForm, PageKind
from lwsctl.dashboard.pages import nowpage, setpage
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.events import warningevents
from lwsctl.model.events.warningevents import Evidence
from lwsctl.model.groups import UNREADABLE
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import View, view
from lwsctl.views import reasons
from lwsctl.views.document import document
from lwsctl.views.selection import Selection

ERROR = "cannot be displayed: "
BROKEN: dict[str, Any] = {"containerStatuses": [7], "conditions": [7]}


def group(lws: JSONObject) -> list[JSONObject]:
    """Return a ready leader, and a worker whose status is invalid."""
    leader = builders.leader_pod(lws, 0, ready=True)
    return [leader, builders.worker_pod(leader, 1) | {"status": BROKEN}]


def broken_set() -> View:
    return view(builders.leaderworkerset_object(name="bad") | {"spec": {"replicas": {}}}, [])


def broken_rank() -> View:
    lws = builders.leaderworkerset_object(replicas=1, size=2)
    return view(lws, group(lws))


def test_rank_that_cannot_be_shown_has_its_error() -> None:
    first, second = broken_rank().groups[0].ranks
    assert first.is_ready
    assert (second.state, second.pod, second.is_ready) == (UNREADABLE, "web-0-1", False)
    assert second.why.startswith(f"{ERROR}AttributeError: 'int' object")


def test_set_that_cannot_be_shown_has_its_error() -> None:
    found = broken_set()
    assert found.name == "bad"
    assert not found.is_ready
    assert reasons.brief(found).startswith(f"bad is Unreadable: {ERROR}")


@pytest.mark.parametrize("make", [broken_set, broken_rank])
def test_every_view_of_an_unreadable_object_names_the_error(make: Any) -> None:
    found, healthy = make(), view(builders.leaderworkerset_object(name="fine"), [])
    (explained, _) = warningevents.explain_views([found, healthy], Evidence(), builders.NOW)
    selection = Selection(found.name)
    texts = {
        "get": "\n".join(tables.tables([explained, healthy], builders.NOW, tables.TableOptions())),
        "get of many": "\n".join(tables.rows([explained, healthy], builders.NOW)),
        "describe": "\n".join(description.lines(Described(selection=selection, view=explained), builders.NOW)),
        "explain": str(diagnose(Observed(view=explained, now=builders.NOW), selection)),
        "document": str(document([explained, healthy])),
    }
    snapshot = Snapshot(namespace="", now=builders.NOW, views=[explained, healthy])
    pages = [(nowpage, PageKind.NOW, form) for form in PageForm] + [(setpage, PageKind.SET, form) for form in PageForm]
    for page, kind, form in pages:
        address = Address(kind=kind, key=found.key, format=form)
        texts[f"{kind} {form}"] = str(page.render(snapshot, address, PageFacts()))
    assert [name for name, text in texts.items() if "cannot be displayed" not in text and name != "document"] == []
    assert [
        name for name in ("get", "get of many", f"{PageKind.NOW} {PageForm.PAGE}") if "fine" not in texts[name]
    ] == []


def test_failed_page_is_exported_with_its_error() -> None:
    snapshot = Snapshot(namespace="", now=builders.NOW, views=[7])  # type: ignore[list-item]  # no view
    address = Address(kind=PageKind.NOW)
    assert "this page cannot be displayed: AttributeError" in pageexport.render_document(snapshot, address, PageFacts())
    assert pageexport.text(snapshot, address, PageFacts()).startswith("this page cannot be displayed: AttributeError")


def test_diagnosis_that_fails_is_not_known() -> None:
    healthy = view(builders.leaderworkerset_object(), [])
    broken = replace(healthy, object=healthy.object | {"status": {"conditions": [7]}})
    found = diagnose(Observed(view=broken, now=builders.NOW), Selection("web"))
    assert (found.target, found.verdict) == ("web", Verdict.UNKNOWN)
    assert found.sentence.startswith(ERROR)


def test_event_that_cannot_be_shown_has_its_error() -> None:
    event: JSONObject = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"}, "message": "m", "count": "many"}
    assert convert(event).message.startswith(ERROR)


def test_event_that_cannot_be_read_leaves_the_other_evidence() -> None:
    pending = view(builders.leaderworkerset_object(replicas=1, size=1), [])
    about = {"kind": "StatefulSet", "name": "web", "namespace": "default"}
    time = (builders.NOW - timedelta(seconds=5)).isoformat()
    bad: JSONObject = {"type": "Warning", "involvedObject": 7}
    good: JSONObject = {
        "type": "Warning",
        "involvedObject": about,
        "reason": "FailedCreate",
        "message": "no quota",
        "lastTimestamp": time,
    }
    (explained,) = warningevents.explain_views([pending], Evidence(events=[bad, good]), builders.NOW)
    assert explained.groups[0].ranks[0].why == "no quota"


class FailingMask(Mask):
    """Fails for one line, as with a faulty pattern."""

    def text(self, text: str) -> str:
        if "poison" in text:
            raise RecursionError("maximum recursion depth exceeded")
        return super().text(text)


def test_log_that_cannot_be_masked_is_recorded_as_its_error() -> None:
    lws = builders.leaderworkerset_object(replicas=1, size=2)
    leader = builders.leader_pod(lws, 0)
    leader["metadata"]["uid"] = "u"
    leader["status"] = {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]}
    worker = builders.worker_pod(leader, 1) | {"status": BROKEN}
    logs = {("u", "c"): ["poison", "step 1\nRuntimeError: no GPU"]}
    episode = episodebuilder.build(
        GroupObservation(pods=[leader, worker], now=builders.NOW, lws=lws, logs=logs), FailingMask()
    )
    assert episode.ranks[0].containers[0].logs == (
        ("the log cannot be displayed: RecursionError: maximum recursion depth exceeded",),
        ("step 1", "RuntimeError: no GPU"),
    )
    assert episode.ranks[1].phase.startswith(ERROR)
