"""The plain defaults of the built-in kinds: what stands in a field of a Go type that nobody set, and the walk that fills it.

Defaults that depend on other fields are code, beside the kind (`builtin/`, `validation/pod_defaults.py`).
"""

from functools import cache
from typing import Final

from kuberuntime.objects.gotypes.declarations import Shape, element_of, shape_of
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.types.typed import SERVED

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
"""By Go type, as the `SetDefaults_` functions of Kubernetes have them."""


def fill(struct: str, obj: JSONObject) -> None:
    """Fill the defaults of a normalized object, in place.

    >>> port = {"containerPort": 80}
    >>> fill("ContainerPort", port)
    >>> port
    {'containerPort': 80, 'protocol': 'TCP'}
    """
    for name, value in DEFAULTS.get(struct, {}).items():
        if obj.get(name) is None:
            obj[name] = dict(value) if isinstance(value, dict) else value
    for name, shape, element in _with_defaults(struct):
        child = obj.get(name)
        if child is not None:
            _fill_child(shape, element, child)


def _fill_child(shape: Shape, element: str, child: JSON) -> None:
    match shape:
        case "list":
            for item in child:
                fill(element, item)
        case "map":
            for item in child.values():
                fill(element, item)
        case _:
            fill(element, child)


@cache
def _with_defaults(struct: str) -> tuple[tuple[str, Shape, str], ...]:
    """Return the fields below which anything has a default, each with its shape and the struct in it."""
    return tuple(
        (name, field.shape, element_of(field.type))
        for name, field in SERVED.fields(struct).items()
        if _has_defaults(element_of(field.type))
    )


def _has_defaults(go_type: str) -> bool:
    return go_type in DEFAULTS or (shape_of(go_type) == "struct" and bool(_with_defaults(go_type)))
