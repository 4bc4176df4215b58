"""Tests the selection among several causes for each target, and the message without a known cause."""

import pytest
from msgspec.structs import replace
from tests.explanations.builders import (
    KEY,
    NOW,
    ago,
    conditions,
    container,
    ended,
    event,
    lws,
    node,
    observed,
    pending,
    placed,
    pod,
    ready,
    refused,
    waiting,
)
from tests.explanations.scenarios import SCENARIOS
from tests.explanations.situations import UPDATING

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, DEPLOYMENTS, LEASES, NODES, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api import labels
from localkube import wellknown
from lwsctl.diagnosis.catalogue import CATALOGUE
from lwsctl.diagnosis.diagnose import diagnose, worst
from lwsctl.diagnosis.document import document, headline, lines
from lwsctl.diagnosis.observed import QUEUED_WORKLOADS, Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import Verdict
from lwsctl.views import devices
from lwsctl.views.selection import Selection

REFUSED = 'pods "web-0" is forbidden: no PriorityClass with name urgent was found'
AVAILABLE = {"conditions": conditions(Available="True"), "readyReplicas": 1, "updatedReplicas": 1}


def told(situation: Observed, target: str = "web") -> Diagnosis:
    name, *numbers = target.split("/")
    return diagnose(situation, Selection(name, *map(int, numbers)))


ENDING = placed(made=5, metadata={"deletionTimestamp": ago(-29), "deletionGracePeriodSeconds": 30})


def test_ready_set_of_the_newest_revision_is_healthy() -> None:
    found = told(observed([ready(), ready(0, 1)], of=lws(status=AVAILABLE)))
    assert lines(found) == ["web is healthy: 1 of 1 group ready, all at the latest revision"]


def test_stored_values_that_creation_would_reject_are_named() -> None:
    """The scale subresource stored 2 replicas, and 25 % of 2 is rounded to zero."""
    rolling = {"maxUnavailable": "25%", "maxSurge": 0}
    scaled = lws(2, 1, status={"readyReplicas": 2, "updatedReplicas": 2, "conditions": conditions(Available="True")})
    scaled["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": rolling}
    pods = [ready(0), ready(1)]
    path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"

    whole = told(observed(pods, of=scaled))

    assert whole.verdict is Verdict.HEALTHY
    (line,) = whole.evidence
    assert (
        line
        == f'the stored value is invalid for new objects: {path}: Invalid value: "25%": must not be 0 when `maxSurge` is 0'
    )
    assert path in whole.steps[0]
    assert told(observed(pods, of=scaled), "web/0").evidence == ()


def test_memory_above_a_limit_that_is_not_enforced_is_named() -> None:
    heavy = ready()
    message = "container main used 2048Mi of memory, and its limit is 200Mi"
    heavy["status"]["conditions"].append({"type": "MemoryLimitExceeded", "status": "True", "message": message})
    found = told(observed([heavy, ready(0, 1)], of=lws(status=AVAILABLE)))
    assert found.verdict is Verdict.HEALTHY
    assert found.evidence == (f"pod web-0: {message} (a node would kill it with OOMKilled)",)


def test_unreadable_stored_budget_is_named() -> None:
    stored = lws(2, 1, status={"updatedReplicas": 1, "conditions": conditions(UpdateInProgress="True")})
    stored["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxUnavailable": "half"}}
    assert any(
        'maxUnavailable: Invalid value: "half"' in line for line in told(observed([ready(0)], of=stored)).evidence
    )


def test_name_that_is_too_long_names_the_owner_to_rename() -> None:
    owner = {"kind": "DisaggregatedSet", "name": "split", "uid": "u", "controller": True}
    situation = SCENARIOS["LWS-E011"]
    generated = situation.view.object | {"metadata": situation.view.object["metadata"] | {"ownerReferences": [owner]}}

    finding = told(replace(situation, view=replace(situation.view, object=generated)))

    assert finding.code == "LWS-E011"
    assert finding.steps[0].startswith(
        "shorten the name of DisaggregatedSet split, or the names of its roles, and recreate"
    )


def test_group_and_rank_are_healthy_by_their_own_pods() -> None:
    situation = observed([ready(), placed(0, 1)])
    assert told(situation, "web/0/0").verdict is Verdict.HEALTHY
    assert told(situation, "web/0").verdict is not Verdict.HEALTHY


def test_earlier_stage_is_the_cause() -> None:
    """An unscheduled worker is the cause if a leader crashes because of it."""
    told_unplaced = pod(0, 1, status={"conditions": [unscheduled("0/1 nodes are available: 1 Insufficient cpu.")]})
    crashed = placed(status={"containerStatuses": [container(terminated=ended(1))]})
    assert told(observed([crashed, told_unplaced])).code == "LWS-E036"
    assert told(observed([crashed, told_unplaced]), "web/0/0").code == "LWS-E071"


def unscheduled(message: str) -> dict[str, str]:
    return {"type": "PodScheduled", "status": "False", "message": message}


def test_rank_without_its_own_cause_is_explained_by_its_group() -> None:
    crashed = placed(status={"containerStatuses": [container(terminated=ended(1))]})
    assert told(observed([crashed]), "web/0/1").code == "LWS-E071"


def test_other_groups_do_not_explain_a_group() -> None:
    crashed = placed(status={"containerStatuses": [container(terminated=ended(1))]})
    waits = pod(1, made=5)
    situation = observed([crashed, waits], of=lws(2, 1))
    assert told(situation, "web/0").code == "LWS-E071"
    assert told(situation, "web/1").code == "LWS-E091"


def test_first_crash_is_named_whatever_its_rank() -> None:
    pods = [
        placed(0, rank, status={"containerStatuses": [container(terminated=ended(1, 50 - seconds))]})
        for rank, seconds in ((0, 30), (1, 10), (2, 20))
    ]
    found = told(observed(pods, of=lws(1, 3)))
    assert found.subject is not None
    assert found.subject.name == "web-0-1"
    assert "terminated later: web-0-2, web-0" in found.evidence


def test_fastest_crash_is_named_as_uncertain_after_many_restarts() -> None:
    def looping(rank: int, restarts: int, seconds: float) -> JSONObject:
        end = ended(1, 10 * rank + 5) | {"startedAt": ago(10 * rank + 5 + seconds)}
        status = container(restarts=restarts, last=end, waiting={"reason": "CrashLoopBackOff"})
        return placed(0, rank, status={"containerStatuses": [status]})

    found = told(observed([looping(0, 4, 9), looping(1, 4, 1), looping(2, 3, 0)], of=lws(1, 3)))
    assert found.subject is not None
    assert found.subject.name == "web-0-1"
    assert found.evidence[-1] == ("also crashed: web-0, web-0-2; which one crashed first is unknown")


@pytest.mark.parametrize(("code", "kind"), [("LWS-E003", DEPLOYMENTS), ("LWS-E004", LEASES)])
def test_missing_manager_is_named_when_workers_are_not_created(code: str, kind: Resource) -> None:
    dead = SCENARIOS[code].objects[kind]
    found = told(observed([placed(made=120)], {kind: dead, STATEFULSETS: [{"metadata": {"name": "web"}}]}))
    assert found.code == code
    assert found.sentence.endswith("the workers of group 0 have not been created for 2m")
    young = observed([placed(made=20)], {kind: dead, STATEFULSETS: []})
    assert told(young).code != code


def test_terminating_statefulset_is_not_a_controller_problem() -> None:
    """A deletion increments the generation, and the last spec write was much earlier."""
    (left,) = SCENARIOS["LWS-E014"].objects[STATEFULSETS]
    ending = left | {"metadata": left["metadata"] | {"name": "web-0", "deletionTimestamp": ago(1)}}
    assert told(observed([pod(made=5), pod(0, 1, made=5)], {STATEFULSETS: [ending]})).code == "LWS-E091"


@pytest.mark.parametrize(
    ("pods", "sentence"),
    [
        ([ENDING], "1 rank is terminating, and will be replaced"),
        ([ENDING, pod(0, 1, made=5)], "1 rank is starting: Pending; 1 rank is terminating, and will be replaced"),
        ([pod(made=5), pod(0, 1, made=5)], "2 ranks are starting: Pending"),
    ],
)
def test_terminating_rank_is_not_reported_as_starting(pods: list[JSONObject], sentence: str) -> None:
    found = told(observed(pods, of=lws(1, len(pods))))
    assert (found.code, found.sentence) == ("LWS-E091", sentence)


def test_finished_workload_must_be_deleted() -> None:
    """The Workload remains `Admitted`, so its message is from the time of its admission."""
    queued = SCENARIOS["LWS-E030"]
    (workload,) = queued.objects[QUEUED_WORKLOADS]
    states = [{"type": kind, "status": "True", "message": "m"} for kind in ("QuotaReserved", "Admitted", "Finished")]
    ended = workload | {"status": {"conditions": states}}
    assert "Workload lws-web-0 is finished" in told(replace(queued, objects={QUEUED_WORKLOADS: [ended]})).sentence


def test_scale_subresource_change_has_its_own_time() -> None:
    scaled = [{"subresource": "scale", "time": ago(2)}, {"subresource": "status", "time": ago(1)}]
    obj = lws(status={"observedGeneration": 0}, metadata={"managedFields": scaled})
    assert told(observed([pod(made=5), pod(0, 1, made=5)], {CORE_EVENTS: []}, of=obj)).code == "LWS-E091"


@pytest.mark.parametrize("chosen", ["web", "web/2"])
@pytest.mark.parametrize(
    ("scaled", "newest", "code"), [(30, 300, "LWS-E091"), (400, 5, "LWS-E091"), (400, 300, "LWS-E099")]
)
def test_groups_without_all_pods_are_starting_in_an_old_set(
    chosen: str, scaled: float, newest: float, code: str
) -> None:
    """The last of hundreds of groups wait for minutes, and the StatefulSet was last written at their creation."""
    written = [{"subresource": "scale", "time": ago(scaled)}, {"subresource": "status", "time": ago(1)}]
    obj = lws(3, 1, metadata={"managedFields": written})
    leaders = {"metadata": {"name": "web", "generation": 1, "managedFields": [{"time": ago(min(scaled, newest))}]}}
    found = observed(
        [ready(), ready(1, made=newest)], {STATEFULSETS: [leaders | {"status": {"observedGeneration": 1}}]}, of=obj
    )
    assert told(found, chosen).code == code


def test_quota_of_an_embedded_cluster_is_raised_by_its_option() -> None:
    """The kind is not served, so `kubectl describe resourcequota` finds no object."""
    said = "exceeded quota: {}, requested: count/pods=1, used: count/pods=3, limited: count/pods=3"
    own, other = (told(refused(f'pods "web-0" is forbidden: {said.format(name)}')) for name in ("max-pods", "team"))
    assert (own.code, other.code) == ("LWS-E020", "LWS-E020")
    assert "--max-pods" in own.steps[0]
    assert other.steps == tuple(step.replace("max-pods", "team") for step in own.steps[1:])


def test_out_of_memory_precedes_the_crashes_that_follow() -> None:
    killed = placed(0, 1, status={"containerStatuses": [container(terminated=ended(137, 10, "OOMKilled"))]})
    crashed = placed(status={"containerStatuses": [container(terminated=ended(1, 30))]})
    assert told(observed([crashed, killed])).code == "LWS-E070"


@pytest.mark.parametrize("code", ["LWS-E073", "LWS-E082", "LWS-E084"])
def test_loading_program_is_starting_and_later_stuck(code: str) -> None:
    situation = SCENARIOS[code]
    assert told(situation).verdict is Verdict.STARTING
    assert headline(told(situation)).startswith("web is starting for 5m (LWS-E")
    later = replace(situation, now=NOW.replace(hour=13))
    assert (told(later).code, told(later).verdict) == (code, Verdict.STUCK)


def test_taint_is_the_cause_when_a_node_has_the_labels() -> None:
    message = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) didn't match Pod's node affinity/selector."
    labeled = node(labels={"gpu": "b300"}, taints=[{"key": "team", "effect": "NoSchedule"}])
    spec = {"nodeSelector": {"gpu": "b300"}}
    assert told(pending(message, spec=spec, objects={NODES: [labeled, node("node-1")]})).code == "LWS-E039"
    assert told(pending(message, spec=spec, objects={NODES: [node("node-1")]})).code == "LWS-E040"


def test_cordon_is_the_cause_when_the_node_has_the_labels() -> None:
    message = (
        "0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) didn't match Pod's node affinity/selector."
    )
    spec = {"nodeSelector": {"gpu": "b300"}}
    nodes = [node(labels={"gpu": "b300"}), node("node-1")]
    assert told(pending(message, spec=spec, objects={NODES: nodes})).code == "LWS-E043"


def test_cordoned_nodes_are_named_with_the_command_to_uncordon() -> None:
    message = "0/9 nodes are available: 8 node(s) were unschedulable."
    nodes = [node(f"node-{at}", labels={"gpu": "b300"} if at else {}) for at in range(8)]
    nodes = [one | {"spec": {"unschedulable": True}} for one in nodes]
    situation = pending(message, spec={"nodeSelector": {"gpu": "b300"}}, objects={NODES: [*nodes, node("node-8")]})
    found = told(situation)
    assert found.code == "LWS-E043"
    assert found.evidence[-1] == "cordoned: node-1, node-2, node-3, node-4, node-5 and 2 more"
    uncordon = "to use these nodes again: kubectl uncordon node-1 node-2 node-3 node-4 node-5"
    assert found.steps == (uncordon, "lws nodes")


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "team", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "value": "blue"},
    ],
)
def test_tolerated_taints_are_not_named(toleration: dict[str, str]) -> None:
    taints = [
        {"key": "team", "value": "blue", "effect": "NoSchedule"},
        {"key": "other", "effect": "PreferNoSchedule"},
    ]
    message = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    found = told(pending(message, spec={"tolerations": [toleration]}, objects={NODES: [node(taints=taints)]}))
    assert found.sentence == "nodes have taints that pod web-0 does not tolerate"


def test_shortage_reports_what_is_not_known() -> None:
    asks = {"containers": [{"resources": {"requests": {"cpu": "4"}}}]}
    message = "0/1 nodes are available: 1 Insufficient cpu."
    nodes = {NODES: [node(allocatable={"cpu": "8"})]}
    assert told(pending(message, spec=asks)).sentence.endswith(": it requests 4")
    assert told(pending(message, spec=asks, objects=nodes)).sentence.endswith("has 8, but most of it is in use")
    free = told(pending(message, spec=asks, objects=nodes, running=[]))
    assert free.sentence.endswith("and no suitable node has this amount free")


@pytest.mark.parametrize(
    ("runtime", "allocatable", "simulates"),
    [
        ("processes://1", {}, True),
        ("processes://1", {"example.com/gpu": "1"}, False),
        ("containerd://2.1.0", {}, False),
    ],
)
def test_local_nodes_without_accelerators_can_simulate_them(
    runtime: str, allocatable: dict[str, str], simulates: bool
) -> None:
    asks = {"containers": [{"resources": {"requests": {"example.com/gpu": "4"}}}]}
    of_machine = node(allocatable=allocatable)
    of_machine["status"]["nodeInfo"] = {"containerRuntimeVersion": runtime}
    message = "0/1 nodes are available: 1 Insufficient example.com/gpu."
    first = told(pending(message, spec=asks, objects={NODES: [of_machine]}, running=[])).steps[0]
    simulated = "to simulate nodes with example.com/gpu, use --nodes 2 --node-capacity example.com/gpu=4"
    assert first.startswith(simulated if simulates else "add nodes with example.com/gpu")


def test_local_nodes_with_too_few_gpus_can_share_them() -> None:
    asks = {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "9"}}}]}
    of_machine = node(allocatable={"nvidia.com/gpu": "8"})
    of_machine["status"]["nodeInfo"] = {"containerRuntimeVersion": "processes://1"}
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    steps = told(pending(message, spec=asks, objects={NODES: [of_machine]}, running=[])).steps
    assert (
        steps[0]
        == "start the cluster with more GPUs (--gpus N), or share each GPU between N containers (--gpus host:N)"
    )


def test_failing_device_is_named() -> None:
    asks = {"containers": [{"resources": {"requests": {"example.com/gpu": "2"}}}]}
    failing = node(allocatable={"example.com/gpu": "1"})
    why = {"type": devices.ACCELERATORS_HEALTHY, "status": "False", "message": "GPU-1 is unhealthy: XID 79"}
    failing["status"]["conditions"] = [*(failing["status"].get("conditions") or []), why]
    message = "0/1 nodes are available: 1 Insufficient example.com/gpu."
    found = told(pending(message, spec=asks, objects={NODES: [failing]}, running=[]))
    assert found.evidence[-1] == f"node {failing['metadata']['name']}: GPU-1 is unhealthy: XID 79"


def test_device_names_equal_those_of_the_kubelet() -> None:
    assert (devices.DEVICES, devices.ACCELERATORS_HEALTHY) == (wellknown.DEVICES, wellknown.ACCELERATORS_HEALTHY)


def test_taint_on_a_free_node_is_named() -> None:
    asks = {"containers": [{"resources": {"requests": {"example.com/gpu": "4"}}}]}
    message = "0/2 nodes are available: 1 Insufficient example.com/gpu, 1 node(s) had untolerated taint(s)."
    taints = [{"key": "team", "value": "blue", "effect": "NoSchedule"}]
    nodes = {NODES: [node(allocatable={"example.com/gpu": "8"}, taints=taints)]}
    found = told(pending(message, spec=asks, objects=nodes, running=[]))
    assert found.sentence.endswith(
        "no suitable node has this amount free; node node-0 has enough resources, but the pod does not tolerate its taint: team=blue:NoSchedule"
    )
    assert found.steps[0] == "to use node node-0, add a toleration for its taint to the template of web"
    tolerating = told(
        pending(message, spec=asks | {"tolerations": [{"operator": "Exists"}]}, objects=nodes, running=[])
    )
    assert found.code == tolerating.code == "LWS-E035"
    assert "taint" not in tolerating.sentence


def test_unreadable_amount_is_omitted() -> None:
    nodes = {NODES: [node(allocatable={"cpu": "much"})]}
    found = told(pending("0/1 nodes are available: 1 Insufficient cpu.", objects=nodes))
    assert found.sentence == "no node has enough cpu for pod web-0"


def test_events_of_an_earlier_pod_are_not_evidence() -> None:
    past = event("Pod", "web-0", "Failed", "image not found", uid="another")
    situation = waiting("ImagePullBackOff", "Back-off pulling image")
    assert told(replace(situation, objects={CORE_EVENTS: [past]})).code == "LWS-E058"


def test_young_set_does_not_lack_its_service() -> None:
    young = placed(made=2, spec={"subdomain": "web"})
    assert told(observed([young], {SERVICES: []})).code != "LWS-E083"
    wrong = [{"metadata": {"name": "web"}, "spec": {"clusterIP": "10.0.0.1"}}]
    found = told(observed([young], {SERVICES: wrong}))
    assert found.sentence.endswith("Service web is not headless, so the name of pod web-0 does not resolve")
    assert found.verdict is Verdict.STUCK


def test_set_with_a_user_service_may_still_start() -> None:
    """The ranks may not need DNS names, and a model may still be loading (ADR 43)."""
    young = placed(made=2, spec={"subdomain": "web"})
    spec = {"clusterIP": "10.0.0.1", "selector": {labels.NAME: "web"}}
    found = told(observed([young], {SERVICES: [{"metadata": {"name": "web"}, "spec": spec}]}))
    assert (found.code, found.verdict) == ("LWS-E083", Verdict.STARTING)


def test_resize_that_the_api_server_rejects_is_quoted() -> None:
    """The leader has a mark, and the pods of a group that is only updated in place continue to run (ADR 24)."""
    marked = {labels.IN_PLACE_REVISION: "new", labels.IN_PLACE_REFUSED: "new"}
    said = 'Cannot resize pod web-0-1: pods "web-0-1" is forbidden: exceeded quota: compute'
    leader = ready(metadata={"annotations": marked})
    found = told(
        observed(
            [leader],
            {CORE_EVENTS: [event("LeaderWorkerSet", "web", "FailedUpdate", said)]},
            of=lws(1, 1, status=UPDATING),
        )
    )
    assert (found.code, found.evidence[0]) == ("LWS-E097", f"web-0: {said}")
    assert told(observed([leader], of=lws(1, 1, status=UPDATING))).evidence[0] == "web-0: the resize was rejected"


def test_waiting_rollout_is_mentioned_next_to_the_cause() -> None:
    crashed = placed(status={"containerStatuses": [container(terminated=ended(1))]})
    status = {"conditions": conditions(UpdateInProgress="True"), "updatedReplicas": 1}
    found = told(observed([crashed, ready(1)], of=lws(2, 1, status=status)))
    assert found.evidence[-1] == "the rollout is waiting for this problem to be resolved: 1 of 2 groups updated"


def test_unread_objects_are_listed_and_not_interpreted() -> None:
    situation = replace(observed([placed(node="node-9")]), unread_kinds=frozenset({NODES}))
    found = told(situation)
    assert found.code != "LWS-E050"
    assert found.unread == ("nodes",)
    assert lines(found)[-1] == "Not read: nodes"


def test_unexplained_state_is_reported_as_unknown() -> None:
    found = told(SCENARIOS["LWS-E099"])
    assert found.verdict is Verdict.UNKNOWN
    assert headline(found) == "web is not ready (LWS-E099): no known cause explains it"


def test_worst_of_several_diagnoses_is_selected() -> None:
    made = [Diagnosis(target=str(verdict), verdict=verdict, sentence="") for verdict in reversed(Verdict)]
    assert worst(made).verdict is Verdict.STUCK
    assert worst(made[:4]).verdict is Verdict.PROGRESSING


def test_document_has_stable_keys() -> None:
    (item,) = document([told(SCENARIOS["LWS-E026"])])["items"]
    assert item == {
        "target": "web",
        "namespace": "prod",
        "disaggregatedSet": None,
        "verdict": "stuck",
        "since": None,
        "code": "LWS-E026",
        "title": "the priority class does not exist",
        "subject": {"kind": "Pod", "name": "web-0", "group": 0, "rank": 0},
        "sentence": "PriorityClass urgent does not exist, so pod web-0 cannot be created",
        "evidence": [
            f"web-0: create Pod web-0 in StatefulSet web failed error: {REFUSED}",
        ],
        "nextSteps": [
            "create PriorityClass urgent, or correct priorityClassName in the template of web",
            "kubectl -n prod get priorityclasses",
        ],
        "person": None,
        "notRead": [],
    }


def test_hundreds_of_groups_are_explained_in_one_pass_per_cause() -> None:
    pods = [
        placed(group, rank, status={"containerStatuses": [container(running={"startedAt": ago(250)})]})
        for group in range(100)
        for rank in range(8)
    ]
    situation = observed(pods, of=lws(100, 8))
    assert sum(cause.find(situation) is not None for cause in CATALOGUE) == 0


def test_gated_pod_with_an_impossible_affinity_is_explained() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["abc"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"schedulingGates": [{"name": "example.com/held"}], "affinity": {"nodeAffinity": required}}

    found = told(observed([pod(spec=spec)]))

    assert any("nodeAffinity: label 'zone': operator Gt requires one integer" in line for line in lines(found))


def test_missing_host_path_is_named() -> None:
    said = "volumes: hostPath.path: /models does not exist on this machine. Create it, or set type DirectoryOrCreate"
    waits = container(waiting={"reason": "ContainerCreating"})
    pod = placed(status={"phase": "Pending", "containerStatuses": [waits]})
    found = told(observed([pod], {CORE_EVENTS: [event("Pod", "web-0", "FailedMount", said)]}))
    named = f"a volume of pod web-0 cannot be mounted{said.removeprefix('volumes')}"
    assert headline(found) == f"web is stuck (LWS-E064): {named}"


@pytest.mark.parametrize(("key", "code"), [(KEY, "LWS-E086"), ("newer", "LWS-E092")], ids=["updated", "older"])
def test_rollout_does_not_wait_for_a_broken_older_group(key: str, code: str) -> None:
    """The rollout replaces broken groups of older revisions (docs/adr/0030)."""
    starting = placed(0, status={"containerStatuses": [container(running={"startedAt": ago(300)})]})
    statefulset = {"metadata": {"name": "web", "labels": {labels.TEMPLATE_REVISION_HASH: key}}}
    updating = lws(2, 1, status=UPDATING | {"updatedReplicas": 1, "readyReplicas": 1})
    situation = observed([ready(1), starting], {STATEFULSETS: [statefulset]}, of=updating)
    assert told(situation).code == code


def test_rollout_with_a_partition_waits_for_a_broken_older_group() -> None:
    """Groups below the partition must retain their template, so groups are replaced in order (docs/adr/0030)."""
    starting = placed(1, status={"containerStatuses": [container(running={"startedAt": ago(300)})]})
    statefulset = {"metadata": {"name": "web", "labels": {labels.TEMPLATE_REVISION_HASH: "newer"}}}
    rolling = {"rollingUpdateConfiguration": {"partition": 1}}
    updating = lws(3, 1, status=UPDATING | {"updatedReplicas": 0, "readyReplicas": 2}, rolloutStrategy=rolling)
    found = told(observed([ready(0), starting, ready(2)], {STATEFULSETS: [statefulset]}, of=updating))
    assert found.code == "LWS-E086"
    assert "waits for group 1 to be ready" in found.sentence
    assert any("maxUnavailable" in step for step in found.steps)


def test_surge_groups_are_counted_apart_from_updated_groups() -> None:
    """The partition blocks two of four groups. `status.updatedReplicas` also counts the surge group."""
    revision = {labels.TEMPLATE_REVISION_HASH: "new"}
    pods = [ready(0), ready(1), *(ready(index, metadata={"labels": revision}) for index in (2, 3, 4))]
    rolling = {"rollingUpdateConfiguration": {"partition": 2, "maxSurge": 1}}
    held = lws(4, 1, status=AVAILABLE | {"readyReplicas": 5, "updatedReplicas": 3}, rolloutStrategy=rolling)
    assert "2 of 4 groups and 1 surge group updated" in told(observed(pods, of=held)).sentence


@pytest.mark.parametrize(("replicas", "ranks"), [(3, (0, 1, 2)), (0, (0,))], ids=["up", "down"])
def test_scaled_worker_statefulset_is_named(replicas: int, ranks: tuple[int, ...]) -> None:
    owner = {"kind": "Pod", "name": "web-0", "uid": "leader", "controller": True}
    workers = {"metadata": {"name": "web-0", "ownerReferences": [owner]}, "spec": {"replicas": replicas}}
    situation = observed([ready(0, rank) for rank in ranks], {STATEFULSETS: [workers]}, of=lws(status=AVAILABLE))
    found = told(situation)
    assert (found.code, found.subject and found.subject.name) == ("LWS-E100", "web-0")
    assert f"was scaled to {replicas} replica" in found.sentence


@pytest.mark.parametrize("reason", ["ProgramNotFound", "CreateContainerConfigError", "RunContainerError"])
def test_cause_quotes_the_message_instead_of_the_reason(reason: str) -> None:
    assert told(waiting(reason, "the words of the kubelet")).sentence.endswith(": the words of the kubelet")
