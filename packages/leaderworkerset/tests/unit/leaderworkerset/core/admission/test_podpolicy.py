"""Tests the parts of the pod admission policy, and the writes that maintain it.

`tests/kubernetes/admission` compares the policy with the webhook.
"""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Apply, Put
from leaderworkerset.api import labels
from leaderworkerset.api.metadata import MUTATING_WEBHOOKS
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.core.admission.pod import ADMITTING, admit_pod
from leaderworkerset.core.gang.gangs import Gangs
from leaderworkerset.core.policies.celmutations import PodRule
from leaderworkerset.core.policies.policy import Policy

CONFIGURATION: JSONObject = {"metadata": {"name": MUTATING_WEBHOOKS, "uid": "u1"}}
BUILT = podpolicy.build(extensions=EXTENSIONS)
JOINED = "2c1b6d0e-7f9e-4a3c-9f10-0d5b6f0f7a11-3"


def stored() -> dict[Any, Any]:
    """Return both objects in their state after the first writes."""
    actions = podpolicy.reconcile(BUILT, dict.fromkeys(podpolicy.KINDS), CONFIGURATION).actions
    return {action.resource: action.object for action in actions if isinstance(action, Apply)}


def test_every_policy_that_changes_pods_has_a_rule() -> None:
    changing = [policy for policy in (*ADMITTING, EXTENSIONS.groups.policy) if policy.admit is not Policy().admit]
    assert len(changing) == len([policy for policy in changing if policy.rule != PodRule()])


def test_missing_objects_are_created_and_belong_to_the_webhooks() -> None:
    objects = stored()
    assert tuple(objects) == podpolicy.KINDS
    owners = [obj["metadata"]["ownerReferences"] for obj in objects.values()]
    assert [(owner["kind"], owner["uid"]) for (owner,) in owners] == [("MutatingWebhookConfiguration", "u1")] * 2
    assert podpolicy.reconcile(BUILT, objects, CONFIGURATION).actions == ()


@pytest.mark.parametrize("kind", podpolicy.KINDS, ids=lambda kind: kind.kind)
def test_edited_object_is_restored(kind: Any) -> None:
    objects = stored()
    edited = objects[kind] | {"spec": {}, "metadata": objects[kind]["metadata"] | {"resourceVersion": "7"}}
    (action,) = podpolicy.reconcile(BUILT, objects | {kind: edited}, CONFIGURATION).actions
    assert isinstance(action, Put)
    assert action.object["spec"] == objects[kind]["spec"]
    assert action.object["metadata"]["resourceVersion"] == "7"


def test_no_policy_is_written_without_the_webhooks() -> None:
    assert podpolicy.reconcile(BUILT, dict.fromkeys(podpolicy.KINDS), None).actions == ()


@pytest.mark.parametrize(
    ("provider", "conditions"),
    [
        ("volcano", ["gang-is-of-volcano"]),
        ("kubernetes", ["is-not-workload-aware"]),
        ("native", ["has-no-gang", "is-not-workload-aware"]),
        ("built-in", ["has-no-gang"]),
    ],
)
def test_pods_of_gangs_are_left_to_the_webhook(provider: str, conditions: list[str]) -> None:
    assert [*Gangs(default=provider).rule.conditions] == conditions
    (_, policy), _ = podpolicy.build(Gangs(default=provider))
    assert {*conditions} <= {condition["name"] for condition in policy["spec"]["matchConditions"]}


def test_webhook_joins_subgroup_keys_of_joined_group_keys() -> None:
    pod = builders.pod_template() | {"apiVersion": "v1", "kind": "Pod"}
    own = {labels.NAME: "web", labels.GROUP_INDEX: "3", labels.GROUP_KEY: JOINED}
    annotations = {labels.SIZE: "4", labels.SUBGROUP_SIZE: "2", labels.LEADER_NAME: "web-3"}
    pod["metadata"] = {"name": "web-3-2", "namespace": "default", "labels": own, "annotations": annotations}
    admitted = admit_pod(pod)
    assert admitted["metadata"]["labels"][labels.SUBGROUP_KEY] == f"{JOINED}-1"
