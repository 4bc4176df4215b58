"""Tests the Workload and the PodGroup that `spec.scheduling` requires before the leaders."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests import builders, scheduled
from tests.decisions import reconcile
from tests.scheduled import GANG, REPLICA, ROLES, WHOLE

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Apply, Create, Delete, Finally, Patch, Plan, PutStatus
from leaderworkerset.api import labels
from leaderworkerset.core.gang.gangs import SCHEDULING, Gangs
from leaderworkerset.core.gang.native import WORKLOADS
from leaderworkerset.core.leaderworkerset import groupstate
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.policies.gang import NO_GANG, Gang
from leaderworkerset.core.policies.policy import SchedulingObjects


def plan_for(obj: JSONObject, *objects: JSONObject, gang: Gang = GANG, **fields: Any) -> Plan:
    scheduling: dict[str, Any] = {"objects": objects, "kinds": SCHEDULING}
    scheduling |= {name: fields.pop(name) for name in ("kinds", "unused") if name in fields}
    known: dict[str, Any] = {"revisions": [builders.revision(obj)]}
    observed = ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        scheduling=SchedulingObjects(**scheduling),
        service=builders.SETTLED,
        **known | fields,
    )
    return reconcile(observed, builders.NOW, gang)


def writes(plan: Plan) -> list[Create | Patch | Delete]:
    """Return the writes of scheduler objects."""
    found = [one for action in plan.actions if isinstance(action, Finally) for one in action.actions]
    return [one for one in found if isinstance(one, Create | Patch | Delete)]


def created(plan: Plan) -> dict[str, JSONObject]:
    return {
        f"{one.resource.kind} {meta.name(one.object)}": one.object for one in writes(plan) if isinstance(one, Create)
    }


def condition(plan: Plan) -> JSONObject | None:
    """Return the condition in a plan."""
    found = [one.object["status"]["conditions"] for one in plan.actions if isinstance(one, PutStatus)]
    return next((one for conditions in found for one in conditions if one["type"] == "WorkloadSchedulingCreated"), None)


def pod_group(obj: JSONObject, **fields: Any) -> JSONObject:
    """Return the new PodGroup of the LeaderWorkerSet."""
    (made,) = created(plan_for(obj, scheduled.workload_of(obj), **fields)).values()
    return scheduled.stored(made)


def groups(obj: JSONObject, *sizes: int) -> dict[str, GroupFacts]:
    """Return groups of these sizes."""
    leaders = (
        builders.leader_pod(obj, index, annotations={labels.SIZE: str(size)}) for index, size in enumerate(sizes)
    )
    return builders.by_leader(groupstate.describe(leader, None) for leader in leaders)


@pytest.mark.parametrize(
    ("scheduling", "templates"),
    [
        (REPLICA, [{"name": "replica", "schedulingPolicy": {"gang": {"minCount": 3}}}]),
        ({"replica": {"schedulingPolicy": {"basic": {}}}}, [{"name": "replica", "schedulingPolicy": {"basic": {}}}]),
        (WHOLE, [{"name": "lws", "schedulingPolicy": {"gang": {"minCount": 6}}}]),
        (
            {"disruptionMode": {"all": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}},
            [
                {
                    "name": "lws",
                    "schedulingPolicy": {"basic": {}},
                    "schedulingConstraints": {"topology": [{"key": "rack"}]},
                    "disruptionMode": {"all": {}},
                }
            ],
        ),
        (
            {
                "replica": {
                    "leader": {"disruptionMode": {"single": {}}},
                    "worker": WHOLE | {"resourceClaims": [{"name": "net", "resourceClaimTemplateName": "t"}]},
                }
            },
            [
                {"name": "leader", "schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}},
                {
                    "name": "worker",
                    "schedulingPolicy": {"gang": {"minCount": 2}},
                    "resourceClaims": [{"name": "net", "resourceClaimTemplateName": "t"}],
                },
            ],
        ),
    ],
)
def test_workload_has_a_template_for_each_group_of_the_level(scheduling: JSONObject, templates: list[Any]) -> None:
    """The Workload is created before the leaders (N-K8S-6, N-K8S-7, N-API-14, N-API-15)."""
    obj = scheduled.lws(scheduling, replicas=2, size=3)

    plan = plan_for(obj)

    (workload,) = created(plan).values()
    assert meta.labels(workload) == {labels.NAME: "web"}
    assert meta.controller_of(workload) == meta.controller_reference(obj)
    assert workload["spec"] == {
        "controllerRef": {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "web"},
        "podGroupTemplates": templates,
    }
    order = [type(action) for action in plan.actions]
    assert order.index(Finally) < order.index(Apply)


def test_workload_has_the_priority_of_the_pods() -> None:
    """The Workload has the priority of its pods (N-K8S-15)."""
    worker = builders.pod_template()
    worker["spec"]["priorityClassName"] = "high"

    (workload,) = created(plan_for(scheduled.lws(REPLICA, template={"workerTemplate": worker}))).values()

    assert workload["spec"]["podGroupTemplates"][0]["priorityClassName"] == "high"


def test_leaders_are_annotated_with_level_and_workload() -> None:
    """Only the label is added to the template. Without the field, it is not added (N-K8S-2, N-AT-18)."""

    def annotations(obj: JSONObject) -> JSONObject:
        (apply,) = (one for one in plan_for(obj).actions if isinstance(one, Apply))
        found: JSONObject = apply.object["spec"]["template"]["metadata"]["annotations"]
        return found

    obj = scheduled.lws(ROLES)
    level = {labels.WORKLOAD_AWARE_SCHEDULING: "role", labels.WORKLOAD_NAME: meta.name(scheduled.workload_of(obj))}
    assert annotations(obj) == annotations(builders.leaderworkerset_object()) | level
    assert created(plan_for(builders.leaderworkerset_object())) == {}


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
def test_correct_workload_is_not_written(identity: str) -> None:
    """Groups with random keys have the same Workload (N-K8S-7)."""
    obj = scheduled.lws(REPLICA, spec={"groupIdentity": identity})

    assert writes(plan_for(obj, scheduled.workload_of(obj))) == []


def test_minimum_of_a_template_follows_the_size() -> None:
    """The minimum in a template equals the size (N-K8S-7, N-K8S-8)."""
    workload = scheduled.workload_of(scheduled.lws(ROLES, size=3))

    (patch,) = writes(plan_for(scheduled.lws(ROLES, size=5), workload))

    assert isinstance(patch, Patch)
    assert [one["schedulingPolicy"]["gang"]["minCount"] for one in patch.patch["spec"]["podGroupTemplates"]] == [1, 4]
    assert patch.patch["metadata"]["resourceVersion"] == "1"


def test_set_level_has_one_pod_group() -> None:
    """The `LeaderWorkerSet` level has a single PodGroup (N-K8S-4, N-K8S-8a)."""
    obj = scheduled.lws(WHOLE | {"disruptionMode": {"all": {}}}, replicas=2, size=3)
    workload = scheduled.workload_of(obj)

    made = pod_group(obj)

    assert meta.name(made) == f"{meta.name(workload)}-lws"
    assert meta.labels(made) == {labels.NAME: "web", labels.SCHEDULING_LEVEL: "lws"}
    assert made["metadata"]["ownerReferences"] == [
        meta.controller_reference(obj),
        {
            "apiVersion": workload["apiVersion"],
            "kind": "Workload",
            "name": meta.name(workload),
            "uid": meta.uid(workload),
        },
    ]
    assert made["spec"] == {
        "workloadRef": {"workloadName": meta.name(workload), "templateName": "lws"},
        "schedulingPolicy": {"gang": {"minCount": 6}},
        "disruptionMode": {"all": {}},
    }
    assert writes(plan_for(obj, workload, made)) == []


@pytest.mark.parametrize("scheduling", [WHOLE, {"schedulingPolicy": {"basic": {}}}])
def test_pod_group_of_the_set_is_deleted_without_replicas(scheduling: JSONObject) -> None:
    """The PodGroup is recreated together with the first group (N-K8S-8)."""
    obj, none = (scheduled.lws(scheduling, replicas=count) for count in (2, 0))
    workload, made = scheduled.workload_of(none), pod_group(obj)
    policy = workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"]

    (delete,) = writes(plan_for(none, workload, made, unused=[made]))

    assert policy == ({"gang": {"minCount": 1}} if scheduling is WHOLE else {"basic": {}})
    assert isinstance(delete, Delete)
    assert (delete.key, delete.uid) == (meta.key(made), meta.uid(made))
    assert created(plan_for(obj, scheduled.workload_of(obj))).keys() == {f"PodGroup {meta.name(made)}"}


@pytest.mark.parametrize(
    ("replicas", "size", "sizes", "minimum"),
    [
        (3, 2, (2, 2), 6),
        (4, 2, (2, 2, 2), 8),
        (3, 4, (2, 2, 2), 6),
        (3, 4, (2, 2), 6),
        (3, 4, (2, 2, 4), 8),
        (3, 4, (4, 4, 4, 2), 12),
        (3, 2, (4, 4, 4), 6),
        (2, 2, (2, 2, 2), 4),
    ],
    ids=["restart", "scaled up", "resized", "first gone", "first back", "surge", "smaller", "scaled down"],
)
def test_minimum_of_the_set_is_limited_to_possible_pods(
    replicas: int, size: int, sizes: Sequence[int], minimum: int
) -> None:
    """During a rollout with a different size, old groups retain their number of pods (N-AT-10, N-K8S-8)."""
    before = scheduled.lws(WHOLE, replicas=1, size=1)
    obj = scheduled.lws(WHOLE, replicas=replicas, size=size)

    found = writes(plan_for(obj, scheduled.workload_of(obj), pod_group(before), groups=groups(obj, *sizes)))

    assert [one.patch["spec"] for one in found if isinstance(one, Patch)] == [
        {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    ]


def test_minimum_of_the_set_excludes_gated_old_leaders() -> None:
    """Old leaders retain their gate. A Deployment without a budget retains them until the new group is ready.

    Rules N-AT-10, N-AT-22.
    """
    before = scheduled.lws(WHOLE, replicas=1, size=1)
    obj = scheduled.lws(WHOLE, replicas=3, size=2, spec={"groupIdentity": "Hash"})
    old = [builders.hash_leader(obj, name, gated=True, key="old") for name in "ab"]
    live = [builders.hash_leader(obj, "c", key="old"), builders.hash_leader(obj, "d")]
    described = {meta.name(leader): groupstate.describe(leader, None) for leader in (*old, *live)}

    changes = writes(plan_for(obj, scheduled.workload_of(obj), pod_group(before), groups=described))

    minima = [
        one.patch["spec"]["schedulingPolicy"] for one in changes if isinstance(one, Patch) and "spec" in one.patch
    ]
    assert {"gang": {"minCount": 4}} in minima


def test_unused_pod_groups_are_deleted() -> None:
    """Only the controller's own PodGroups are deleted, once each (N-K8S-13, N-AT-6)."""
    obj = scheduled.lws(REPLICA)
    own = meta.controller_reference(obj)
    owners = {"old": [own], "another's": [{**own, "uid": "other"}], "nobody's": []}
    made = [
        scheduled.stored({"metadata": {"name": name, "namespace": "default", "ownerReferences": found}})
        for name, found in owners.items()
    ]
    ending = scheduled.stored(made[0], name="ending", deletionTimestamp="2026-03-01T12:00:00Z")

    found = writes(plan_for(obj, scheduled.workload_of(obj), unused=[*made, ending]))

    assert [one.key.name for one in found if isinstance(one, Delete)] == ["old"]


def altered(obj: JSONObject, **spec: Any) -> JSONObject:
    return obj | {"spec": obj["spec"] | spec}


def of_other_uid(obj: JSONObject) -> JSONObject:
    (owner, *others) = obj["metadata"]["ownerReferences"]
    return scheduled.stored(obj, ownerReferences=[owner | {"uid": "other"}, *others])


OBJ = scheduled.lws(WHOLE)
WORKLOAD = scheduled.workload_of(OBJ)
NAME = meta.name(WORKLOAD)
POD_GROUP = pod_group(OBJ)
ENDS = {"deletionTimestamp": "2026-03-01T12:00:00Z"}
OTHER_TEMPLATE = [{"name": "lws", "schedulingPolicy": {"basic": {}}}]


@pytest.mark.parametrize(
    ("objects", "reason", "message"),
    [
        (
            [of_other_uid(WORKLOAD)],
            "WorkloadCreateFailed",
            f"Workload {NAME} already exists but is not controlled by this LeaderWorkerSet UID",
        ),
        (
            [WORKLOAD, scheduled.stored(WORKLOAD, name="web-2")],
            "WorkloadCreateFailed",
            'multiple Workloads are controlled by LeaderWorkerSet default/web UID "uid-of-web"',
        ),
        (
            [scheduled.stored(WORKLOAD, name="web-2")],
            "WorkloadCreateFailed",
            f'owned Workload default/web-2 does not have the expected UID-qualified name "{NAME}"',
        ),
        ([scheduled.stored(WORKLOAD, **ENDS)], "WorkloadCreateFailed", f"Workload default/{NAME} is still terminating"),
        (
            [altered(WORKLOAD, podGroupTemplates=[])],
            "WorkloadCreateFailed",
            f"Workload default/{NAME} has immutable PodGroup template set drift",
        ),
        (
            [altered(WORKLOAD, podGroupTemplates=OTHER_TEMPLATE)],
            "WorkloadCreateFailed",
            f'Workload default/{NAME} has immutable scheduling configuration drift in template "lws"',
        ),
        (
            [WORKLOAD, altered(POD_GROUP, disruptionMode={"all": {}})],
            "PodGroupCreateFailed",
            f"PodGroup default/{NAME}-lws has immutable scheduling configuration drift",
        ),
        (
            [WORKLOAD, altered(POD_GROUP, workloadRef={})],
            "PodGroupCreateFailed",
            f"PodGroup default/{NAME}-lws has immutable scheduling configuration drift",
        ),
        (
            [WORKLOAD, of_other_uid(POD_GROUP)],
            "PodGroupCreateFailed",
            f"PodGroup default/{NAME}-lws has immutable scheduling configuration drift",
        ),
        (
            [WORKLOAD, scheduled.stored(POD_GROUP, **ENDS)],
            "PodGroupCreateFailed",
            f"PodGroup {NAME}-lws is still terminating",
        ),
    ],
)
def test_immutable_drift_is_reported_before_leaders_change(
    objects: list[JSONObject], reason: str, message: str
) -> None:
    """The plan contains a condition, an event, and an error that causes a retry (N-K8S-9, N-K8S-10)."""
    plan = plan_for(OBJ, *objects)

    assert plan.error == message
    (write,) = plan.actions
    assert isinstance(write, PutStatus)
    assert condition(plan) == {
        "type": "WorkloadSchedulingCreated",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-03-01T12:00:00Z",
        "observedGeneration": 1,
    }
    (event,) = write.on_success
    assert (event.type, event.reason, event.action, event.note) == ("Warning", reason, "Reconcile", message)
    reported = OBJ | {"status": write.object["status"]}
    assert plan_for(reported, *objects) == Plan(error=message)


def test_defaults_of_the_api_server_are_no_drift() -> None:
    """API server defaults do not count as drift (N-K8S-9)."""
    filled = {
        "disruptionMode": {"single": {}},
        "priority": 5,
        "preemptionPolicy": "Never",
        "priorityClassName": "default",
    }
    templates = [one | filled for one in WORKLOAD["spec"]["podGroupTemplates"]]

    assert writes(plan_for(OBJ, altered(WORKLOAD, podGroupTemplates=templates), altered(POD_GROUP, **filled))) == []


@pytest.mark.parametrize(("kinds", "lacking"), [((), "Workload"), ((WORKLOADS,), "PodGroup")])
def test_missing_scheduling_kinds_are_reported(kinds: Sequence[object], lacking: str) -> None:
    """Missing scheduling kinds are reported (N-K8S-10, N-117-5)."""
    text = f"scheduling.k8s.io/v1beta1 {lacking} API is not available: no matches for kind"
    plan = plan_for(OBJ, kinds=kinds)

    assert (plan.error or "").startswith(text)
    assert (condition(plan) or {})["reason"] == "APINotAvailable"


@pytest.mark.parametrize("gang", [NO_GANG, Gangs(default="coscheduling"), Gangs(default="built-in")])
def test_missing_scheduler_provider_is_reported(gang: Gang) -> None:
    """A missing scheduler provider is reported (N-K8S-10)."""
    plan = plan_for(OBJ, gang=gang)

    assert plan.error == "spec.scheduling requires a configured scheduler provider"
    assert (condition(plan) or {})["reason"] == "UnsupportedProviderCapability"


def test_stored_conflicting_levels_are_reported() -> None:
    """Conflicting stored levels are reported (N-SCH-VAL-9, N-K8S-10)."""
    plan = plan_for(scheduled.lws(WHOLE | {"replica": {}}))

    assert plan.error == "exactly one active scheduling level is required, got [lws replica]"
    assert (condition(plan) or {})["reason"] == "InvalidSchedulingConfiguration"
