"""Tests that pod defaults, errors and updates match kube-apiserver."""

from collections.abc import Callable
from typing import Any

import pytest

from kuberuntime.objects.qos import qos_class

Api = Any
Make = Callable[[str], Api]

CONTAINER: dict[str, Any] = {"name": "c", "image": "busybox:1.36"}


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [CONTAINER]} | fields}


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [CONTAINER | fields]}}


def test_preparing_a_stored_pod_changes_nothing(api: Make) -> None:
    stored = api("pods").create(container(readinessProbe={"httpGet": {"port": 80}}, ports=[{"containerPort": 80}]))
    assert api("pods").update(stored, {}) == stored


def test_missing_requests_default_to_limits(api: Make) -> None:
    given = container(resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}})
    found = api("pods").create(given)["spec"]["containers"][0]
    assert found["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"rbd": {"monitors": ["m"], "image": "i"}}, {"rbd": {"monitors": ["m"], "image": "i", "pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
        ({"image": {"reference": "a:latest"}}, {"image": {"reference": "a:latest", "pullPolicy": "Always"}}),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {"ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": {"resources": {}, "volumeMode": "Filesystem"}}}}),
    ],
)  # fmt: skip
def test_volumes_receive_defaults(api: Make, volume: dict[str, Any], source: dict[str, Any]) -> None:
    pod = api("pods").create(spec(volumes=[{"name": "v"} | volume]))
    assert pod["spec"]["volumes"] == [{"name": "v"} | source]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_qos_class_follows_requests_and_limits(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == expected


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node_affinity(requirement: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return spec(affinity={"nodeAffinity": {REQUIRED: terms}})


def pod_affinity(**term: Any) -> dict[str, Any]:
    return spec(affinity={"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}})


# `packages/localkube/tests/conformance/test_pods.py` has what is recorded of kube-apiserver; here is the rest.
ERRORS = [
    (container(image=" x"), 'spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace'),
    (container(ports=[{"containerPort": 70000}]), "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
    (container(ports=[{"name": "a-long-port-name", "containerPort": 1}]), 'spec.containers[0].ports[0].name: Invalid value: "a-long-port-name": must be no more than 15 characters'),
    (container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]), 'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: "metadata.name"'),
    (container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]), "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"),
    (container(readinessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}), "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"),
    (spec(initContainers=[CONTAINER | {"name": "i", "readinessProbe": {"tcpSocket": {"port": 1}}}]), "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"),
    (spec(securityContext={"supplementalGroups": [-1]}), "spec.securityContext.supplementalGroups[0]: Invalid value: -1: must be between 0 and 2147483647, inclusive"),
    (spec(hostUsers=False, hostPID=True), "spec.hostPID: Forbidden: when `hostUsers` is false"),
    (spec(readinessGates=[{"conditionType": ""}]), 'spec.readinessGates[0].conditionType: Invalid value: "": name part must be non-empty'),
    (spec(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}), "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty"),
    (spec() | {"metadata": {"labels": {"a": "b c"}}}, 'metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of'),
    (spec() | {"metadata": {"name": "Web"}}, 'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of'),
    (container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}, "resourceFieldRef": {"resource": "x"}}}]), 'spec.containers[0].env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'),
    (container(env=[{"name": "A", "valueFrom": {"fieldRef": {}}}]), "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Required value"),
    (container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}]), 'spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: "a b": name part must consist of'),
    (container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {}}}]), "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Required value"),
    (container(envFrom=[{"configMapRef": {}, "secretRef": {"name": "s"}}]), 'spec.containers[0].envFrom: Invalid value: "": may not have more than one field specified at a time'),
    (container(envFrom=[{"configMapRef": {}}]), "spec.containers[0].envFrom[0].configMapRef.name: Required value"),
    (container(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "/a", "subPathExpr": "b"}]), "subPathExpr and subPath are mutually exclusive"),
    (container(volumeMounts=[{"name": "v", "mountPath": "/v", "mountPropagation": "Up"}]), 'spec.containers[0].volumeMounts[0].mountPropagation: Unsupported value: "Up"'),
    (container(resources={"limits": {"a b": "1"}}), 'spec.containers[0].resources.limits[a b]: Invalid value: "a b": name part must consist of'),
    (container(resources={"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}}), 'spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'),
    (container(resources={"claims": [{"name": "x"}]}), 'spec.containers[0].resources.claims[0]: Not found: "x"'),
    (container(livenessProbe={"exec": {}}), "spec.containers[0].livenessProbe.exec.command: Required value"),
    (container(livenessProbe={"grpc": {"port": 0}}), "spec.containers[0].livenessProbe.grpc.port: Invalid value: 0"),
    (container(livenessProbe={"httpGet": {"port": "-x"}}), 'spec.containers[0].livenessProbe.httpGet.port: Invalid value: "-x": must not begin or end with a hyphen'),
    (container(livenessProbe={"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 0}), "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"),
    (spec(schedulingGates=[{"name": "a b"}]), 'spec.schedulingGates[0]: Invalid value: "a b"'),
    (spec(dnsPolicy="None", dnsConfig={}), "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"),
    (spec(dnsConfig={"nameservers": ["1.1.1.1"] * 4}), "must not have more than 3 nameservers"),
    (spec(hostNetwork=True, containers=[CONTAINER | {"ports": [{"containerPort": 1, "hostPort": 2}]}]), "spec.containers[0].ports[0].containerPort: Invalid value: 1: must match `hostPort` when `hostNetwork` is true"),
    (spec(volumes=[{}]), "spec.volumes[0].name: Required value"),
    (spec(volumes=[{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k"}]}}]), "spec.volumes[0].secret.items[0].path: Required value"),
    (spec(volumes=[{"name": "v", "ephemeral": {}}]), "spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"),
    (spec(volumes=[{"name": "v", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "status.podIP"}}]}}]), 'spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP"'),
    (spec(volumes=[{"name": "v", "downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}}]), "spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value"),
    (spec(volumes=[{"name": "v", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}, "resourceFieldRef": {"resource": "limits.cpu"}}]}}]), "fieldRef and resourceFieldRef can not be specified simultaneously"),
    (spec(volumes=[{"name": "v", "projected": {"sources": [{"secret": {}, "configMap": {"name": "m"}}]}}]), "may not specify more than 1 volume type per source"),
    (spec(volumes=[{"name": "v", "projected": {"sources": [{"secret": {}}]}}]), "spec.volumes[0].projected.sources[0].secret.name: Required value"),
    (spec(volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}]), "spec.volumes[0].projected.sources[0].serviceAccountToken.path: Required value"),
    (spec(volumes=[{"name": "v", "projected": {"sources": [{"downwardAPI": {"items": [{}]}}]}}]), "spec.volumes[0].projected.sources[0].downwardAPI.path: Required value"),
    (spec(tolerations=[{"key": "a b", "operator": "Exists"}]), 'spec.tolerations[0].key: Invalid value: "a b"'),
    (spec(tolerations=[{"key": "a", "value": "b c"}]), 'spec.tolerations[0].operator: Invalid value: "b c"'),
    (spec(tolerations=[{"key": "a", "tolerationSeconds": 1}]), "effect must be 'NoExecute' when `tolerationSeconds` is set"),
    (spec(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}] * 2), 'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"'),
    (node_affinity({"key": "a", "operator": "In"}), "[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"),
    (node_affinity({"key": "a", "operator": "Exists", "values": ["x"]}), "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
    (node_affinity({"key": "a", "operator": "Gt"}), "values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"),
    (node_affinity({"key": "a b", "operator": "Near"}), 'operator: Invalid value: "Near": not a valid selector operator'),
    (node_affinity({"key": "a b", "operator": "Exists"}), 'key: Invalid value: "a b"'),
    (spec(affinity={"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}), f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100"),
    (pod_affinity(topologyKey="z", namespaces=["A"]), 'podAffinityTerm.namespace: Invalid value: "A"'),
    (pod_affinity(topologyKey="a b"), 'podAffinityTerm.topologyKey: Invalid value: "a b"'),
    (pod_affinity(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}), "labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"),
    (pod_affinity(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}), "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
    (pod_affinity(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a b", "operator": "Gt", "values": ["x y"]}]}), 'operator: Invalid value: "Gt": not a valid selector operator'),
    (pod_affinity(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a b", "operator": "In", "values": ["x y"]}]}), 'matchExpressions[0].key: Invalid value: "a b"'),
    (pod_affinity(topologyKey="z", labelSelector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]}), 'matchExpressions[0].values[0]: Invalid value: "x y"'),
    (spec() | {"metadata": {"name": "", "finalizers": ["a b"]}}, "metadata.name: Required value: name or generateName is required"),
    (spec() | {"metadata": {"finalizers": ["a b"]}}, 'metadata.finalizers: Invalid value: "a b": name part must consist of'),
    (spec() | {"metadata": {"labels": {"a b": ""}}}, 'metadata.labels: Invalid value: "a b": name part must consist of'),
    (spec() | {"metadata": {"annotations": {"a b": ""}}}, 'metadata.annotations: Invalid value: "a b": name part must consist of'),
    (spec() | {"metadata": {"annotations": {"a": "x" * 262145}}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
    (spec() | {"metadata": {"namespace": ""}}, "metadata.namespace: Required value"),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "text"), ERRORS, ids=[text[:60] for _, text in ERRORS])
def test_errors_use_the_texts_of_kube_apiserver(api: Make, pod: dict[str, Any], text: str) -> None:
    errors = api("pods").errors(pod)
    assert any(text in error for error in errors), errors


def test_typical_pod_has_no_errors(api: Make) -> None:
    given = container(
        ports=[{"name": "http", "containerPort": 80}],
        env=[
            {"name": "A", "value": "x"},
            {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}},
        ],
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        resources={"limits": {"nvidia.com/gpu": "8"}},
        readinessProbe={"httpGet": {"port": "http"}},
    )
    given["spec"]["volumes"] = [{"name": "v"}]
    assert api("pods").errors(given) == []


FROZEN = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"

CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"containers": [CONTAINER | {"image": "other"}]}, ""),
    ({"activeDeadlineSeconds": 5}, ""),
    ({"nodeName": "node-1"}, ""),
    ({"hostname": "x"}, FROZEN),
    ({"containers": [CONTAINER | {"command": ["x"]}]}, FROZEN),
    ({"schedulingGates": [{"name": "a/b"}]}, "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), CHANGES, ids=[str(change)[:40] for change, _ in CHANGES])
def test_few_fields_of_a_running_pod_may_change(api: Make, change: dict[str, Any], text: str) -> None:
    stored = api("pods").create(spec())
    merged = stored["spec"] | change
    if "containers" in change:
        merged["containers"] = [stored["spec"]["containers"][0] | change["containers"][0]]
    errors = api("pods").update_faults(stored, {"spec": merged})
    assert [error[: len(text)] for error in errors] == ([text] if text else [])


def test_gated_pod_accepts_node_selectors_until_ungated(api: Make) -> None:
    stored = api("pods").create(spec(schedulingGates=[{"name": "a/b"}], activeDeadlineSeconds=5))
    freed = {name: value for name, value in stored["spec"].items() if name != "schedulingGates"}
    assert api("pods").update_faults(stored, {"spec": freed | {"nodeSelector": {"a": "b"}}}) == []
    open_pod = api("pods").create(spec(activeDeadlineSeconds=5))
    moved = open_pod["spec"] | {"nodeSelector": {"a": "b"}}
    assert api("pods").update_faults(open_pod, {"spec": moved})[0].startswith(FROZEN)


def test_active_deadline_can_only_be_shortened(api: Make) -> None:
    stored = api("pods").create(spec(activeDeadlineSeconds=5))
    later = {"spec": stored["spec"] | {"activeDeadlineSeconds": 9}}
    path = "spec.activeDeadlineSeconds: Invalid value"
    assert api("pods").update_faults(stored, later) == [f"{path}: 9: must be less than or equal to previous value"]
    gone = {"spec": {name: value for name, value in stored["spec"].items() if name != "activeDeadlineSeconds"}}
    text = f"{path}: null: must not update from a positive integer to nil value"
    assert api("pods").update_faults(stored, gone) == [text]


def test_bound_pod_cannot_move(api: Make) -> None:
    stored = api("pods").create(spec(nodeName="a"))
    assert api("pods").update_faults(stored, {"spec": stored["spec"] | {"nodeName": "b"}})[0].startswith(FROZEN)


def test_status_and_spec_are_written_separately(api: Make) -> None:
    pods = api("pods")
    stored = pods.create(spec())
    changed = stored | {"spec": stored["spec"] | {"activeDeadlineSeconds": 9}, "status": {"phase": "Running"}}
    assert pods.kind.prepare("update", changed, stored)["status"] == stored["status"]
    written = pods.kind.prepare("status", changed, stored)
    assert (written["spec"], written["status"]) == (stored["spec"], {"phase": "Running", "qosClass": "BestEffort"})
    assert pods.kind.prepare("update", changed, stored)["metadata"]["generation"] == 2
    assert written["metadata"]["generation"] == 1


def test_single_pod_ip_wins_over_the_list(api: Make) -> None:
    pods = api("pods")
    stored = pods.create(spec())
    status = {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]}
    assert pods.kind.prepare("status", stored | {"status": status}, stored)["status"]["podIPs"] == [{"ip": "10.0.0.1"}]


def test_changed_pod_keeps_its_node_tolerations(api: Make) -> None:
    pods = api("pods")
    stored = pods.create(spec())
    changed = stored | {"spec": stored["spec"] | {"tolerations": []}}
    assert pods.kind.prepare("update", changed, stored)["spec"]["tolerations"] == stored["spec"]["tolerations"]


def test_unknown_fields_are_reported_with_their_path(api: Make) -> None:
    given = container(imagee="x", env=[{"name": "A", "val": "b"}])
    found = api("pods").kind.unknown_fields(given | {"metadata": {"labels": {"any": "key"}}})
    assert sorted(found) == ["spec.containers[0].env[0].val", "spec.containers[0].imagee"]
