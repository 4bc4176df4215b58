"""Tests causes of a DisaggregatedSet, and situations in which its LeaderWorkerSets have better causes."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.explanations.builders import KEY, ago, conditions, event, of_set, part

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, DEPLOYMENTS
from leaderworkerset.api.resources import ROLE_SCALERS
from lwsctl.diagnosis.diagnose import diagnose, diagnose_disaggregatedset
from lwsctl.diagnosis.document import headline, overview_lines, sort_by_urgency
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import Verdict
from lwsctl.views.selection import Selection

PARTS = (part("prefill"), part("decode"))
DONE = {"conditions": conditions(Available="True")}
REFUSED = "Failed to create LeaderWorkerSet web-0-5b7f-prefill: exceeded quota: few"


def told(situation: Observed) -> Diagnosis:
    return diagnose(situation, Selection("web"))


def warned(message: str = REFUSED, **fields: object) -> dict[object, list[JSONObject]]:
    return {CORE_EVENTS: [event("DisaggregatedSet", "web", "FailedCreate", message, uid="whole", **fields)]}  # type: ignore[arg-type]


def test_finished_set_is_healthy() -> None:
    found = told(of_set(parts=PARTS, status=DONE))
    assert headline(found) == "web is healthy: prefill 2/2, decode 2/2 ready, all at the latest revision"
    assert found.owner == "web"


def test_parts_of_older_revisions_mean_a_rollout() -> None:
    found = told(of_set(parts=[*PARTS, part("prefill", "old")], status=DONE))
    assert (found.code, found.verdict) == ("LWS-E093", Verdict.PROGRESSING)
    assert "0 of 4 groups updated" in found.sentence


def test_rollout_with_only_old_groups_left_is_ending() -> None:
    counts = {"roleStatuses": [{"name": "prefill", "updatedReplicas": 2}, {"name": "decode", "updatedReplicas": 2}]}
    found = told(of_set(parts=[*PARTS, part("prefill", "old")], status=counts))
    assert found.sentence == "the rollout of web is almost complete: groups of older revisions are being deleted"


def test_deleted_set_reports_what_is_left() -> None:
    found = told(of_set(parts=PARTS, status=DONE, metadata={"deletionTimestamp": ago(1)}))
    assert headline(found) == "web is progressing (LWS-E090): web is being deleted; 2 LeaderWorkerSets remaining"


def test_set_without_an_active_controller_is_explained() -> None:
    stopped: JSONObject = {"metadata": {"name": "m", "namespace": "lws-system"}, "spec": {"replicas": 1}}
    situation = of_set({CORE_EVENTS: [], DEPLOYMENTS: [stopped]}, metadata={"generation": 2})
    found = told(situation)
    assert found.code == "LWS-E003"
    assert str(found.subject) == "DisaggregatedSet web"


def test_scaler_of_the_set_is_not_a_conflict() -> None:
    owner = {"uid": "whole", "controller": True, "kind": "DisaggregatedSet", "name": "web"}
    scaler = {"metadata": {"name": "web-decode", "namespace": "prod", "ownerReferences": [owner]}}
    assert told(of_set({ROLE_SCALERS: [scaler]}, parts=PARTS)).code == "LWS-E093"


def test_scaler_without_a_controller_is_a_conflict() -> None:
    found = told(of_set({ROLE_SCALERS: [{"metadata": {"name": "web-decode", "namespace": "prod"}}]}, parts=PARTS))
    assert found.evidence == ("DisaggregatedSetRoleScaler web-decode has no controller",)


@pytest.mark.parametrize(
    "objects",
    [
        warned(seconds=timedelta(hours=1).total_seconds()),
        warned("Failed to create LeaderWorkerSet web-0-5b7f-decode: exceeded quota"),
        warned("Failed to create Service web-prefill: exceeded quota"),
        warned("something else"),
        {CORE_EVENTS: [event("DisaggregatedSet", "web", "FailedCreate", REFUSED, uid="of-another")]},
    ],
    ids=["long ago", "there by now", "a service", "another text", "another set"],
)
def test_resolved_rejection_is_not_a_cause(objects: dict[object, list[JSONObject]]) -> None:
    assert told(of_set(objects, parts=[part("decode")])).code == "LWS-E093"  # type: ignore[arg-type]


def test_last_rejection_is_reported() -> None:
    older = event("DisaggregatedSet", "web", "FailedCreate", REFUSED, uid="whole", seconds=60)
    newer = event("DisaggregatedSet", "web", "FailedCreate", REFUSED.replace("few", "none"), uid="whole", seconds=6)
    found = told(of_set({CORE_EVENTS: [older, newer]}))
    assert found.sentence == f"LeaderWorkerSet web-0-{KEY}-prefill of web cannot be created: exceeded quota: none"


def test_cause_of_a_part_precedes_progress_of_the_set() -> None:
    own = told(of_set(parts=PARTS))
    ill = Diagnosis(target="web-prefill", verdict=Verdict.PROGRESSING, sentence="starts", owner="web")
    fine = replace(ill, verdict=Verdict.HEALTHY)
    assert diagnose_disaggregatedset(own, [ill, fine]) == [ill, fine]
    assert diagnose_disaggregatedset(own, [fine]) == [own, fine]
    assert diagnose_disaggregatedset(own, []) == [own]
    assert diagnose_disaggregatedset(replace(own, verdict=Verdict.STUCK), [ill]) == [
        replace(own, verdict=Verdict.STUCK),
        ill,
    ]
    assert diagnose_disaggregatedset(replace(own, verdict=Verdict.HEALTHY), [fine]) == [fine]


def test_set_is_named_once_in_its_own_explanation() -> None:
    own = told(of_set({ROLE_SCALERS: [{"metadata": {"name": "web-decode", "namespace": "prod"}}]}, parts=PARTS))
    fine = Diagnosis(target="web-prefill", verdict=Verdict.HEALTHY, sentence="2 of 2", namespace="prod", owner="web")
    lines = overview_lines(sort_by_urgency([own, fine]))
    assert lines[0].startswith("web is stuck (LWS-E016): role decode")
    assert lines[-2:] == ["Other LeaderWorkerSets of web:", "  web-prefill is healthy: 2 of 2"]
    assert own.namespace == "prod"
