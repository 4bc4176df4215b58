"""Tests the defaults of each group of pod fields, and the errors for invalid values."""

import pytest
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, named, pod
from tests.conformance.transcript import Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, PRIORITY_CLASSES

PROBE: JSONObject = {"httpGet": {"port": 80}}
TERM: JSONObject = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
NODE_TERM: JSONObject = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}


def with_container(**fields: object) -> JSONObject:
    """Return a pod spec with one container that has these fields."""
    return {"containers": [container(**fields)]}


def rule(*codes: int, action: str = "RestartAllContainers", operator: str = "In") -> JSONObject:
    """Return a rule for the exit codes of a container."""
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


def with_volume(**source: object) -> JSONObject:
    """Return a pod spec with one mounted volume."""
    return {
        "volumes": [{"name": "v", **source}],
        "containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])],
    }


GOOD: tuple[JSONObject, ...] = (
    {}, {"nodeName": "n"}, {"restartPolicy": "Never"}, {"restartPolicy": "OnFailure", "activeDeadlineSeconds": 5},
    {"terminationGracePeriodSeconds": 0}, {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
    {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}])]},
    {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True}, {"shareProcessNamespace": True, "hostPID": False},
    {"serviceAccountName": "default"}, {"serviceAccount": "default"}, {"schedulerName": "other", "priority": 0},
    {"nodeSelector": {"a": "b"}}, {"imagePullSecrets": [{"name": "s"}]}, {"enableServiceLinks": False},
    {"tolerations": [{"operator": "Exists"}]}, {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]},
    {"tolerations": [{"key": "a", "value": "b"}]}, {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}]},
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b"], "options": [{"name": "ndots", "value": "2"}]}},
    {"securityContext": {"runAsUser": 1, "fsGroup": 2, "supplementalGroups": [3], "sysctls": [{"name": "net.core.somaxconn", "value": "1"}], "seccompProfile": {"type": "RuntimeDefault"}}},
    {"readinessGates": [{"conditionType": "a.b/c"}], "schedulingGates": [{"name": "a.b/c"}]}, {"overhead": None, "runtimeClassName": None},
    {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]}, "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": NODE_TERM}]}}},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}, "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": TERM}]}}},
    {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}, "minDomains": 2}]},
    {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]},
    {"initContainers": [container(name="i"), container(name="s", restartPolicy="Always", startupProbe=PROBE)]},
    with_container(restartPolicy="Never", restartPolicyRules=[rule(88), rule(1, 2, action="Restart", operator="NotIn")]), with_container(restartPolicyRules=[]),
    {"initContainers": [container(name="i", restartPolicy="Never", restartPolicyRules=[rule(1)]), container(name="s", restartPolicy="Always", restartPolicyRules=[rule()])]},
    with_container(image="app"), with_container(image="app:latest"), with_container(image="app@sha256:" + "0" * 64), with_container(image="r.io:5000/app:1"),
    with_container(imagePullPolicy="Never"), with_container(command=["a"], args=["b"], workingDir="/w", stdin=True, tty=True, stdinOnce=True),
    with_container(env=[{"name": "A"}, {"name": "B", "value": "$(A)"}, {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]),
    with_container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}], envFrom=[{"prefix": "P_", "configMapRef": {"name": "c"}}]),
    with_container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}), with_container(resources={"requests": {"cpu": "0.5", "memory": "1e3"}}),
    with_container(resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
    with_container(resources={"limits": {"nvidia.com/gpu": 8, "cpu": 2}}), with_container(resources={"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi", "cpu": "1", "ephemeral-storage": "1G"}}),
    with_container(livenessProbe=PROBE, readinessProbe={"tcpSocket": {"port": "web"}}, startupProbe={"exec": {"command": ["a"]}}, ports=[{"containerPort": 80, "name": "web"}]),
    with_container(livenessProbe={"grpc": {"port": 5}, "initialDelaySeconds": 3, "terminationGracePeriodSeconds": 4}),
    with_container(lifecycle={"postStart": {"exec": {"command": ["a"]}}, "preStop": {"httpGet": {"port": 80, "path": "bye"}}}), with_container(lifecycle={"preStop": {"sleep": {"seconds": 5}}}),
    with_container(securityContext={"privileged": True}), with_container(securityContext={"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}, "runAsNonRoot": True, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False}),
    with_container(ports=[{"containerPort": 80, "protocol": "UDP", "name": "dns"}, {"containerPort": 80}]), with_container(terminationMessagePath="/t", terminationMessagePolicy="FallbackToLogsOnError"),
    with_volume(emptyDir={}), with_volume(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"}), with_volume(), with_volume(hostPath={"path": "/x"}), with_volume(hostPath={"path": "/x", "type": "Directory"}),
    with_volume(configMap={"name": "c", "items": [{"key": "a", "path": "b", "mode": 256}], "optional": True}), with_volume(secret={"secretName": "s", "defaultMode": 256}), with_volume(persistentVolumeClaim={"claimName": "c"}),
    with_volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}}, {"path": "b", "resourceFieldRef": {"containerName": "main", "resource": "requests.cpu"}}]}),
    with_volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "c"}}, {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}),
    with_volume(nfs={"server": "s", "path": "/p"}), with_volume(csi={"driver": "d.example.com"}), with_volume(image={"reference": "r:1"}),
    with_volume(ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}),
    {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "s", "readOnly": True}, {"name": "v", "mountPath": "/b", "mountPropagation": "HostToContainer"}])]},
    {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}, {"os": {"name": "linux"}}, {"priorityClassName": "system-node-critical"}, {"preemptionPolicy": "PreemptLowerPriority"},
)  # fmt: skip


@pytest.mark.parametrize("spec", GOOD, ids=lambda value: str(value)[:90])
def test_pod_defaults_are_set(same: CheckSame, spec: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, pod("one", **spec))

    same(sequence)


BAD: tuple[JSONObject, ...] = (
    {"containers": []}, {"containers": None}, {"containers": [{}]}, {"containers": [{"name": "UP", "image": ""}]}, {"containers": [container(), container()]},
    {"containers": [container(image=" ")]}, {"restartPolicy": "Odd"}, {"dnsPolicy": "Odd"}, {"dnsPolicy": "None"}, {"hostname": "Bad_"}, {"subdomain": "a.b"},
    {"terminationGracePeriodSeconds": -1}, {"activeDeadlineSeconds": 0}, {"nodeSelector": {"a b": "c"}}, {"nodeName": "UP"}, {"serviceAccountName": "UP"},
    {"serviceAccountName": "absent"}, {"priorityClassName": "absent"}, {"priority": 7}, {"runtimeClassName": "absent"}, {"schedulerName": ""},
    {"tolerations": [{"key": "a", "operator": "Odd"}]}, {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}, {"tolerations": [{"operator": "Equal"}]}, {"tolerations": [{"key": "a", "effect": "Odd"}]}, {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]},
    {"hostAliases": [{"ip": "x", "hostnames": ["UP"]}]}, {"imagePullSecrets": [{}]}, {"readinessGates": [{"conditionType": "a b"}]}, {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}}, {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}}]}}},
    {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Odd"}]}, {"initContainers": [container(name="main")]}, {"initContainers": [container(name="i", livenessProbe=PROBE)]},
    {"initContainers": [container(name="i", restartPolicy="Odd")]}, {"securityContext": {"runAsUser": -1, "fsGroup": -1}}, {"securityContext": {"sysctls": [{"name": "Bad Name"}]}}, {"hostNetwork": True, "hostUsers": False},
    with_container(restartPolicyRules=[rule(88)]), {"initContainers": [container(name="i", restartPolicyRules=[rule(88, action="Odd")])]}, with_container(restartPolicy="Odd", restartPolicyRules=[{}, {"action": "Odd"}]),
    with_container(restartPolicy="Never", restartPolicyRules=[rule(88, operator="Odd"), rule(*range(256))]), with_container(restartPolicy="Never", restartPolicyRules=[rule(88)] * 21),
    with_container(imagePullPolicy="Odd"), with_container(env=[{"name": ""}, {"name": "a=b"}]), with_container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), with_container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "odd"}}}]), with_container(env=[{"name": "A", "valueFrom": {}}]),
    with_container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"key": ""}}}]), with_container(envFrom=[{}]), with_container(envFrom=[{"prefix": "1=", "secretRef": {"name": ""}}]),
    with_container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}), with_container(resources={"limits": {"cpu": "-1"}}), with_container(resources={"limits": {"cpu": "x"}}), with_container(resources={"limits": {"odd": "1"}}), with_container(resources={"requests": {"nvidia.com/gpu": 1}}), with_container(resources={"limits": {"nvidia.com/gpu": "1.5"}}),
    with_container(livenessProbe={}), with_container(livenessProbe={"httpGet": {"port": 0}}), with_container(livenessProbe={"httpGet": {"port": "TOO_LONG_PORT_NAME"}, "tcpSocket": {"port": 1}}), with_container(livenessProbe=PROBE | {"successThreshold": 2}), with_container(readinessProbe=PROBE | {"periodSeconds": -1, "timeoutSeconds": -1}), with_container(readinessProbe=PROBE | {"terminationGracePeriodSeconds": 5}),
    with_container(lifecycle={"preStop": {}}), with_container(lifecycle={"preStop": {"exec": {"command": []}}}), with_container(lifecycle={"preStop": {"sleep": {"seconds": 100}}}),
    with_container(ports=[{"containerPort": 0}]), with_container(ports=[{"containerPort": 80, "protocol": "Odd", "name": "UP", "hostPort": 70000}]), with_container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]), with_container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]),
    with_container(volumeMounts=[{"name": "absent", "mountPath": "/x"}]), with_container(volumeMounts=[{"name": "", "mountPath": ""}]), with_container(terminationMessagePolicy="Odd"), with_container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
    with_volume(emptyDir={}, hostPath={"path": "/x"}), with_volume(emptyDir={"sizeLimit": "-1"}), with_volume(hostPath={"path": ""}), with_volume(hostPath={"path": "/a/../b", "type": "Odd"}), with_volume(configMap={"name": ""}), with_volume(configMap={"name": "c", "defaultMode": 1000}), with_volume(secret={"items": [{"key": "", "path": "../x"}]}),
    with_volume(persistentVolumeClaim={"claimName": ""}), with_volume(downwardAPI={"items": [{"path": ""}]}), with_volume(projected={"sources": [{}]}), {"volumes": [{"name": "a"}, {"name": "a"}]}, {"volumes": [{"name": "UP"}]},
    {"volumes": [{"name": "v"}], "containers": [container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a", "subPath": "/x"}])]},
    {"containers": [container(name="x" * 64)]}, {"containers": [container(restartPolicy="Always")]}, {"unknown": 1}, {"os": {"name": "odd"}}, {"preemptionPolicy": "Odd"}, {"ephemeralContainers": [container(name="e")]},
    {"containers": "x"}, {"containers": [{"name": 1}]}, {"hostNetwork": "yes"}, {"terminationGracePeriodSeconds": "5"}, {"terminationGracePeriodSeconds": 1.5}, with_container(ports=[{"containerPort": "80"}]), with_container(env={"A": "B"}), with_container(command="x"),
)  # fmt: skip


@pytest.mark.parametrize("spec", BAD, ids=lambda value: str(value)[:90])
def test_pod_errors_are_reported(same: CheckSame, spec: JSONObject) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, pod("one", **spec))

    same(sequence)


def test_priorities_are_resolved(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PRIORITY_CLASSES, named("pods-high", value=1000, preemptionPolicy="Never"))
        await session.create(PODS, pod("one", priorityClassName="pods-high"))
        await session.create(PODS, pod("two", priorityClassName="pods-high", priority=5))
        await session.create(PODS, pod("three", priorityClassName="pods-high", preemptionPolicy="PreemptLowerPriority"))
        await session.create(PRIORITY_CLASSES, named("pods-default", value=7, globalDefault=True))
        await session.await_known(PODS, pod("four"), lambda found: found["spec"].get("priority") == 7)
        await session.create(PODS, pod("four"))
        await session.delete(PRIORITY_CLASSES, "pods-default")
        await session.delete(PRIORITY_CLASSES, "pods-high")

    same(sequence)


def test_pods_are_bound_and_evicted(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(PODS, pod("one"))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "one"},
            "target": {"kind": "Node", "name": "n"},
        }
        path = session.path(PODS, "one", "binding")
        await session.send("POST", path, {**binding, "target": {}})
        await session.send("POST", path, binding)
        await session.send("POST", path, binding)
        await session.get(PODS, "one")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
        await session.send("POST", session.path(PODS, "one", "eviction"), eviction)
        await session.send(
            "POST", session.path(PODS, "absent", "eviction"), {**eviction, "metadata": {"name": "absent"}}
        )
        await session.get(PODS, "one")

    same(sequence)
