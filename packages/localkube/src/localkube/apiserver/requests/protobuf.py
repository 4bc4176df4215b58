"""Decodes protobuf bodies of kubectl, for the kinds that `kubectl create`, `autoscale`, `drain` and `delete` send.

In: bytes. Out: the object as JSON, without the zero values that Go writes for all fields. Other kinds are rejected.
"""

import base64
from collections.abc import Iterator
from typing import Final, TypeAlias

from kuberuntime.objects.meta import JSON, JSONObject

MEDIA: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
FIXED64: Final = 1
SIGNED: Final = 1 << 63

Field: TypeAlias = tuple[str, str]
"""The name and type of a field, which is a scalar, `map`, `bytes map` or a message. `[]` marks repeated fields."""

MESSAGES: Final[dict[str, dict[int, Field]]] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "bytes")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"), 2: ("generateName", "string"), 3: ("namespace", "string"), 5: ("uid", "string"),
        6: ("resourceVersion", "string"), 11: ("labels", "map"), 12: ("annotations", "map"),
        13: ("ownerReferences", "[]OwnerReference"), 14: ("finalizers", "[]string"),
    },
    "OwnerReference": {
        1: ("kind", "string"), 3: ("name", "string"), 4: ("uid", "string"), 5: ("apiVersion", "string"),
        6: ("controller", "bool"), 7: ("blockOwnerDeletion", "bool"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec")},
    "NamespaceSpec": {1: ("finalizers", "[]string")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "map"), 3: ("binaryData", "bytes map"), 4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "bytes map"), 3: ("type", "string"), 4: ("stringData", "map"),
        5: ("immutable", "bool"),
    },
    "ServiceAccount": {
        1: ("metadata", "ObjectMeta"), 3: ("imagePullSecrets", "[]LocalObjectReference"),
        4: ("automountServiceAccountToken", "bool"),
    },
    "LocalObjectReference": {1: ("name", "string")},
    "Service": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ServiceSpec")},
    "ServiceSpec": {
        1: ("ports", "[]ServicePort"), 2: ("selector", "map"), 3: ("clusterIP", "string"), 4: ("type", "string"),
        7: ("sessionAffinity", "string"), 10: ("externalName", "string"), 13: ("publishNotReadyAddresses", "bool"),
        18: ("clusterIPs", "[]string"),
    },
    "ServicePort": {
        1: ("name", "string"), 2: ("protocol", "string"), 3: ("port", "int"), 4: ("targetPort", "int-or-string"),
        5: ("nodePort", "int"), 6: ("appProtocol", "string"),
    },
    "Deployment": {1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec")},
    "DeploymentSpec": {1: ("replicas", "int"), 2: ("selector", "LabelSelector"), 3: ("template", "PodTemplateSpec")},
    "LabelSelector": {1: ("matchLabels", "map")},
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "PodSpec": {2: ("containers", "[]Container")},
    "Container": {
        1: ("name", "string"), 2: ("image", "string"), 3: ("command", "[]string"), 4: ("args", "[]string"),
        6: ("ports", "[]ContainerPort"),
    },
    "ContainerPort": {1: ("name", "string"), 3: ("containerPort", "int"), 4: ("protocol", "string")},
    "PodDisruptionBudget": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodDisruptionBudgetSpec")},
    "PodDisruptionBudgetSpec": {
        1: ("minAvailable", "int-or-string"), 2: ("selector", "LabelSelector"), 3: ("maxUnavailable", "int-or-string"),
    },
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"), 2: ("value", "int"), 3: ("globalDefault", "bool"), 4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "HorizontalPodAutoscaler": {1: ("metadata", "ObjectMeta"), 2: ("spec", "HorizontalPodAutoscalerSpec")},
    "HorizontalPodAutoscalerSpec": {
        1: ("scaleTargetRef", "CrossVersionObjectReference"), 2: ("minReplicas", "int"), 3: ("maxReplicas", "int"),
        4: ("metrics", "[]MetricSpec"), 5: ("behavior", "HorizontalPodAutoscalerBehavior"),
    },
    "CrossVersionObjectReference": {1: ("kind", "string"), 2: ("name", "string"), 3: ("apiVersion", "string")},
    "MetricSpec": {
        1: ("type", "string"), 2: ("object", "ObjectMetricSource"), 3: ("pods", "PodsMetricSource"),
        4: ("resource", "ResourceMetricSource"), 5: ("external", "ExternalMetricSource"),
        7: ("containerResource", "ContainerResourceMetricSource"),
    },
    "ResourceMetricSource": {1: ("name", "string"), 2: ("target", "MetricTarget")},
    "MetricTarget": {
        1: ("type", "string"), 2: ("value", "quantity"), 3: ("averageValue", "quantity"), 4: ("averageUtilization", "int"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"), 2: ("preconditions", "Preconditions"), 3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"), 5: ("dryRun", "[]string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
}  # fmt: skip

KINDS: Final = {
    ("v1", "Namespace"), ("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "ServiceAccount"), ("v1", "Service"),
    ("apps/v1", "Deployment"), ("scheduling.k8s.io/v1", "PriorityClass"), ("policy/v1", "PodDisruptionBudget"),
    ("policy/v1", "Eviction"), ("v1", "DeleteOptions"), ("meta.k8s.io/v1", "DeleteOptions"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
}  # fmt: skip

KEPT_ZEROES: Final = {
    "replicas", "gracePeriodSeconds", "orphanDependents", "immutable", "automountServiceAccountToken",
}  # fmt: skip
"""The fields whose zero value is encoded in Go only if the field was set."""


class UnreadableError(ValueError):
    """The bytes are not protobuf, or the kind is not supported."""


def decode(content: bytes) -> JSONObject:
    """Decode an object."""
    if not content.startswith(MAGIC):
        raise UnreadableError("the body does not start with the Kubernetes protobuf prefix")
    envelope = _message("Unknown", content[len(MAGIC) :])
    identity = envelope.get("typeMeta") or {}
    kind = (identity.get("apiVersion", ""), identity.get("kind", ""))
    if kind not in KINDS:
        raise UnreadableError(f"decoding {kind[1]} of {kind[0]} is not supported")
    return {**identity, **_message(kind[1], base64.b64decode(envelope.get("raw", "")))}


def _message(name: str, content: bytes) -> JSONObject:
    """Decode a message. Fields that are not in the table are skipped."""
    result: JSONObject = {}
    for number, value in _fields(content):
        field, kind = MESSAGES[name].get(number, ("", ""))
        if not field:
            continue
        if kind.startswith("[]"):
            result[field] = [*result.get(field, []), _value(kind[2:], value)]
        elif kind in {"map", "bytes map"}:
            result[field] = {**result.get(field, {}), **_entry(kind, value)}
        else:
            item = _value(kind, value)
            if item or field in KEPT_ZEROES:
                result[field] = item
    return result


def _value(kind: str, value: int | bytes) -> JSON:
    if isinstance(value, int):
        number = value - 2 * SIGNED if value >= SIGNED else value
        return bool(number) if kind == "bool" else number
    match kind:
        case "string":
            return value.decode()
        case "bytes":
            return base64.b64encode(value).decode()
        case "int-or-string":
            parts = dict(_fields(value))
            text = parts.get(3, b"")
            return text.decode() if parts.get(1) and isinstance(text, bytes) else _value("int", parts.get(2, 0))
        case "quantity":
            return _value("string", dict(_fields(value)).get(1, b""))
        case _ if kind in MESSAGES:
            return _message(kind, value)
    raise UnreadableError(f"a field of type {kind} has an invalid encoding")


def _entry(kind: str, value: int | bytes) -> JSONObject:
    if isinstance(value, int):
        raise UnreadableError("a map entry is not a message")
    parts = dict(_fields(value))
    key, content = parts.get(1, b""), parts.get(2, b"")
    return {str(_value("string", key)): _value("bytes" if kind == "bytes map" else "string", content)}


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(content):
        tag, position = _varint(content, position)
        match tag & 7:
            case 0:
                value, position = _varint(content, position)
                yield tag >> 3, value
            case 1 | 5 as fixed:
                position += 8 if fixed == FIXED64 else 4
            case 2:
                length, position = _varint(content, position)
                if position + length > len(content):
                    raise UnreadableError("a field is incomplete")
                yield tag >> 3, content[position : position + length]
                position += length
            case other:
                raise UnreadableError(f"unknown wire type {other}")


def _varint(content: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(content):
        byte = content[position]
        position += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, position
    raise UnreadableError("a number is incomplete")
