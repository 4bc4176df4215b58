"""Builds the schema of a Go type for patches and field ownership, from the tables of types and list keys.

Lists without keys are atomic, and other objects are granular, as in core v1 (R-API-8 lists the keys in pods).
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects.gotypes.declarations import GoField, GoTypes, element_type, type_shape
from kuberuntime.objects.gotypes.defaults import DEFAULTS
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import Schema
from localkube.apiserver.types.typed import SERVED

LIST_KEYS: dict[str, tuple[str, ...]] = {
    "ObjectMeta.ownerReferences": ("uid",),
    "PodSpec.volumes": ("name",),
    "PodSpec.initContainers": ("name",),
    "PodSpec.containers": ("name",),
    "PodSpec.ephemeralContainers": ("name",),
    "PodSpec.imagePullSecrets": ("name",),
    "PodSpec.hostAliases": ("ip",),
    "PodSpec.topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "PodSpec.schedulingGates": ("name",),
    "PodSpec.resourceClaims": ("name",),
    "Container.ports": ("containerPort", "protocol"),
    "Container.env": ("name",),
    "Container.volumeMounts": ("mountPath",),
    "Container.volumeDevices": ("devicePath",),
    "EphemeralContainer.ports": ("containerPort", "protocol"),
    "EphemeralContainer.env": ("name",),
    "EphemeralContainer.volumeMounts": ("mountPath",),
    "EphemeralContainer.volumeDevices": ("devicePath",),
    "ResourceRequirements.claims": ("name",),
    "PodStatus.conditions": ("type",),
    "PodStatus.podIPs": ("ip",),
    "PodStatus.resourceClaimStatuses": ("name",),
    "ContainerStatus.volumeMounts": ("mountPath",),
    "ContainerStatus.allocatedResourcesStatus": ("name",),
    "ResourceStatus.resources": ("resourceID",),
    "DeploymentStatus.conditions": ("type",),
    "HorizontalPodAutoscalerStatus.conditions": ("type",),
    "ReplicaSetStatus.conditions": ("type",),
    "StatefulSetStatus.conditions": ("type",),
    "ServiceSpec.ports": ("port", "protocol"),
    "ServiceStatus.conditions": ("type",),
    "ServiceAccount.secrets": ("name",),
    "NodeStatus.conditions": ("type",),
    "NodeStatus.addresses": ("type",),
    "NamespaceStatus.conditions": ("type",),
    "PersistentVolumeClaimStatus.conditions": ("type",),
    "CustomResourceDefinitionStatus.conditions": ("type",),
    "MutatingWebhookConfiguration.webhooks": ("name",),
    "ValidatingWebhookConfiguration.webhooks": ("name",),
    "MutatingWebhook.matchConditions": ("name",),
    "ValidatingWebhook.matchConditions": ("name",),
}
"""The lists whose items are identified by keys. The strategic merge patch uses the first key."""

LIST_SETS = {"ObjectMeta.finalizers", "NodeSpec.podCIDRs"}
"""The lists of scalars that are sets, which the strategic merge patch merges."""

PATCH_ONLY_KEYS = {"PodStatus.hostIPs": "ip"}
"""The lists that are atomic for field ownership, but that the strategic merge patch merges."""

WITHOUT_PATCH_KEY = {"PodStatus.resourceClaimStatuses", "ResourceRequirements.claims", "ResourceStatus.resources"}
"""The lists with keys that the strategic merge patch replaces as a whole."""

ATOMIC_TYPES = {
    "ConfigMapKeySelector", "CrossVersionObjectReferenceV1", "FileKeySelector", "LabelSelector", "LocalObjectReference", "NodeSelector",
    "NodeSelectorTerm", "ObjectFieldSelector", "ObjectReference", "OwnerReference", "ResourceFieldSelector",
    "SecretKeySelector", "TopologySelectorTerm", "TypedLocalObjectReference",
}  # fmt: skip
"""The objects that are owned and replaced as a whole."""

ATOMIC_FIELDS = {"PodSpec.nodeSelector", "ServiceSpec.selector"}
"""The maps with arbitrary keys that are owned and replaced as a whole."""


SCALARS = {
    "string": Schema("string"),
    "quantity": Schema("string"),
    "time": Schema("string"),
    "microtime": Schema("string"),
    "bytes": Schema("string"),
    "bool": Schema("boolean"),
    "int32": Schema("integer"),
    "int64": Schema("integer"),
    "int-or-string": Schema("int-or-string"),
    "raw": Schema("any", is_atomic=True),
}


@cache
def struct_schema(struct: str, types: GoTypes = SERVED) -> Schema:
    """Return the schema of a struct."""
    declared = types.fields(struct).items()
    fields = {name: _field_schema(types, f"{struct}.{name}", field) for name, field in declared}
    return Schema("object", fields=fields, is_atomic=struct in ATOMIC_TYPES, name=struct)


def _field_schema(types: GoTypes, path: str, field: GoField) -> Schema:
    match field.shape:
        case "list":
            return _list_schema(types, path, element_type(field.type))
        case "map":
            return replace(_type_schema(types, field.type), is_atomic=path in ATOMIC_FIELDS)
        case _:
            struct, _, name = path.partition(".")
            schema, default = _type_schema(types, field.type), DEFAULTS.get(struct, {}).get(name)
            return replace(schema, default=default) if field.shape == "scalar" and default is not None else schema


def _list_schema(types: GoTypes, path: str, element: str) -> Schema:
    items = _type_schema(types, element)
    keys = LIST_KEYS.get(path, ())
    if keys:
        merged = path not in WITHOUT_PATCH_KEY
        patch_key = keys[0] if merged else ""
        return Schema("array", items=items, list_type="map", keys=keys, patch_merge=merged, patch_key=patch_key)
    if path in LIST_SETS:
        return Schema("array", items=items, list_type="set", patch_merge=True)
    patch_key = PATCH_ONLY_KEYS.get(path, "")
    return Schema("array", items=items, patch_merge=bool(patch_key), patch_key=patch_key)


def _type_schema(types: GoTypes, go_type: str) -> Schema:
    match type_shape(go_type):
        case "list":
            return Schema("array", items=_type_schema(types, element_type(go_type)))
        case "map":
            return Schema("object", values=_type_schema(types, element_type(go_type)))
        case "struct":
            return struct_schema(go_type, types)
        case _:
            return SCALARS[go_type]


CONTAINERS: Final = (dict, list)


def unknown_fields(schema: Schema, obj: JSONObject) -> list[str]:
    """Return the paths of unknown fields, which are dropped.

    >>> unknown_fields(Schema("object", fields={"a": Schema("string")}), {"a": "x", "b": 1})
    ['b']
    """
    return [] if _knows(schema, obj) else list(_find_unknown_fields(schema, obj, ""))


def _knows(schema: Schema, value: JSON) -> bool:
    """Return whether the schema contains all fields.

    This is nearly always true, so paths are built only if it is not.
    """
    if isinstance(value, dict):
        fields, others = schema.fields, schema.values
        for name, child in value.items():
            child_schema = others if fields is None else fields.get(name, others)
            if child_schema is None:
                if fields is not None:
                    return False
            elif isinstance(child, CONTAINERS) and not _knows(child_schema, child):
                return False
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        return all(_knows(items, child) for child in value if isinstance(child, CONTAINERS))
    return True


def _find_unknown_fields(schema: Schema, value: JSON, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, child in value.items():
            child_path = f"{path}.{name}" if path else name
            child_schema = (schema.fields or {}).get(name, schema.values)
            if child_schema is not None:
                yield from _find_unknown_fields(child_schema, child, child_path)
            elif schema.fields is not None:
                yield child_path
    elif isinstance(value, list) and schema.items is not None:
        for index, child in enumerate(value):
            yield from _find_unknown_fields(schema.items, child, f"{path}[{index}]")
