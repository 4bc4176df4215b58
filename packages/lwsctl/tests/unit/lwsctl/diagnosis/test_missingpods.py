"""Tests StatefulSets that do not create their pods, and workers that wait for the names of old pods."""

from typing import Final

from msgspec.structs import replace
from tests.explanations.builders import ago, event, lws, observed, placed, ready
from tests.explanations.situations import UPDATING, missing_workers, old_workers, statefulset

from kuberuntime.objects.resources import CORE_EVENTS, STATEFULSETS
from lwsctl.cli.targets import parse
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Diagnosis

BUDGET: Final = {"rollingUpdateConfiguration": {"maxUnavailable": 2}}


def cause(situation: Observed, target: str = "web") -> Diagnosis:
    return diagnose(situation, parse(target))


def test_missing_pods_are_named_for_set_group_and_rank() -> None:
    assert {cause(missing_workers(), target).code for target in ("web", "web/1", "web/1/2")} == {"LWS-E106"}
    assert cause(missing_workers(), "web/0").code == ""


def test_pods_may_be_missing_for_a_while() -> None:
    assert cause(missing_workers(110)).code == "LWS-E091"
    assert cause(missing_workers(130)).sentence == "group 1: its StatefulSet web-1 has created 0 of 3 pods for 2m10s"


def test_status_written_lately_counts_as_a_change() -> None:
    """A pod that was deleted long after its creation is missing since the deletion."""
    situation = missing_workers()
    *others, workers = situation.objects[STATEFULSETS]
    lately = {"managedFields": [{"subresource": "status", "time": ago(5)}]}
    changed = workers | {"metadata": workers["metadata"] | lately}
    objects = {**situation.objects, STATEFULSETS: [*others, changed]}
    assert cause(replace(situation, objects=objects)).code == "LWS-E086"


def test_rollout_names_the_ranks_that_it_waits_for() -> None:
    of = lws(2, 1, status=UPDATING | {"updatedReplicas": 2}, rolloutStrategy=BUDGET)
    going = placed(1, metadata={"deletionTimestamp": ago(5)})
    assert cause(observed([ready(), going], of=of)).evidence == ("web-1: Terminating: ending",)


def test_rejected_pods_have_their_own_cause() -> None:
    message = 'create Pod web-1-1 in StatefulSet web-1 failed error: pods "web-1-1" is forbidden: no luck today'
    refusal = event("StatefulSet", "web-1", "FailedCreate", message)
    situation = missing_workers()
    objects = {**situation.objects, CORE_EVENTS: [refusal]}
    assert cause(observed(situation.view.pods, objects, of=situation.view.object)).code == "LWS-E029"


def test_missing_leader_is_named_with_its_statefulset() -> None:
    situation = observed([ready(), ready(1)], {STATEFULSETS: [statefulset("web", 3, 300, 3)]}, of=lws(3, 1))
    assert cause(situation).sentence == "group 2: its StatefulSet web has created 2 of 3 pods for 5m"
    assert cause(situation, "web/2").sentence == cause(situation).sentence


def test_all_statefulsets_without_their_pods_are_evidence() -> None:
    situation = missing_workers()
    statefulsets = [*situation.objects[STATEFULSETS], statefulset("web-2", 3, 240)]
    pods = [*situation.view.pods, placed(2, made=240)]
    both = cause(observed(pods, {STATEFULSETS: statefulsets}, of=lws(3, 4, status=UPDATING)))
    assert both.sentence.endswith("(and 1 more StatefulSet)")
    assert both.evidence[1] == "group 2: StatefulSet web-2 has created 0 of 3 pods; last change 4m ago"


def test_old_workers_are_awaited_only_without_new_ones() -> None:
    situation = old_workers()
    workers = statefulset("web-0", 2, 10)
    ending = workers | {"metadata": workers["metadata"] | {"deletionTimestamp": ago(1)}}
    codes = [
        cause(replace(situation, objects={STATEFULSETS: [*situation.objects[STATEFULSETS], last]})).code
        for last in (workers, ending)
    ]
    assert codes == ["LWS-E121", "LWS-E107"]
    assert cause(replace(situation, objects={})).code == "LWS-E121"
