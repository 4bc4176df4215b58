"""What is refused, as a user reads it: every rule of contract section 10 as a request."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import Space

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


def rollout(**fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet with these fields of its rolling update."""
    return lws(rollout=fields)


def subgroups(size: Any, *, policy: str = "LeaderWorker", group: int = 4) -> JSONObject:
    """Return a LeaderWorkerSet with subgroups."""
    return lws(size=group, template={"subGroupPolicy": {"subGroupPolicyType": policy, "subGroupSize": size}})


def with_spec(**fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet with these fields in its spec."""
    obj = lws()
    return obj | {"spec": obj["spec"] | fields}


BY_WEBHOOK = [
    pytest.param(
        lws("2cube"),
        ['metadata.name: Invalid value: "2cube": a DNS-1035 label must consist of lower case alphanumeric characters'],
        id="1 name",
    ),
    pytest.param(
        lws(size=0), ["spec.leaderWorkerTemplate.size: Invalid value: 0: size must be equal or greater than 1"], id="5"
    ),
    pytest.param(
        lws(replicas=100000, size=100000),
        [
            "spec.replicas: Invalid value: 100000: the product of replicas and worker replicas must not exceed 2147483647"
        ],
        id="6",
    ),
    pytest.param(
        rollout(maxUnavailable="some"),
        [
            f'{UNAVAILABLE}: Invalid value: "some": {PERCENT_TEXT}',
            f'{UNAVAILABLE}: Invalid value: "some": invalid value',
            f'{UNAVAILABLE}: Invalid value: "some": {NOT_ZERO}',
        ],
        id="7, 14, 15",
    ),
    pytest.param(
        rollout(maxUnavailable=-1, maxSurge=1),
        [f"{UNAVAILABLE}: Invalid value: -1: must be greater than or equal to 0"],
        id="8",
    ),
    pytest.param(
        rollout(maxUnavailable="200%"),
        [f'{UNAVAILABLE}: Invalid value: "200%": must not be greater than 100%'],
        id="9",
    ),
    pytest.param(
        rollout(maxUnavailable=1, maxSurge="x"),
        [f'{SURGE}: Invalid value: "x": {PERCENT_TEXT}', f'{SURGE}: Invalid value: "x": invalid value'],
        id="10",
    ),
    pytest.param(
        rollout(maxUnavailable=1, maxSurge=-1),
        [f"{SURGE}: Invalid value: -1: must be greater than or equal to 0"],
        id="11",
    ),
    pytest.param(
        rollout(maxUnavailable=1, maxSurge="101%"),
        [f'{SURGE}: Invalid value: "101%": must not be greater than 100%'],
        id="12",
    ),
    pytest.param(
        rollout(partition=-1), [f"{PARTITION}: Invalid value: -1: must be greater than or equal to 0"], id="13"
    ),
    pytest.param(rollout(maxUnavailable=0, maxSurge=0), [f"{UNAVAILABLE}: Invalid value: 0: {NOT_ZERO}"], id="15 zero"),
    pytest.param(
        rollout(maxUnavailable="25%", maxSurge=0),
        [f'{UNAVAILABLE}: Invalid value: "25%": {NOT_ZERO}'],
        id="15 a quarter of two",
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
        subgroups(3, group=5),
        [f"{SUBGROUP}: Invalid value: 3: size or size - 1 must be divisible by subGroupSize"],
        id="17",
    ),
    pytest.param(
        subgroups(5, group=3),
        [
            f"{SUBGROUP}: Invalid value: 5: size or size - 1 must be divisible by subGroupSize",
            f"{SUBGROUP}: Invalid value: 5: subGroupSize cannot be larger than size",
        ],
        id="17, 18",
    ),
    pytest.param(
        subgroups(2, policy="LeaderExcluded", group=4),
        [f"{SUBGROUP}: Invalid value: 2: size-1 must be divisible by subGroupSize when using LeaderExcluded"],
        id="19",
    ),
    pytest.param(
        lws(annotations={KEY: "rack"}),
        [
            (
                f'metadata.annotations.{KEY}: Invalid value: "rack":'
                " cannot have subgroup-exclusive-topology without subGroupSize set"
            )
        ],
        id="21",
    ),
]


@pytest.mark.parametrize(("obj", "failures"), BY_WEBHOOK)
async def test_refused_by_the_webhook(space: Space, obj: JSONObject, failures: list[str]) -> None:
    """R-VAL-1, R-VAL-5 to R-VAL-21, N-VAL-10, N-AT-24: 403 with every error, named by path and value."""
    error = await refusal(space, obj)
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message.startswith(DENIED)
    for failure in failures:
        assert failure in error.message
    assert error.message.count(" value: ") == len(failures)


BY_SCHEMA = [
    pytest.param(lws(replicas=-1), "spec.replicas", id="3 fewer than none"),
    pytest.param(lws(replicas=1000001), "spec.replicas", id="4 too many"),
    pytest.param(with_spec(startupPolicy="Later"), "spec.startupPolicy", id="unknown startup policy"),
    pytest.param(
        lws(template={"restartPolicy": "Always"}),
        "spec.leaderWorkerTemplate.restartPolicy",
        id="unknown restart policy",
    ),
    pytest.param(
        with_spec(networkConfig={"subdomainPolicy": "Any"}), "spec.networkConfig.subdomainPolicy", id="policy"
    ),
]


@pytest.mark.parametrize(("obj", "path"), BY_SCHEMA)
async def test_refused_by_the_schema(space: Space, obj: JSONObject, path: str) -> None:
    """R-API-2, R-VAL-3, R-VAL-4: 422 with the path, where the definition itself forbids it."""
    error = await refusal(space, obj)
    assert (error.code, error.reason) == (422, "Invalid")
    assert path in error.message


async def test_a_word_for_a_number(space: Space) -> None:
    """R-DEF-7: wrong types cannot even be given defaults; 400."""
    error = await refusal(space, with_spec(replicas="two"))
    assert error.code == 400
    denied = 'admission webhook "mleaderworkerset.kb.io" denied the request: '
    assert error.message == f'{denied}spec.replicas: Invalid value: "two": must be an integer of 32 bits'


ALLOWED = [
    pytest.param(rollout(maxUnavailable=10), id="more unavailable than there are"),
    pytest.param(rollout(maxUnavailable=1, maxSurge=10), id="more surge than there are"),
    pytest.param(rollout(maxUnavailable=0, maxSurge=1), id="surge alone"),
    pytest.param(rollout(maxUnavailable=1, partition=9), id="a partition above all groups"),
    pytest.param(lws(replicas=0, rollout={"maxUnavailable": "25%", "maxSurge": "25%"}), id="no groups"),
    pytest.param(subgroups(2), id="subgroups"),
    pytest.param(subgroups(2, policy="LeaderExcluded", group=5), id="leader excluded"),
    pytest.param(lws(template={"leaderTemplate": pod_template("leader:1")}), id="a leader template"),
]


@pytest.mark.parametrize("obj", ALLOWED)
async def test_allowed(space: Space, obj: JSONObject) -> None:
    """R-VAL-27."""
    await space.create(obj, dry_run=True)


UPDATES: list[Any] = [
    pytest.param(
        subgroups(2),
        lambda spec: spec["leaderWorkerTemplate"]["subGroupPolicy"].update(subGroupSize=4),
        f"{SUBGROUP}: Invalid value: 4: field is immutable",
        id="22",
    ),
    pytest.param(
        lws(size=4),
        lambda spec: spec["leaderWorkerTemplate"].update(subGroupPolicy={"subGroupSize": 2}),
        f"{SUBGROUP}: Invalid value: 2: cannot enable subGroupSize after the lws is already created",
        id="23",
    ),
    pytest.param(
        subgroups(2),
        lambda spec: spec["leaderWorkerTemplate"].pop("subGroupPolicy"),
        f"{SUBGROUP}: Invalid value: 2: cannot remove subGroupSize after enabled",
        id="24",
    ),
    pytest.param(
        lws(),
        lambda spec: spec["leaderWorkerTemplate"].update(volumeClaimTemplates=[claim_template()]),
        f"spec.leaderWorkerTemplate.volumeClaimTemplates: Forbidden: {CLAIMS_TEXT}",
        id="Q-7 claims",
    ),
]


@pytest.mark.parametrize(("obj", "change", "failure"), UPDATES)
async def test_refused_updates(
    space: Space, obj: JSONObject, change: Callable[[JSONObject], Any], failure: str
) -> None:
    """R-VAL-22 to R-VAL-24, Q-7."""
    await space.create(obj | {"spec": obj["spec"] | {"replicas": 0}})
    stored = copy.deepcopy(await space.get(LEADERWORKERSETS, "web"))
    change(stored["spec"])
    stored["metadata"].pop("resourceVersion")
    with pytest.raises(APIError) as caught:
        await space.patch([{"op": "replace", "path": "/spec", "value": stored["spec"]}])
    assert (caught.value.code, caught.value.message) == (403, DENIED + failure)


async def test_a_subdomain_policy_of_null_is_the_default(space: Space) -> None:
    """R-DEF-4, R-VAL-25: it cannot be refused, as it is filled in before."""
    await space.create(lws(replicas=0))
    patched = await space.patch([{"op": "replace", "path": "/spec/networkConfig", "value": {"subdomainPolicy": None}}])
    assert patched["spec"]["networkConfig"] == {"subdomainPolicy": "Shared"}


async def test_unknown_fields_are_told_or_dropped(space: Space) -> None:
    """R-API-5: pruned as usual; told where the client asks for strictness."""
    obj = with_spec(replicaz=3)
    assert "replicaz" not in (await space.create(obj, dry_run=True))["spec"]


async def test_scaling_and_status_do_not_ask_the_webhooks(space: Space) -> None:
    """R-VAL-26, Q-28: a percentage that came to nothing by scaling is no error then."""
    await space.bring_up(lws(replicas=4, size=1, rollout={"maxUnavailable": "25%", "maxSurge": 0}))
    await space.scale(2)
    await space.settled()


async def test_a_pod_without_a_size_is_refused(space: Space) -> None:
    """R-ADM-1."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "labels": {labels.NAME: "web"}}}
    with pytest.raises(APIError) as caught:
        await space.create(pod | pod_template(), PODS)
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    text = 'admission webhook "mpod.kb.io" denied the request: size annotation is unexpectedly missing for pod web-0'
    assert caught.value.message == text


async def refusal(space: Space, obj: JSONObject) -> APIError:
    """Create an object that must be refused; return the error."""
    with pytest.raises(APIError) as caught:
        await space.create(obj)
    return caught.value


def claim_template(name: str = "data") -> JSONObject:
    """Return the template of a small volume claim."""
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
