"""Tests the defaults and validation of LeaderWorkerSets (R-DEF, R-VAL)."""

import copy
from typing import Any

import pytest

from kuberuntime.objects.field import aggregate
from leaderworkerset.api import crd
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.core.admission.leaderworkerset import (
    JSON_RULES,
    NEWER_DEFAULTS,
    PERCENT_TEXT,
    default_leaderworkerset,
    validate_leaderworkerset,
)
from leaderworkerset.core.admission.ratcheting import errors_of

UNAVAILABLE = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
SURGE = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
PARTITION = "spec.rolloutStrategy.rollingUpdateConfiguration.partition"
SUBGROUP = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
NOT_ZERO = "must not be 0 when `maxSurge` is 0"
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def lws(
    *,
    template: dict[str, Any] | None = None,
    rollout: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "test", "namespace": "default"} | (metadata or {}),
        "spec": {
            "replicas": 2,
            "leaderWorkerTemplate": {"size": 4, "workerTemplate": POD} | (template or {}),
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0} | (rollout or {}),
            },
            "networkConfig": {"subdomainPolicy": "Shared"},
        }
        | spec,
    }


def subgroups(size: Any, kind: str = "LeaderWorker", group_size: int = 4) -> dict[str, Any]:
    policy = {"subGroupPolicyType": kind, "subGroupSize": size}
    return lws(template={"size": group_size, "subGroupPolicy": policy})


def errors(obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    if old is None:
        return [str(error) for error in validate_leaderworkerset(decode(obj))]
    return [str(error) for error in (*validate_leaderworkerset(decode(obj), decode(old)), *errors_of(JSON_RULES, obj))]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, "RecreateGroupOnPodRestart"),
        ("", "RecreateGroupOnPodRestart"),
        ("Default", "None"),
        ("None", "None"),
        ("RecreateGroupAfterStart", "RecreateGroupAfterStart"),
    ],
)
def test_restart_policy_has_a_default(policy: str | None, expected: str) -> None:
    """The restart policy has a default (R-DEF-1)."""
    obj = default_leaderworkerset(lws(template={"restartPolicy": policy}))
    assert obj["spec"]["leaderWorkerTemplate"]["restartPolicy"] == expected


CONFIGURATION = {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (None, {"type": "RollingUpdate", "rollingUpdateConfiguration": CONFIGURATION}),
        ({}, {"type": "RollingUpdate", "rollingUpdateConfiguration": CONFIGURATION}),
        ({"type": ""}, {"type": "RollingUpdate", "rollingUpdateConfiguration": CONFIGURATION}),
        (
            {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 2}},
            {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 2}},
        ),
        ({"type": "Other"}, {"type": "Other"}),
    ],
)
def test_rollout_strategy_has_a_default(strategy: Any, expected: Any) -> None:
    """The rollout strategy has a default (R-DEF-2, R-DEF-3)."""
    assert default_leaderworkerset(lws(rolloutStrategy=strategy))["spec"]["rolloutStrategy"] == expected


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (None, "Shared"),
        ({}, "Shared"),
        ({"subdomainPolicy": None}, "Shared"),
        ({"subdomainPolicy": "UniquePerReplica"}, "UniquePerReplica"),
    ],
)
def test_subdomain_policy_has_a_default(network: Any, expected: str) -> None:
    """The subdomain policy has a default (R-DEF-4)."""
    obj = default_leaderworkerset(lws(networkConfig=network))
    assert obj["spec"]["networkConfig"] == {"subdomainPolicy": expected}


@pytest.mark.parametrize("empty", [None, ""])
def test_group_identity_and_replacement_have_defaults(empty: str | None) -> None:
    """Group identity and replacement have defaults (N-API-1, N-DEF-1)."""
    spec = default_leaderworkerset(lws(groupIdentity=empty, groupReplacementPolicy=empty, replicas=None))["spec"]
    assert (spec["groupIdentity"], spec["groupReplacementPolicy"]) == ("Ordinal", "PostTermination")
    assert spec["replicas"] == 1


@pytest.mark.parametrize("empty", [None, ""])
def test_termination_policy_has_no_default_unless_it_is_given(empty: str | None) -> None:
    """If the field is missing, the annotation is used (N-DEF-1)."""
    assert default_leaderworkerset(lws(podTerminationPolicy=empty))["spec"]["podTerminationPolicy"] == "Default"
    assert "podTerminationPolicy" not in default_leaderworkerset(lws())["spec"]


def test_defaults_of_newer_fields_are_left_to_the_schema() -> None:
    """A v0.10 CRD does not contain the fields, and prunes the webhook's defaults (N-DEF-1)."""
    assert not {"groupIdentity", "groupReplacementPolicy"} & default_leaderworkerset(lws())["spec"].keys()
    fields = crd.leaderworkerset_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert {name: fields["properties"][name]["default"] for name in NEWER_DEFAULTS} == NEWER_DEFAULTS


def test_given_identity_replacement_and_replicas_are_kept() -> None:
    """Zero is also a valid number of groups (N-DEF-1)."""
    given: dict[str, Any] = {"groupIdentity": "Hash", "groupReplacementPolicy": "Immediate", "replicas": 0}
    assert default_leaderworkerset(lws(**given))["spec"].items() >= given.items()


def test_defaulting_is_limited_and_idempotent() -> None:
    """Defaulting is limited and idempotent (R-DEF-5, R-DEF-6)."""
    given = {"metadata": {"name": "a"}, "spec": {"leaderWorkerTemplate": {"workerTemplate": POD}}}
    before = copy.deepcopy(given)
    obj = default_leaderworkerset(given)
    assert given == before
    assert obj["spec"].keys() == {"replicas", "leaderWorkerTemplate", "rolloutStrategy", "networkConfig"}
    assert obj["spec"]["leaderWorkerTemplate"].keys() == {"workerTemplate", "restartPolicy"}
    assert default_leaderworkerset(obj) == obj


def test_object_without_a_spec_is_rejected() -> None:
    """An object without a spec is rejected (Q-34)."""
    obj = default_leaderworkerset({"metadata": {"name": "a", "namespace": "n"}})
    assert errors(obj) == [
        "spec.leaderWorkerTemplate.workerTemplate.spec.containers: Required value: a pod needs at least one container"
    ]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(lws(rollout={"maxUnavailable": 10}), id="unavailable above replicas"),
        pytest.param(lws(rollout={"maxSurge": 10}), id="surge above replicas"),
        pytest.param(lws(rollout={"partition": 2}), id="partition at replicas"),
        pytest.param(lws(rollout={"partition": 9}), id="partition above replicas"),
        pytest.param(lws(replicas=0, rollout={"maxUnavailable": "25%", "maxSurge": "25%"}), id="no replicas"),
        pytest.param(lws(rollout={"maxUnavailable": 0, "maxSurge": 1}), id="surge only"),
        pytest.param(lws(rollout={"maxUnavailable": "0%", "maxSurge": "1%"}), id="a surge of one percent is one"),
        pytest.param(lws(rollout={"maxUnavailable": "100%"}), id="all at once"),
        pytest.param(lws(replicas=None), id="null replicas"),
        pytest.param(lws(rolloutStrategy=None), id="null strategy"),
        pytest.param(subgroups(2), id="subgroups of two"),
        pytest.param(subgroups(2, "LeaderExcluded", 5), id="leader excluded"),
        pytest.param(subgroups(1, "LeaderExcluded"), id="subgroups of one"),
        pytest.param(subgroups(3, "LeaderExcluded"), id="one subgroup of all workers"),
        pytest.param(subgroups(4), id="one subgroup of all pods"),
        pytest.param(lws(replicas=1000000, template={"size": 1}), id="as many replicas as can be"),
        pytest.param(lws(replicas=1, template={"size": 2**31 - 1}), id="as many pods as can be"),
        pytest.param(lws(template={"leaderTemplate": POD}), id="leader template"),
    ],
)
def test_valid_object_is_accepted(obj: dict[str, Any]) -> None:
    """A valid object is accepted (R-VAL-27)."""
    assert errors(obj) == []


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            lws(replicas=-1), ["spec.replicas: Invalid value: -1: replicas must be equal or greater than 0"], id="3"
        ),
        pytest.param(
            lws(replicas=1000001),
            ["spec.replicas: Invalid value: 1000001: replicas must be equal or less than 1000000"],
            id="4",
        ),
        pytest.param(
            lws(template={"size": 0}),
            ["spec.leaderWorkerTemplate.size: Invalid value: 0: size must be equal or greater than 1"],
            id="5",
        ),
        pytest.param(
            lws(replicas=100000, template={"size": 100000}),
            [
                (
                    "spec.replicas: Invalid value: 100000: the product of replicas and worker replicas must not exceed"
                    " 2147483647"
                )
            ],
            id="6",
        ),
        pytest.param(
            lws(rollout={"maxUnavailable": "some"}),
            [
                f'{UNAVAILABLE}: Invalid value: "some": {PERCENT_TEXT}',
                f'{UNAVAILABLE}: Invalid value: "some": invalid value',
                f'{UNAVAILABLE}: Invalid value: "some": {NOT_ZERO}',
            ],
            id="7, 14, 15",
        ),
        pytest.param(
            lws(rollout={"maxUnavailable": -1}),
            [f"{UNAVAILABLE}: Invalid value: -1: must be greater than or equal to 0"],
            id="8",
        ),
        pytest.param(
            lws(rollout={"maxUnavailable": "200%"}),
            [f'{UNAVAILABLE}: Invalid value: "200%": must not be greater than 100%'],
            id="9",
        ),
        pytest.param(
            lws(rollout={"maxSurge": "1"}),
            [f'{SURGE}: Invalid value: "1": {PERCENT_TEXT}', f'{SURGE}: Invalid value: "1": invalid value'],
            id="10, 14",
        ),
        pytest.param(
            lws(rollout={"maxUnavailable": 0, "maxSurge": "1"}),
            [
                f'{SURGE}: Invalid value: "1": {PERCENT_TEXT}',
                f'{SURGE}: Invalid value: "1": invalid value',
                f"{UNAVAILABLE}: Invalid value: 0: {NOT_ZERO}",
            ],
            id="10, 14, 15",
        ),
        pytest.param(
            lws(rollout={"maxSurge": -2}),
            [f"{SURGE}: Invalid value: -2: must be greater than or equal to 0"],
            id="11",
        ),
        pytest.param(
            lws(rollout={"maxSurge": "101%"}),
            [f'{SURGE}: Invalid value: "101%": must not be greater than 100%'],
            id="12",
        ),
        pytest.param(
            lws(rollout={"partition": -1}),
            [f"{PARTITION}: Invalid value: -1: must be greater than or equal to 0"],
            id="13",
        ),
        pytest.param(
            lws(rollout={"maxUnavailable": 0}), [f"{UNAVAILABLE}: Invalid value: 0: {NOT_ZERO}"], id="15 with numbers"
        ),
        pytest.param(
            lws(rollout={"maxUnavailable": "25%"}),
            [f'{UNAVAILABLE}: Invalid value: "25%": {NOT_ZERO}'],
            id="15 with a percentage that floors to 0",
        ),
        pytest.param(
            subgroups(-1),
            [f"{SUBGROUP}: Invalid value: -1: subGroupSize must be equal or greater than 1"],
            id="16 hides 17 to 19",
        ),
        pytest.param(
            subgroups(3, group_size=5),
            [f"{SUBGROUP}: Invalid value: 3: size or size - 1 must be divisible by subGroupSize"],
            id="17",
        ),
        pytest.param(
            subgroups(5),
            [
                f"{SUBGROUP}: Invalid value: 5: size or size - 1 must be divisible by subGroupSize",
                f"{SUBGROUP}: Invalid value: 5: subGroupSize cannot be larger than size",
            ],
            id="17, 18",
        ),
        pytest.param(
            subgroups(2, "LeaderExcluded"),
            [
                f"{SUBGROUP}: Invalid value: 2: size-1 must be divisible by subGroupSize when using LeaderExcluded",
            ],
            id="19",
        ),
        pytest.param(
            subgroups(None),
            [f"{SUBGROUP}: Required value: subGroupSize is required"],
            id="20 null",
        ),
        pytest.param(
            subgroups(0), [f"{SUBGROUP}: Invalid value: 0: subGroupSize must be equal or greater than 1"], id="20 zero"
        ),
        pytest.param(
            lws(metadata={"annotations": {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"}}),
            [
                (
                    "metadata.annotations.leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: Invalid value:"
                    ' "rack": cannot have subgroup-exclusive-topology without subGroupSize set'
                )
            ],
            id="21",
        ),
        pytest.param(
            lws(template={"leaderTemplate": {"spec": {"containers": []}}, "workerTemplate": {}}),
            [
                f"spec.leaderWorkerTemplate.{field}.spec.containers: Required value: a pod needs at least one container"
                for field in ("leaderTemplate", "workerTemplate")
            ],
            id="Q-34",
        ),
    ],
)
def test_invalid_object_is_rejected_on_create_and_update(obj: dict[str, Any], expected: list[str]) -> None:
    """R-VAL-3 to R-VAL-21, N-VAL-10 and N-AT-24 define the errors."""
    assert errors(obj) == expected
    assert set(expected) <= set(errors(obj, lws()))


def test_several_errors_are_in_one_response() -> None:
    obj = lws(metadata={"name": "2cube"}, rollout={"maxUnavailable": -1, "maxSurge": "200%"})
    message = aggregate(validate_leaderworkerset(decode(obj)))
    assert message.startswith('[metadata.name: Invalid value: "2cube": a DNS-1035 label must consist of')
    assert message.endswith(
        f", {UNAVAILABLE}: Invalid value: -1: must be greater than or equal to 0,"
        f' {SURGE}: Invalid value: "200%": must not be greater than 100%]'
    )


IMMUTABLE = f"{SUBGROUP}: Invalid value: 1: field is immutable"
ADDED = f"{SUBGROUP}: Invalid value: 2: cannot enable subGroupSize after the lws is already created"
REMOVED = f"{SUBGROUP}: Invalid value: 2: cannot remove subGroupSize after enabled"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(subgroups(2), subgroups(1), [IMMUTABLE], id="22"),
        pytest.param(subgroups(None), subgroups(2), [], id="22 a size where there was none"),
        pytest.param(lws(), subgroups(2), [ADDED], id="23"),
        pytest.param(subgroups(2), lws(), [REMOVED], id="24"),
        pytest.param(
            lws(),
            lws(networkConfig={"subdomainPolicy": None}),
            ["spec.networkConfig.subdomainPolicy: Invalid value: null: cannot set subdomainPolicy as null"],
            id="25",
        ),
        pytest.param(subgroups(2), subgroups(2, group_size=6), [], id="size with subgroups"),
        pytest.param(subgroups(2, group_size=5), subgroups(2, "LeaderExcluded", 5), [], id="subgroup type (1.2)"),
        pytest.param(lws(), lws(template={"size": 9}), [], id="size"),
        pytest.param(lws(), lws(networkConfig={"subdomainPolicy": "UniquePerReplica"}), [], id="subdomain policy"),
        pytest.param(lws(), lws(networkConfig=None), [], id="subdomain policy to null"),
        pytest.param(lws(template={"leaderTemplate": POD}), lws(), [], id="leader template removed"),
        pytest.param(
            lws(template={"workerTemplate": {}}),
            lws(template={"workerTemplate": {}}, metadata={"finalizers": ["a.b/c"]}),
            [],
            id="a stored template without containers does not block other edits",
        ),
    ],
)
def test_invalid_updates_are_rejected(old: dict[str, Any], new: dict[str, Any], expected: list[str]) -> None:
    """Invalid updates are rejected (R-VAL-22 to R-VAL-25, R-VAL-27, N-VAL-10)."""
    assert errors(new, old) == expected


QUARTER = {"maxUnavailable": "25%", "maxSurge": 0}


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(lws(rollout=QUARTER, replicas=2), id="what the scale subresource left of 25%"),
        pytest.param(lws(template={"size": 4000}, replicas=1_000_000), id="replicas x size beyond the limit"),
        pytest.param(lws(rollout={"maxUnavailable": "half", "partition": -1}), id="stored without a webhook"),
        pytest.param(subgroups(3, group_size=5), id="a subgroup size that does not divide"),
        pytest.param(lws(groupReplacementPolicy="Immediate"), id="a policy that its identity lacks"),
    ],
)
def test_differs_from_upstream_stored_value_blocks_no_update(stored: dict[str, Any]) -> None:
    """Invalid values that are already stored do not block updates of a LeaderWorkerSet (R-VAL, ADR 29).

    Invalid values can be stored through `/scale`, or while the webhook is not installed.
    """
    edited = copy.deepcopy(stored)
    edited["metadata"] = {**stored["metadata"], "labels": {"team": "a"}, "finalizers": ["a.b/c"]}
    edited["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [{"name": "c", "image": "2"}]}}

    assert errors(stored) != []
    assert errors(edited, stored) == []


def test_new_error_next_to_a_stored_one_is_rejected() -> None:
    stored = lws(rollout=QUARTER)
    edited = lws(rollout=QUARTER | {"partition": -1}, template={"size": 0})

    assert errors(edited, stored) == [
        "spec.leaderWorkerTemplate.size: Invalid value: 0: size must be equal or greater than 1",
        f"{PARTITION}: Invalid value: -1: must be greater than or equal to 0",
    ]


def test_other_invalid_value_of_a_stored_field_is_rejected() -> None:
    edited = lws(rollout={"maxUnavailable": "10%"})

    assert errors(edited, lws(rollout=QUARTER)) == [f'{UNAVAILABLE}: Invalid value: "10%": {NOT_ZERO}']
