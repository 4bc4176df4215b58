"""Sets the constant defaults of Kubernetes kinds, which are declared by Go type.

Defaults that depend on other fields are code, such as `podrules/pod_defaults.py`.
"""

from functools import cache
from typing import Final, NamedTuple

from kuberuntime.objects.gotypes.declarations import GoTypes, Shape, element_type, type_shape
from kuberuntime.objects.meta import JSON, JSONObject

_FILE_MODE: Final[JSONObject] = {"defaultMode": 0o644}
_CONTAINER: Final[JSONObject] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_WEBHOOK: Final[JSONObject] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}

DEFAULTS: Final[dict[str, JSONObject]] = {
    "AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "ConfigMapVolumeSource": _FILE_MODE,
    "Container": _CONTAINER,
    "ContainerPort": {"protocol": "TCP"},
    "CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    "DiscoveryPort": {"name": "", "protocol": "TCP"},
    "DownwardAPIVolumeSource": _FILE_MODE,
    "EndpointPort": {"protocol": "TCP"},
    "EphemeralContainer": _CONTAINER,
    "FileKeySelector": {"optional": False},
    "GRPCAction": {"service": ""},
    "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "HostPathVolumeSource": {"type": ""},
    "DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "DeploymentStrategy": {"type": "RollingUpdate"},
    "HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "HorizontalPodAutoscalerV1Spec": {"minReplicas": 1},
    "ISCSIVolumeSource": {"iscsiInterface": "default"},
    "MutatingWebhook": _WEBHOOK | {"reinvocationPolicy": "Never"},
    "ObjectFieldSelector": {"apiVersion": "v1"},
    "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "PodSpec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    },
    "PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "ProjectedVolumeSource": _FILE_MODE,
    "RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "ReplicaSetSpec": {"replicas": 1},
    "RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "RuleWithOperations": {"scope": "*"},
    "ScaleIOVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "Secret": {"type": "Opaque"},
    "SecretVolumeSource": _FILE_MODE,
    "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "ServicePort": {"protocol": "TCP"},
    "ServiceReference": {"port": 443},
    "ServiceSpec": {"type": "ClusterIP", "sessionAffinity": "None"},
    "StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "StatefulSetSpec": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {},
    },
    "StatefulSetUpdateStrategy": {"type": "RollingUpdate"},
    "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "ValidatingWebhook": _WEBHOOK,
}
"""The defaults by Go type, as in the `SetDefaults_` functions of Kubernetes."""


class _Plan(NamedTuple):
    """The defaults of a struct, and its fields whose types have defaults."""

    own: tuple[tuple[str, JSON], ...]
    below: "tuple[tuple[str, Shape, _Plan], ...]"


def fill(types: GoTypes, struct: str, obj: JSONObject) -> None:
    """Set the defaults of a normalized object in place.

    >>> from kuberuntime.objects.gotypes.declarations import KUBERNETES
    >>> port = {"containerPort": 80}
    >>> fill(KUBERNETES, "ContainerPort", port)
    >>> port
    {'containerPort': 80, 'protocol': 'TCP'}
    """
    _fill(_plan(types, struct), obj)


def _fill(plan: _Plan, obj: JSONObject) -> None:
    for name, value in plan.own:
        if obj.get(name) is None:
            obj[name] = dict(value) if isinstance(value, dict) else value
    for name, shape, inner in plan.below:
        child = obj.get(name)
        if child is None:
            continue
        if shape == "struct":
            _fill(inner, child)
        else:
            for item in child if shape == "list" else child.values():
                _fill(inner, item)


@cache
def _plan(types: GoTypes, struct: str) -> _Plan:
    fields = ((name, field.shape, element_type(field.type)) for name, field in types.fields(struct).items())
    below = ((name, shape, _plan(types, element)) for name, shape, element in fields if type_shape(element) == "struct")
    return _Plan(tuple(DEFAULTS.get(struct, {}).items()), tuple(field for field in below if any(field[2])))
