"""Tests the detection of container restart rules that contradict the restart policy of groups."""

from typing import Any

import pytest

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.cli.doctor import manifestchecks
from lwsctl.cli.doctor.findings import Level

TOLERATED = {labels.IN_PLACE_RESTARTS: "120s"}


def rule(action: str = "RestartAllContainers") -> JSONObject:
    return {"action": action, "exitCodes": {"operator": "In", "values": [88]}}


def lws(*rules: Any, policy: str | None = None, annotations: JSONObject | None = None) -> JSONObject:
    """Return a LeaderWorkerSet whose workers have a sidecar with these rules."""
    sidecar = {"name": "watcher", "restartPolicy": "Always", "restartPolicyRules": list(rules)}
    template: JSONObject = {"workerTemplate": {"spec": {"containers": [{"name": "main"}], "initContainers": [sidecar]}}}
    return {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "train", "annotations": annotations or {}},
        "spec": {"leaderWorkerTemplate": template | ({"restartPolicy": policy} if policy else {})},
    }


@pytest.mark.parametrize("policy", [None, "RecreateGroupOnPodRestart", "RecreateGroupAfterStart"])
def test_rule_that_recreates_the_group_is_a_warning(policy: str | None) -> None:
    (found,) = manifestchecks.check_contradictions([lws(rule(), policy=policy)])
    assert (found.code, found.level) == ("LWS-D011", Level.WARNING)
    assert found.text == (
        "LeaderWorkerSet train: container watcher has a rule with action RestartAllContainers, which recreates the group"
        f" on each restart (restartPolicy {policy or 'RecreateGroupOnPodRestart'})"
    )
    assert labels.IN_PLACE_RESTARTS in found.fix


@pytest.mark.parametrize("annotations", [None, TOLERATED])
def test_fix_names_the_rule_for_containers_that_restart_alone(annotations: JSONObject | None) -> None:
    found = list(manifestchecks.check_contradictions([lws(rule("Restart"), rule(), annotations=annotations)]))
    (alone,) = [one for one in found if "action Restart," in one.text]
    assert "action RestartAllContainers" in alone.fix


def test_annotation_without_a_rule_is_a_note() -> None:
    (found,) = manifestchecks.check_contradictions([lws(annotations=TOLERATED)])
    assert "has no effect" in found.text


@pytest.mark.parametrize(
    "obj",
    [
        lws(rule(), annotations=TOLERATED),
        lws(rule(), policy="None"),
        lws(rule("Restart"), policy="None"),
        lws(),
        lws(7, None),
        {"kind": "LeaderWorkerSet", "metadata": {"name": "x"}, "spec": {"leaderWorkerTemplate": 7}},
        {"kind": "Pod", "spec": []},
    ],
    ids=["tolerated", "policy None", "alone with None", "no rule", "no rules", "no template", "another kind"],
)
def test_consistent_restart_rules_have_no_finding(obj: JSONObject) -> None:
    (found,) = manifestchecks.check_contradictions([obj])
    assert found.level is Level.OK


def test_roles_of_a_disaggregated_set_are_checked() -> None:
    roles = [{"name": "decode"} | lws(rule()), {"name": "prefill"} | lws(rule(), annotations=TOLERATED)]
    obj = {"kind": "DisaggregatedSet", "metadata": {"name": "serve"}, "spec": {"roles": roles}}
    (found,) = manifestchecks.check_contradictions([obj])
    assert found.text.startswith("DisaggregatedSet serve: container watcher has a rule")
