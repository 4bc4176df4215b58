"""Tests each validation error of `spec.scheduling`, with its field, message and order."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core.admission.leaderworkerset import validate_leaderworkerset
from leaderworkerset.core.gang.gangs import AUTO, SCHEDULING, Gangs, served_name
from leaderworkerset.core.gang.native import POD_GROUPS, WORKLOADS
from leaderworkerset.core.policies.gang import Gang, NoGang, Support

SERVED = [served_name(kind) for kind in SCHEDULING]
KUBERNETES = Gangs(default="kubernetes", served=SERVED, is_enabled=True)
VOLCANO = Gangs(default="volcano", is_enabled=True)
GANG: JSONObject = {"schedulingPolicy": {"gang": {}}}
BASIC: JSONObject = {"schedulingPolicy": {"basic": {}}}
TOPOLOGY: JSONObject = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


def lws(scheduling: JSONObject | None = None, **fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet. By default, `scheduling` is empty."""
    spec = fields.pop("spec", {}) | {"scheduling": {} if scheduling is None else scheduling}
    return builders.leaderworkerset_object(spec=spec, **fields)


def plain(**fields: Any) -> JSONObject:
    return builders.leaderworkerset_object(**fields)


def errors(new: JSONObject, old: JSONObject | None = None, gang: Gang = KUBERNETES) -> list[str]:
    decoded = [leaderworkerset.decode(one) if one is not None else None for one in (new, old)]
    assert decoded[0] is not None
    return [str(error) for error in validate_leaderworkerset(decoded[0], decoded[1], gang)]


def templates(leader: JSONObject | None = None, worker: JSONObject | None = None) -> JSONObject:
    """Return both templates with additional pod spec fields."""
    made = {}
    for name, fields in (("leaderTemplate", leader), ("workerTemplate", worker)):
        if fields is not None:
            template = builders.pod_template()
            made[name] = template | {"spec": template["spec"] | fields}
    return made


@pytest.mark.parametrize(
    "scheduling",
    [
        {},
        {"replica": {}},
        GANG | TOPOLOGY | {"disruptionMode": {"all": {}}},
        BASIC | {"disruptionMode": {"single": {}}},
        {"replica": GANG | TOPOLOGY},
        {"replica": {"leader": {}}},
        {"replica": {"leader": {"schedulingPolicy": {"gang": {"minCount": 1}}}, "worker": GANG}},
    ],
)
def test_every_scheduling_level_is_accepted(scheduling: JSONObject) -> None:
    """The level is accepted with each provider name (N-API-10, N-API-13)."""
    for default in ("kubernetes", "native", AUTO):
        assert errors(lws(scheduling), gang=Gangs(default=default, served=SERVED, is_enabled=True)) == []


@pytest.mark.parametrize(("new", "old", "verb"), [(plain(), lws(), "remove"), (lws(), plain(), "add")])
def test_scheduling_cannot_be_added_or_removed(new: JSONObject, old: JSONObject, verb: str) -> None:
    """Scheduling cannot be added or removed after creation (N-SCH-VAL-1, N-SCH-VAL-8)."""
    assert errors(new, old) == [f"spec.scheduling: Forbidden: cannot {verb} scheduling after creation"]


@pytest.mark.parametrize("gang", [NoGang(), Gangs(default="kubernetes", served=SERVED)])
def test_scheduling_requires_the_gate_unless_stored(gang: Gang) -> None:
    """Scheduling requires the feature gate, unless it is already stored (N-SCH-VAL-2, N-K8S-18, N-CFG-4)."""
    text = "spec.scheduling: Forbidden: requires the WorkloadAwareScheduling feature gate"

    assert errors(lws(), gang=gang) == errors(lws(), plain(), gang) == [text]
    assert errors(lws(replicas=5), lws(), gang) == []


@pytest.mark.parametrize(
    ("gang", "text"),
    [
        (NoGang(Support(is_enabled=True)), "Required value: requires a configured scheduler provider"),
        (
            Gangs(default="coscheduling", is_enabled=True),
            'Unsupported value: "coscheduling": supported values: "volcano", "kubernetes"',
        ),
        (
            Gangs(default="kubernetes", is_enabled=True),
            (
                "Forbidden: scheduling.k8s.io/v1beta1 Workload API is not available:"
                ' no matches for kind "Workload" in version "scheduling.k8s.io/v1beta1"'
            ),
        ),
        (
            Gangs(default="native", served=[served_name(WORKLOADS)], is_enabled=True),
            (
                "Forbidden: scheduling.k8s.io/v1beta1 PodGroup API is not available:"
                ' no matches for kind "PodGroup" in version "scheduling.k8s.io/v1beta1"'
            ),
        ),
    ],
    ids=["no provider", "another provider", "no Workloads", "no PodGroups"],
)
def test_scheduling_requires_support_of_manager_and_cluster(gang: Gang, text: str) -> None:
    """Other fields of a stored object can be changed (N-SCH-VAL-3, N-SCH-VAL-5, N-SCH-VAL-6, N-CFG-4)."""
    assert errors(lws(), gang=gang) == [f"spec.scheduling: {text}"]
    assert errors(lws(replicas=5), lws(), gang) == []
    assert f"spec.scheduling: {text}" in errors(lws({"replica": TOPOLOGY}), lws(), gang)


def test_served_name_has_group_version_and_kind() -> None:
    assert served_name(POD_GROUPS) == "scheduling.k8s.io/v1beta1 PodGroup"


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        ({"replica": GANG}, []),
        (
            {"replica": GANG | {"worker": {}}},
            [
                (
                    'spec.scheduling: Invalid value: ["replica","role"]: '
                    "exactly one active scheduling level is required, got [replica role]"
                )
            ],
        ),
        (GANG, ["spec.scheduling: Forbidden: the Volcano provider supports the typed API only at replica level"]),
        (
            {"replica": BASIC},
            ["spec.scheduling.replica.schedulingPolicy: Forbidden: the Volcano provider does not support Basic policy"],
        ),
        (
            {"replica": TOPOLOGY | {"disruptionMode": {"all": {}}}},
            [
                (
                    "spec.scheduling.replica.schedulingConstraints: Forbidden:"
                    " the Volcano provider does not support typed scheduling constraints"
                ),
                (
                    "spec.scheduling.replica.disruptionMode: Forbidden:"
                    " the Volcano provider does not support typed disruption mode"
                ),
            ],
        ),
        (
            {"replica": GANG | {"worker": {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}}},
            [
                (
                    "spec.scheduling.replica.worker.resourceClaims: Forbidden:"
                    " the Volcano provider does not support shared resource claims"
                )
            ],
        ),
    ],
)
def test_volcano_supports_groups_of_one_replica_only(scheduling: JSONObject, expected: list[str]) -> None:
    """Volcano supports only groups with one replica (N-SCH-VAL-4)."""
    assert errors(lws(scheduling), gang=VOLCANO) == expected


@pytest.mark.parametrize(
    ("scheduling", "levels"),
    [
        (GANG | {"replica": {}}, "lws replica"),
        (TOPOLOGY | {"replica": BASIC | {"worker": {}}}, "lws replica role"),
        ({"replica": GANG | {"leader": {}}}, "replica role"),
    ],
)
def test_exactly_one_scheduling_level_is_permitted(scheduling: JSONObject, levels: str) -> None:
    """No other error is reported (N-SCH-VAL-9)."""
    quoted = ",".join(f'"{level}"' for level in levels.split())
    expected = f"[{quoted}]: exactly one active scheduling level is required, got [{levels}]"

    assert errors(lws(scheduling, size=1)) == [f"spec.scheduling: Invalid value: {expected}"]


def test_scheduling_level_is_immutable() -> None:
    """The scheduling level is immutable (N-SCH-VAL-10)."""
    expected = "spec.scheduling: Forbidden: cannot switch the active scheduling level after creation"

    assert errors(lws(BASIC), lws()) == [expected]
    assert errors(lws({"replica": GANG}), lws()) == []


def test_priority_of_the_pods_is_immutable() -> None:
    """The priority of the pods is immutable (N-SCH-VAL-11)."""
    low, high = (lws(template=templates(worker={"priorityClassName": name})) for name in ("low", "high"))
    text = "cannot change priorityClassName while workload-aware scheduling is configured"

    assert errors(high, low) == [f"spec.leaderWorkerTemplate: Forbidden: {text}"]
    assert errors(high, high) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (BASIC, "schedulingPolicy"),
        (GANG | TOPOLOGY, "schedulingConstraints"),
        (GANG | {"disruptionMode": {"all": {}}}, "disruptionMode"),
    ],
)
def test_immutable_fields_of_pod_groups_are_rejected(change: JSONObject, field: str) -> None:
    """The change is rejected before the Workload API rejects it (N-SCH-VAL-21)."""
    assert errors(lws(change), lws(GANG)) == [f"spec.scheduling.{field}: Forbidden: field is immutable"]
    assert errors(lws(GANG | {"disruptionMode": {"single": {}}}), lws(GANG)) == []


CLAIM = {"name": "net", "resourceClaimName": "shared"}


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        (
            {"replica": {"schedulingPolicy": {}}},
            "replica.schedulingPolicy: Invalid value: []: exactly one of basic and gang",
        ),
        (
            {"schedulingPolicy": {"basic": {}, "gang": {}}},
            'schedulingPolicy: Invalid value: ["basic","gang"]: exactly one of basic and gang',
        ),
        ({"disruptionMode": {}}, "disruptionMode: Invalid value: []: exactly one of single and all"),
        (
            {"schedulingConstraints": {"topology": [{"key": "a b"}]}},
            'schedulingConstraints.topology[0].key: Invalid value: "a b"',
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "schedulingConstraints.topology: Too many: must have at most 1 item",
        ),
        (
            {"replica": {"worker": {"resourceClaims": [{"name": "net"}]}}},
            "replica.worker.resourceClaims[0]: Invalid value: []: exactly one of resourceClaimName and",
        ),
        (
            {"replica": {"worker": {"resourceClaims": [CLAIM | {"name": "A"}]}}},
            'replica.worker.resourceClaims[0].name: Invalid value: "A"',
        ),
        (
            {"replica": {"worker": {"resourceClaims": [CLAIM | {"resourceClaimName": "A"}]}}},
            'replica.worker.resourceClaims[0].resourceClaimName: Invalid value: "A"',
        ),
        (
            {"replica": {"worker": {"resourceClaims": [CLAIM, CLAIM]}}},
            'replica.worker.resourceClaims[1].name: Duplicate value: "net"',
        ),
        (
            {"replica": {"worker": {"resourceClaims": [CLAIM | {"name": f"n{index}"} for index in range(5)]}}},
            "replica.worker.resourceClaims: Too many: must have at most 4 items",
        ),
    ],
)
def test_scheduling_has_the_schema_of_workloads(scheduling: JSONObject, expected: str) -> None:
    """Scheduling has the same schema as Workloads (N-API-11, N-SCH-VAL-12)."""
    assert any(error.startswith(f"spec.scheduling.{expected}") for error in errors(lws(scheduling)))


@pytest.mark.parametrize("path", ["schedulingPolicy", "replica.schedulingPolicy"])
def test_min_group_count_is_rejected(path: str) -> None:
    """`minGroupCount` is rejected (N-SCH-VAL-13)."""
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    scheduling = policy if path == "schedulingPolicy" else {"replica": policy}

    assert errors(lws(scheduling)) == [
        f"spec.scheduling.{path}.gang.minGroupCount: Forbidden: minGroupCount is not supported"
    ]


def test_scheduling_of_roles_requires_workers() -> None:
    """Scheduling of roles requires workers (N-SCH-VAL-14)."""
    text = "leader/worker scheduling requires size >= 2"

    assert errors(lws({"replica": {"leader": {}}}, size=1)) == [
        f"spec.leaderWorkerTemplate.size: Invalid value: 1: {text}"
    ]


@pytest.mark.parametrize(("role", "count", "whole"), [("leader", 2, 1), ("worker", 4, 3)])
def test_minimum_of_a_role_equals_its_pods(role: str, count: int, whole: int) -> None:
    """The minimum of a role equals the number of its pods (N-SCH-VAL-15)."""
    path = f"spec.scheduling.replica.{role}.schedulingPolicy.gang.minCount"

    def asking(number: int) -> JSONObject:
        return lws({"replica": {role: {"schedulingPolicy": {"gang": {"minCount": number}}}}}, size=4)

    assert errors(asking(count)) == [f"{path}: Invalid value: {count}: must equal complete leaf membership {whole}"]
    assert errors(asking(whole)) == []


@pytest.mark.parametrize(
    ("scheduling", "refused"),
    [({}, True), (GANG, True), (BASIC, False), ({"replica": BASIC}, False), ({"replica": {"leader": GANG}}, False)],
)
def test_gang_of_leader_and_workers_conflicts_with_leader_ready(scheduling: JSONObject, refused: bool) -> None:
    """A gang of leader and workers conflicts with `LeaderReady` (N-SCH-VAL-16)."""
    text = "a gang containing the leader and workers is incompatible with startupPolicy LeaderReady"
    found = errors(lws(scheduling, spec={"startupPolicy": "LeaderReady"}))

    assert found == ([f"spec.scheduling: Forbidden: {text}"] if refused else [])


@pytest.mark.parametrize(
    ("scheduling", "refused"),
    [({}, True), (BASIC | TOPOLOGY, True), (BASIC, False), ({"replica": {"worker": GANG}}, True)],
)
def test_exclusive_placement_conflicts_with_gangs_and_topology(scheduling: JSONObject, refused: bool) -> None:
    """Exclusive placement conflicts with gangs and topology (N-SCH-VAL-17)."""
    text = "gang scheduling or workload topology constraints cannot be combined with exclusive topology in alpha"
    found = errors(lws(scheduling, metadata={"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}}))

    assert found == ([f"spec.scheduling: Forbidden: {text}"] if refused else [])


def test_all_pods_must_have_one_priority() -> None:
    """All pods must have the same priority (N-SCH-VAL-18, N-K8S-15)."""
    text = "all managed pod templates must use the same priorityClassName"
    found = errors(lws(template=templates({"priorityClassName": "high"}, {})))

    assert found == [f"spec.scheduling: Invalid value: null: {text}"]


def test_templates_must_not_name_a_scheduling_group() -> None:
    """Templates must not contain a scheduling group (N-SCH-VAL-19)."""
    text = "managed pod templates must not set spec.schedulingGroup"

    assert errors(lws(template=templates(worker={"schedulingGroup": {"podGroupName": "x"}}))) == [
        f"spec.scheduling: Forbidden: {text}"
    ]


def test_claims_must_match_the_pods_of_their_role() -> None:
    """Claims must match the pods of their role (N-SCH-VAL-20, N-API-12)."""
    both = {"leader": {"resourceClaims": [CLAIM]}, "worker": {"resourceClaims": [CLAIM]}}
    text = "must have a matching reference in every member pod template"

    assert errors(lws({"replica": both}, template=templates({}, {"resourceClaims": [CLAIM]}))) == [
        f'spec.scheduling.replica.leader.resourceClaims[0]: Invalid value: "net": {text}'
    ]
    assert errors(lws({"replica": both}, template=templates(worker={"resourceClaims": [CLAIM]}))) == []


def test_scheduling_errors_are_all_reported_in_order() -> None:
    """All scheduling errors are reported in order (N-SCH-VAL-22)."""
    old = lws(GANG)
    new = lws(
        {"replica": {"leader": {"schedulingPolicy": {"gang": {"minCount": 3}}}, "worker": {"disruptionMode": {}}}},
        size=1,
        template=templates({"schedulingGroup": {"podGroupName": "x"}, "priorityClassName": "a"}, {}),
    )

    assert [error.partition(":")[0] for error in errors(new, old)] == [
        "spec.scheduling",
        "spec.scheduling.replica.worker.disruptionMode",
        "spec.leaderWorkerTemplate.size",
        "spec.scheduling.replica.leader.schedulingPolicy.gang.minCount",
        "spec.scheduling",
        "spec.scheduling",
    ]


def test_scheduling_conflicts_with_a_gang_scheduler_annotation() -> None:
    (error,) = errors(lws(metadata={"annotations": {labels.GANG_SCHEDULER: "none"}}))

    assert (
        "gang-scheduler]: Forbidden: cannot be combined with spec.scheduling, which defines how groups are scheduled"
        in error
    )
