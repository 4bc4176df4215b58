"""Tests each rejection in contract section 10 with a request of a user."""

import copy
from typing import Any

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario

from kuberuntime.errors import APIError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.admission.leaderworkerset import CLAIMS_TEXT, PERCENT_TEXT

DENIED = 'admission webhook "vleaderworkerset.kb.io" denied the request: '
UNAVAILABLE = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
SURGE = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
PARTITION = "spec.rolloutStrategy.rollingUpdateConfiguration.partition"
SUBGROUP = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
NOT_ZERO = "must not be 0 when `maxSurge` is 0"
KEY = labels.SUBGROUP_EXCLUSIVE_TOPOLOGY


def subgroup_policy(size: Any, policy: str = "LeaderWorker") -> JSONObject:
    """Return the template field that defines subgroups."""
    return {"subGroupPolicy": {"subGroupPolicyType": policy, "subGroupSize": size}}


def subgroups(size: Any, *, policy: str = "LeaderWorker", group: int = 4) -> JSONObject:
    """Return a LeaderWorkerSet with subgroups."""
    return lws(size=group, template=subgroup_policy(size, policy))


def with_spec(**fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet with these spec fields."""
    obj = lws()
    return obj | {"spec": obj["spec"] | fields}


BY_WEBHOOK = [
    pytest.param(
        lws(size=0, rollout={"maxUnavailable": -1, "maxSurge": -1, "partition": -1}),
        [
            "spec.leaderWorkerTemplate.size: Invalid value: 0: size must be equal or greater than 1",
            f"{UNAVAILABLE}: Invalid value: -1: must be greater than or equal to 0",
            f"{SURGE}: Invalid value: -1: must be greater than or equal to 0",
            f"{PARTITION}: Invalid value: -1: must be greater than or equal to 0",
        ],
        id="5, 8, 11, 13",
    ),
    pytest.param(
        lws(replicas=100000, size=100000, rollout={"maxUnavailable": "200%", "maxSurge": "101%"}),
        [
            (
                "spec.replicas: Invalid value: 100000:"
                " the product of replicas and worker replicas must not exceed 2147483647"
            ),
            f'{UNAVAILABLE}: Invalid value: "200%": must not be greater than 100%',
            f'{SURGE}: Invalid value: "101%": must not be greater than 100%',
        ],
        id="6, 9, 12",
    ),
    pytest.param(
        lws("2cube", rollout={"maxUnavailable": "some", "maxSurge": "x"}, annotations={KEY: "rack"}),
        [
            'metadata.name: Invalid value: "2cube": a DNS-1035 label must consist of lower case alphanumeric characters',
            f'{UNAVAILABLE}: Invalid value: "some": {PERCENT_TEXT}',
            f'{UNAVAILABLE}: Invalid value: "some": invalid value',
            f'{UNAVAILABLE}: Invalid value: "some": {NOT_ZERO}',
            f'{SURGE}: Invalid value: "x": {PERCENT_TEXT}',
            f'{SURGE}: Invalid value: "x": invalid value',
            (
                f'metadata.annotations.{KEY}: Invalid value: "rack":'
                " cannot have subgroup-exclusive-topology without subGroupSize set"
            ),
        ],
        id="1, 7, 10, 14, 15, 21",
    ),
    pytest.param(
        subgroups(0), [f"{SUBGROUP}: Invalid value: 0: subGroupSize must be equal or greater than 1"], id="16, 20"
    ),
    pytest.param(
        subgroups(None),
        [f"{SUBGROUP}: Required value: subGroupSize is required"],
        id="20 no size",
    ),
    pytest.param(
        subgroups(5, policy="LeaderExcluded", group=3),
        [
            f"{SUBGROUP}: Invalid value: 5: size or size - 1 must be divisible by subGroupSize",
            f"{SUBGROUP}: Invalid value: 5: subGroupSize cannot be larger than size",
            f"{SUBGROUP}: Invalid value: 5: size-1 must be divisible by subGroupSize when using LeaderExcluded",
        ],
        id="17, 18, 19",
    ),
]


@pytest.mark.parametrize(("obj", "failures"), BY_WEBHOOK)
async def test_webhook_rejects_invalid_fields(space: LiveScenario, obj: JSONObject, failures: list[str]) -> None:
    """The response is a 403 error with each field and its value.

    See R-VAL-1, R-VAL-5 to R-VAL-21, N-VAL-10, N-AT-24.
    """
    error = await refusal(space, obj)
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message.startswith(DENIED)
    for failure in failures:
        assert failure in error.message
    assert error.message.count(" value: ") == len(failures)


FORBIDDEN: JSONObject = {"startupPolicy": "Later", "networkConfig": {"subdomainPolicy": "Any"}}
BY_SCHEMA = [
    pytest.param(
        lws(replicas=-1, template={"restartPolicy": "Always"}, **FORBIDDEN),
        {
            "spec.replicas",
            "spec.startupPolicy",
            "spec.leaderWorkerTemplate.restartPolicy",
            "spec.networkConfig.subdomainPolicy",
        },
        id="3 fewer than none, unknown policies",
    ),
    pytest.param(lws(replicas=1000001), {"spec.replicas"}, id="4 too many"),
]


@pytest.mark.parametrize(("obj", "paths"), BY_SCHEMA)
async def test_schema_rejects_invalid_fields(space: LiveScenario, obj: JSONObject, paths: set[str]) -> None:
    """The response is a 422 error that lists each field that the CRD rejects (R-API-2, R-VAL-3, R-VAL-4)."""
    error = await refusal(space, obj)
    assert (error.code, error.reason) == (422, "Invalid")
    assert {path for path in paths if f"{path}: " in error.message} == paths


async def test_webhook_rejects_a_string_for_a_number(space: LiveScenario) -> None:
    """The response is a 400 error, because a field with an incorrect type cannot have a default (R-DEF-7)."""
    error = await refusal(space, with_spec(replicas="two"))
    assert error.code == 400
    denied = 'admission webhook "mleaderworkerset.kb.io" denied the request: '
    assert error.message == f'{denied}spec.replicas: Invalid value: "two": must be a 32-bit integer'


ALLOWED = [
    pytest.param(
        lws(
            size=4,
            rollout={"maxUnavailable": 10, "maxSurge": 10, "partition": 9},
            template={"leaderTemplate": pod_template("leader:1")} | subgroup_policy(2),
        ),
        id="more than there are groups, subgroups, a leader template",
    ),
    pytest.param(
        lws(size=5, rollout={"maxUnavailable": 0, "maxSurge": 1}, template=subgroup_policy(2, "LeaderExcluded")),
        id="surge alone, leader excluded",
    ),
    pytest.param(lws(replicas=0, rollout={"maxUnavailable": "25%", "maxSurge": "25%"}), id="no groups"),
]


@pytest.mark.parametrize("obj", ALLOWED)
async def test_valid_fields_are_accepted(space: LiveScenario, obj: JSONObject) -> None:
    """Valid fields are accepted (R-VAL-27)."""
    await space.create(obj, dry_run=True)


async def test_webhook_rejects_invalid_updates(space: LiveScenario) -> None:
    """The response contains each error (R-VAL-22, Q-7)."""
    await space.create(subgroups(2) | {"spec": subgroups(2)["spec"] | {"replicas": 0}})
    spec = copy.deepcopy((await space.get(LEADERWORKERSETS, "web"))["spec"])
    spec["leaderWorkerTemplate"]["subGroupPolicy"]["subGroupSize"] = 4
    spec["leaderWorkerTemplate"]["volumeClaimTemplates"] = [claim_template()]
    with pytest.raises(APIError) as caught:
        await space.patch([{"op": "replace", "path": "/spec", "value": spec}])
    failures = (
        f"{SUBGROUP}: Invalid value: 4: field is immutable",
        f"spec.leaderWorkerTemplate.volumeClaimTemplates: Forbidden: {CLAIMS_TEXT}",
    )
    assert (caught.value.code, caught.value.message) == (403, f"{DENIED}[{', '.join(failures)}]")


async def test_null_subdomain_policy_gets_the_default(space: LiveScenario) -> None:
    """The value is valid, because defaults are set before validation (R-DEF-4, R-VAL-25)."""
    await space.create(lws(replicas=0))
    patched = await space.patch([{"op": "replace", "path": "/spec/networkConfig", "value": {"subdomainPolicy": None}}])
    assert patched["spec"]["networkConfig"] == {"subdomainPolicy": "Shared"}


async def test_unknown_fields_are_dropped_or_rejected_when_strict(space: LiveScenario) -> None:
    """Unknown fields are pruned as usual, and reported if the client requests strict validation (R-API-5)."""
    obj = with_spec(replicaz=3)
    assert "replicaz" not in (await space.create(obj, dry_run=True))["spec"]


async def test_scale_and_status_bypass_the_webhooks(space: LiveScenario) -> None:
    """A percentage that rounds to zero after scaling does not cause an error (R-VAL-26, Q-28)."""
    await space.bring_up(lws(replicas=4, size=1, rollout={"maxUnavailable": "25%", "maxSurge": 0}))
    await space.scale(2)
    await space.settled()


async def test_pod_without_a_size_is_rejected(space: LiveScenario) -> None:
    """A pod without a group size is rejected (R-ADM-1)."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "labels": {labels.NAME: "web"}}}
    with pytest.raises(APIError) as caught:
        await space.create(pod | pod_template(), PODS)
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    text = 'admission webhook "mpod.kb.io" denied the request: size annotation is unexpectedly missing for pod web-0'
    assert caught.value.message == text


async def refusal(space: LiveScenario, obj: JSONObject) -> APIError:
    """Create an object that must be rejected. Return the error."""
    with pytest.raises(APIError) as caught:
        await space.create(obj)
    return caught.value


def claim_template(name: str = "data") -> JSONObject:
    """Return the template of a small volume claim."""
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
