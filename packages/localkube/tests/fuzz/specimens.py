"""Builds valid objects of each kind of the embedded API server, which are then mutated."""

from typing import Final

from tests.conformance import objects
from tests.conformance.objects import claim, container, named, template

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from localkube.apiserver import builtin
from localkube.apiserver.model.kind import Kind

FULL_POD: Final = objects.pod(
    "full",
    nodeName="n",
    terminationGracePeriodSeconds=5,
    activeDeadlineSeconds=60,
    restartPolicy="Never",
    nodeSelector={"a": "b"},
    tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
    affinity={
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "a", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}
            ]
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]
            }
        },
    },
    topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}],
    securityContext={"runAsUser": 1, "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
    hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a"]}],
    initContainers=[container(name="first", restartPolicy="Always")],
    containers=[
        container(
            command=["sh"],
            args=["-c", "true"],
            workingDir="/tmp",
            env=[{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            envFrom=[{"configMapRef": {"name": "one"}}],
            ports=[{"containerPort": 80, "name": "http", "hostPort": 80}],
            resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            livenessProbe={"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
            lifecycle={"preStop": {"exec": {"command": ["true"]}}},
            securityContext={"capabilities": {"add": ["NET_ADMIN"]}},
            volumeMounts=[{"name": "data", "mountPath": "/data", "subPath": "a"}],
        )
    ],
    volumes=[
        {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "map", "configMap": {"name": "one", "items": [{"key": "a", "path": "b"}], "defaultMode": 420}},
        {"name": "all", "projected": {"sources": [{"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
    ],
)  # fmt: skip

FULL_STATEFULSET: Final = objects.statefulset(
    "full",
    replicas=3,
    podManagementPolicy="Parallel",
    updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": "10%"}},
    ordinals={"start": 2},
    minReadySeconds=1,
    revisionHistoryLimit=2,
    persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"},
    template=template(terminationGracePeriodSeconds=1),
    volumeClaimTemplates=[claim("data")],
)

LWS_SPEC: Final[JSONObject] = {
    "replicas": 2,
    "startupPolicy": "LeaderReady",
    "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
    "rolloutStrategy": {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": "50%"},
    },
}
FULL_LWS: Final = objects.lws("full", **LWS_SPEC)
FULL_LWS["spec"]["leaderWorkerTemplate"] |= {
    "size": 4,
    "restartPolicy": "RecreateGroupOnPodRestart",
    "subGroupPolicy": {"type": "LeaderWorker", "subGroupSize": 2},
    "leaderTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}},
    "volumeClaimTemplates": [claim("data")],
}

CRD: Final = named(
    "things.fuzz.example.com",
    spec={
        "group": "fuzz.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"], "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"},
                },
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
                    {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 1},
                                    "ratio": {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": True, "minimum": 0},
                                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 9, "minLength": 1, "enum": ["a", "b"]},
                                    "since": {"type": "string", "format": "date-time"},
                                    "list": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["k"],
                                        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
                                    },
                                    "set": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 3, "items": {"type": "string"}},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "map": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}},
                                    "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                                    "odd": {"type": "object", "nullable": True, "properties": {"a": {"type": "boolean"}}},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
)  # fmt: skip

THINGS: Final = Resource("fuzz.example.com", "v1", "things", "Thing")
THING: Final = named(
    "one",
    spec={
        "replicas": 2, "ratio": 1.5, "name": "a", "since": "2026-01-02T03:04:05Z", "list": [{"k": "a", "v": 1}, {"k": "b"}],
        "set": ["a", "b"], "free": {"a": [1, {"b": None}]}, "map": {"a": 1}, "port": "http", "odd": None,
    },
)  # fmt: skip

WEBHOOKS: Final = [
    {
        "name": "a.fuzz.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 1,
        "clientConfig": {"service": {"name": "none", "namespace": "default", "path": "/"}},
        "rules": [{"operations": ["CREATE"], "apiGroups": ["none"], "apiVersions": ["v1"], "resources": ["none"]}],
        "objectSelector": {"matchLabels": {"never": "there"}},
        "namespaceSelector": {"matchExpressions": [{"key": "never", "operator": "Exists"}]},
    }
]

BY_KIND: Final[dict[str, tuple[JSONObject, ...]]] = {
    "Pod": (FULL_POD, objects.pod("one", nodeName="n"), objects.pod("two")),
    "StatefulSet": (FULL_STATEFULSET, objects.statefulset("one")),
    "Thing": (THING,),
    "CustomResourceDefinition": (CRD,),
    "Namespace": (named("one"),),
    "ServiceAccount": (named("one", imagePullSecrets=[{"name": "a"}]),),
    "Endpoints": (named("one", subsets=[{"addresses": [{"ip": "10.1.1.1", "targetRef": {"kind": "Pod", "name": "one"}}], "ports": [{"port": 80}]}]),),
    "Event": (objects.event("one", "default"),),
    "PersistentVolumeClaim": (claim("one"),),
    "PersistentVolume": (named("one", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}),),
    "MutatingWebhookConfiguration": (named("one", webhooks=WEBHOOKS),),
    "ValidatingWebhookConfiguration": (named("one", webhooks=WEBHOOKS),),
}  # fmt: skip


def kinds() -> list[Kind]:
    """Return the built-in kinds."""
    return list(builtin.kinds())


def of(resource: Resource) -> tuple[JSONObject, ...]:
    """Return valid objects of a resource."""
    if resource.kind == "LeaderWorkerSet":
        return FULL_LWS, objects.lws("one")
    found = BY_KIND.get(resource.kind)
    if found:
        return found
    simple = (*objects.SIMPLE, *objects.CLUSTER_WIDE)
    return tuple(obj for one, obj in simple if one == resource) or (named("one"),)


SUBRESOURCE_BODIES: Final[dict[str, JSONObject]] = {
    "binding": {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n"}},
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}, "deleteOptions": {"gracePeriodSeconds": 1}},
    "scale": {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"}, "spec": {"replicas": 1}},
    "finalize": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}, "spec": {"finalizers": ["kubernetes"]}},
}  # fmt: skip
SUBRESOURCES: Final = (
    "status", "scale", "binding", "eviction", "finalize", "log", "exec", "attach", "portforward", "proxy", "token", "odd", "ephemeralcontainers",
)  # fmt: skip
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
