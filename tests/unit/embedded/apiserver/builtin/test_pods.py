"""Pods: defaults, faults and changes as kube-apiserver has them."""

from collections.abc import Callable
from typing import Any

import pytest

from leaderworkerset.embedded.apiserver.builtin.pods import quality_of_service

Api = Any
Make = Callable[[str], Api]

CONTAINER: dict[str, Any] = {"name": "c", "image": "busybox:1.36"}


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [CONTAINER]} | fields}


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [CONTAINER | fields]}}


def test_a_new_pod_is_filled_with_defaults(api: Make) -> None:
    pod = api("pods").create(spec())
    assert pod["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "busybox:1.36",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for taint in ("not-ready", "unreachable")
        ],
    }
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1


def test_preparing_a_stored_pod_changes_nothing(api: Make) -> None:
    stored = api("pods").create(container(readinessProbe={"httpGet": {"port": 80}}, ports=[{"containerPort": 80}]))
    assert api("pods").update(stored, {}) == stored


def test_defaults_of_containers(api: Make) -> None:
    given = container(
        image="busybox",
        ports=[{"containerPort": 80}],
        env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
        readinessProbe={"httpGet": {"port": 80}},
        livenessProbe={"grpc": {"port": 1}, "periodSeconds": 3},
        lifecycle={"preStop": {"httpGet": {"port": 80}}},
    )
    found = api("pods").create(given)["spec"]["containers"][0]
    assert found["imagePullPolicy"] == "Always"
    assert found["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert found["env"][0]["valueFrom"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}
    assert found["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    timing = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    http = {"path": "/", "port": 80, "scheme": "HTTP"}
    assert found["readinessProbe"] == {"httpGet": http} | timing
    assert found["livenessProbe"] == {"grpc": {"port": 1, "service": ""}} | timing | {"periodSeconds": 3}
    assert found["lifecycle"] == {"preStop": {"httpGet": http}}


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        ({}, {"emptyDir": {}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"configMap": {"name": "m", "defaultMode": 256}}, {"configMap": {"name": "m", "defaultMode": 256}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}], "defaultMode": 420}},
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}], "defaultMode": 420}},
        ),
    ],
)  # fmt: skip
def test_defaults_of_volumes(api: Make, volume: dict[str, Any], source: dict[str, Any]) -> None:
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
def test_quality_of_service(resources: dict[str, Any], expected: str) -> None:
    assert quality_of_service({"containers": [{"resources": resources}]}) == expected


def test_a_gated_pod_starts_unscheduled(api: Make) -> None:
    status = api("pods").create(spec(schedulingGates=[{"name": "example.com/wait"}]))["status"]
    assert status["conditions"][0]["reason"] == "SchedulingGated"


FAULTS = [
    ({"spec": {"containers": []}}, "spec.containers: Required value"),
    (container(name="Up"), 'spec.containers[0].name: Invalid value: "Up": a lowercase RFC 1123 label must consist of'),
    ({"spec": {"containers": [CONTAINER, CONTAINER]}}, 'spec.containers[1].name: Duplicate value: "c"'),
    (container(image=""), "spec.containers[0].image: Required value"),
    (container(image=" x"), 'spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace'),
    (container(imagePullPolicy="Often"), 'spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"'),
    (container(ports=[{"containerPort": 70000}]), "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
    (container(ports=[{"name": "a-long-port-name", "containerPort": 1}]), 'spec.containers[0].ports[0].name: Invalid value: "a-long-port-name": must be no more than 15 characters'),
    (container(env=[{"name": "A=B"}]), 'spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable name'),
    (container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), 'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'),
    (container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]), 'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.x": supported values: "metadata.name"'),
    (container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]), "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"),
    (container(envFrom=[{}]), 'spec.containers[0].envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'),
    (container(volumeMounts=[{"name": "v", "mountPath": "/v"}]), 'spec.containers[0].volumeMounts[0].name: Not found: "v"'),
    (container(resources={"limits": {"cpu": "-1"}}), 'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
    (container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}), 'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'),
    (container(resources={"requests": {"nvidia.com/gpu": "1"}}), "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"),
    (container(resources={"limits": {"gpu": "1"}}), 'spec.containers[0].resources.limits: Invalid value: "gpu": must be a standard resource type or fully qualified'),
    (container(readinessProbe={}), "spec.containers[0].readinessProbe: Required value: must specify a handler type"),
    (container(readinessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}), "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"),
    (container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}), "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"),
    (container(livenessProbe={"httpGet": {"port": 0}}), "spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"),
    (spec(initContainers=[CONTAINER | {"name": "i", "readinessProbe": {"tcpSocket": {"port": 1}}}]), "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"),
    (spec(restartPolicy="Sometimes"), 'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"'),
    (spec(dnsPolicy="None"), "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
    (spec(terminationGracePeriodSeconds=-1), "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0"),
    (spec(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"),
    (spec(hostname="a.b"), 'spec.hostname: Invalid value: "a.b": a lowercase RFC 1123 label must consist of'),
    (spec(volumes=[{"name": "v"}, {"name": "v"}]), 'spec.volumes[1].name: Duplicate value: "v"'),
    (spec(volumes=[{"name": "v", "secret": {"secretName": "s"}, "emptyDir": {}}]), "may not specify more than 1 volume type"),
    (spec(volumes=[{"name": "v", "configMap": {}}]), "spec.volumes[0].configMap.name: Required value"),
    (spec(volumes=[{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../x"}]}}]), "spec.volumes[0].secret.items[0].path: Invalid value: \"../x\": must not contain '..'"),
    (spec(nodeSelector={"a b": "c"}), 'spec.nodeSelector: Invalid value: "a b": name part must consist of'),
    (spec(tolerations=[{"operator": "Equal", "value": "x"}]), 'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty'),
    (spec(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]), "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"),
    (spec(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}), "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty"),
    (spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}), "nodeSelectorTerms: Required value: must have at least one node selector term"),
    (spec() | {"metadata": {"labels": {"a": "b c"}}}, 'metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of'),
    (spec() | {"metadata": {"name": "Web"}}, 'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of'),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "text"), FAULTS, ids=[text[:60] for _, text in FAULTS])
def test_faults_are_told_in_the_words_of_kube_apiserver(api: Make, pod: dict[str, Any], text: str) -> None:
    faults = api("pods").faults(pod)
    assert any(text in fault for fault in faults), faults


def test_a_typical_pod_has_no_faults(api: Make) -> None:
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
    assert api("pods").faults(given) == []


FROZEN = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"

CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"containers": [CONTAINER | {"image": "other"}]}, ""),
    ({"activeDeadlineSeconds": 5}, ""),
    ({"nodeName": "node-1"}, ""),
    ({"hostname": "x"}, FROZEN),
    ({"containers": [CONTAINER | {"command": ["x"]}]}, FROZEN),
    ({"tolerations": []}, "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"),
    ({"schedulingGates": [{"name": "a/b"}]}, "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), CHANGES, ids=[str(change)[:40] for change, _ in CHANGES])
def test_little_of_a_running_pod_may_change(api: Make, change: dict[str, Any], text: str) -> None:
    stored = api("pods").create(spec())
    merged = stored["spec"] | change
    if "containers" in change:
        merged["containers"] = [stored["spec"]["containers"][0] | change["containers"][0]]
    faults = api("pods").update_faults(stored, {"spec": merged})
    assert [fault[: len(text)] for fault in faults] == ([text] if text else [])


def test_a_bound_pod_cannot_move(api: Make) -> None:
    stored = api("pods").create(spec(nodeName="a"))
    assert api("pods").update_faults(stored, {"spec": stored["spec"] | {"nodeName": "b"}})[0].startswith(FROZEN)


def test_status_and_spec_are_written_apart(api: Make) -> None:
    pods = api("pods")
    stored = pods.create(spec())
    changed = stored | {"spec": stored["spec"] | {"activeDeadlineSeconds": 9}, "status": {"phase": "Running"}}
    assert pods.kind.prepare("update", changed, stored)["status"] == stored["status"]
    written = pods.kind.prepare("status", changed, stored)
    assert (written["spec"], written["status"]) == (stored["spec"], {"phase": "Running"})
    assert pods.kind.prepare("update", changed, stored)["metadata"]["generation"] == 2
    assert written["metadata"]["generation"] == 1


def test_unknown_fields_are_named_with_their_path(api: Make) -> None:
    given = container(imagee="x", env=[{"name": "A", "val": "b"}])
    found = api("pods").kind.unknown_fields(given | {"metadata": {"labels": {"any": "key"}}})
    assert sorted(found) == ["spec.containers[0].env[0].val", "spec.containers[0].imagee"]
