"""Tests situations that occur only in clouds, as storage drivers, kubelets, Kueue and injectors report them."""

import pytest
from tests.explanations.builders import ago, container, event, normal, observed, placed, pod, ready, recreated
from tests.explanations.clouds import (
    DEVICES,
    MOUNTED,
    awaiting_node,
    creating,
    injected_sidecar,
    over_quota,
    refused_by_kubelet,
    shared_claim,
)
from tests.explanations.situations import queued

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import QUEUED_WORKLOADS, Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.views.selection import Selection


def told(situation: Observed) -> Diagnosis:
    return diagnose(situation, Selection("web"))


def test_rejected_devices_are_named_after_the_pod_was_replaced() -> None:
    found = told(refused_by_kubelet("UnexpectedAdmissionError", DEVICES))
    assert (found.code, found.verdict) == ("LWS-E110", "progressing")
    text = "the kubelet of node node-7 rejected pod web-0 (UnexpectedAdmissionError): it requests 8 nvidia.com/gpu, but only 6 are available on the node"
    assert found.sentence == text
    assert "restart the device plugin of node node-7" in found.steps[0]
    assert told(refused_by_kubelet("UnexpectedAdmissionError", DEVICES, 3)).verdict == "stuck"


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("UnexpectedAdmissionError", "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected", "its devices are not healthy"),
        ("UnexpectedAdmissionError", "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown, which is unexpected", "the device plugin did not allocate devices to it"),
        ("TopologyAffinityError", "Resources cannot be allocated with Topology locality", "no NUMA node has enough devices"),
        ("SMTAlignmentError", "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2", "its CPU request does not consist of full cores"),
        ("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector", "no longer has the labels"),
        ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000", "it requests 4000 cpu, and 6000 of 8000 are in use"),
        ("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu, requested: 8, used: 8, capacity: 8", "it requests 8 nvidia.com/gpu"),
        ("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110", "it requests 1 pods"),
        ("SysctlForbidden", 'forbidden sysctl: "net.core.somaxconn" not allowlisted', "does not allow one of its settings"),
        ("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS", "Failed to admit pod"),
    ],
)  # fmt: skip
def test_refusal_of_the_kubelet_is_read(reason: str, message: str, words: str) -> None:
    found = told(refused_by_kubelet(reason, message))
    assert found.code == "LWS-E110"
    assert words in found.sentence
    failed = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
    assert told(observed([placed(status=failed), ready(0, 1)], {CORE_EVENTS: []})).code == "LWS-E110"


def test_one_writer_claim_names_the_ranks_that_use_it() -> None:
    found = told(shared_claim(placed(0, 1, node="node-1", spec=MOUNTED)))
    assert found.code == "LWS-E116"
    text = "claim models of pod web-0 is ReadWriteOnce, and its volume is attached to another node; web-0-1 on node node-1 uses it"
    assert found.sentence == text
    assert "ReadWriteMany or ReadOnlyMany" in found.steps[0]
    assert "volumeClaimTemplates" in found.steps[0]


def test_volume_of_a_node_that_is_gone_is_released_first() -> None:
    found = told(shared_claim())
    assert found.code == "LWS-E116"
    assert "get volumeattachments" in found.steps[0]


@pytest.mark.parametrize(
    ("message", "step"),
    [
        ('AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = ResourceExhausted desc = maximum number of volumes attached', "node node-0 has reached its volume limit"),
        ('MountVolume.MountDevice failed for volume "pvc-1" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name pd.csi.example.com not found in the list of registered CSI drivers', "check the DaemonSet of the storage driver"),
        ('MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32 mount.nfs: access denied by server while mounting 10.0.0.1:/models', "allow access from node node-0 on the volume server"),
        ('MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32 mount.nfs: Connection timed out', "can reach the volume server"),
    ],
)  # fmt: skip
def test_failed_attachment_has_the_remedy_of_its_message(message: str, step: str) -> None:
    found = told(creating(event("Pod", "web-0", "FailedMount", message)))
    assert found.code == "LWS-E064"
    assert step in found.steps[0]


@pytest.mark.parametrize(
    "message",
    [
        'MountVolume.SetUp failed for volume "kube-api-access-x" : failed to sync configmap cache: timed out waiting for the condition',
        "MountVolume.SetUp failed for volume x : failed to fetch token: forbidden: no relationship found between node 'node2' and this object",
    ],
)  # fmt: skip
def test_first_failed_read_of_a_kubelet_is_not_a_cause(message: str) -> None:
    """Real events of busy nodes, on which the kubelet retries immediately and mounts the volume."""
    failed = event("Pod", "web-0", "FailedMount", message)
    assert (told(creating(failed, made=20)).verdict, told(creating(failed, made=20)).code) != ("stuck", "LWS-E064")
    assert told(creating(failed, made=600)).code == "LWS-E064"


def test_quota_of_the_cloud_is_not_a_missing_class() -> None:
    found = told(over_quota())
    assert (found.code, found.verdict) == ("LWS-E044", "stuck")
    assert "Quota 'SSD_TOTAL_GB' exceeded" in found.sentence
    assert found.steps[0].startswith("increase the cloud quota")
    assert "create the StorageClass" not in " ".join(found.steps)


def test_injected_sidecar_has_no_advice_about_the_template() -> None:
    found = told(injected_sidecar())
    assert (found.code, found.verdict) == ("LWS-E111", "starting")
    assert found.sentence.startswith(
        "injected container istio-proxy of pod web-0 is not ready, and the other containers wait for it: Startup probe failed"
    )
    assert found.steps[0] == "lws -n prod logs web/0/0 -c istio-proxy"
    assert "startupProbe" not in " ".join(found.steps)
    assert told(injected_sidecar(700)).verdict == "stuck"


def test_injected_container_is_named_if_others_are_ready() -> None:
    spec = {"containers": [{"name": "main", "image": "vllm:1"}, {"name": "linkerd-proxy", "image": "proxy:1"}]}
    started = {"startedAt": ago(200)}
    statuses = [
        container(running=started) | {"ready": True},
        container("linkerd-proxy", running=started) | {"ready": False},
    ]
    found = told(observed([placed(spec=spec, status={"containerStatuses": statuses}), ready(0, 1)]))
    assert found.code == "LWS-E111"
    assert "linkerd-proxy of pod web-0 is not ready, and the other containers are ready" in found.sentence


def provisioning(state: str, message: str) -> Observed:
    situation = queued()
    (workload,) = situation.objects[QUEUED_WORKLOADS]
    workload["status"] = {
        "conditions": [{"type": "QuotaReserved", "status": "True"}],
        "admissionChecks": [{"name": "dws", "state": state, "message": message}],
    }
    return situation


@pytest.mark.parametrize(("state", "verdict"), [("Pending", "progressing"), ("Retry", "stuck"), ("Rejected", "stuck")])
def test_provisioning_request_of_kueue_is_progress_while_pending(state: str, verdict: str) -> None:
    found = told(provisioning(state, "Waiting for resources. Currently there are not enough resources available"))
    assert (found.code, found.verdict) == ("LWS-E030", verdict)
    assert f"Workload lws-web-0 has quota, and admission check dws is {state}: Waiting for resources" in found.sentence


@pytest.mark.parametrize(
    ("reason", "message", "component"),
    [
        ("ScaleDown", "deleting pod for node scale down", "cluster-autoscaler"),
        ("Evicted", "Evicted pod: Underutilized", "karpenter"),
        ("Disrupted", "Deleting the pod to accommodate the terminationTime of the node", "karpenter"),
    ],
)
def test_termination_by_an_autoscaler_is_reported_as_the_cause(reason: str, message: str, component: str) -> None:
    removed: JSONObject = normal(reason, message, component=component, name="web-0-1")
    removed["involvedObject"]["uid"] = "former"
    found = told(recreated([pod(made=5)], objects={CORE_EVENTS: [removed]}))
    assert any(f"{component} removed the node of web-0-1 ({message})" in line for line in found.evidence), found


def test_waiting_nodes_and_mounts_share_no_event() -> None:
    """A failed attachment is not a response of an autoscaler."""
    assert told(awaiting_node(event("Pod", "web-0", "FailedMount", "x"))).code == "LWS-E035"
