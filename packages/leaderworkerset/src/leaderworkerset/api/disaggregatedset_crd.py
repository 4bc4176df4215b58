"""Builds the CRDs of DisaggregatedSet and DisaggregatedSetRoleScaler (R-DS-1 to R-DS-6).

The `spec` of a role has the schema of a LeaderWorkerSet spec. The `describe_…` functions add descriptions.
Descriptions of a role's `spec` are in `descriptions.py`.
"""

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import descriptions, schema
from leaderworkerset.api.crd import GENERATOR_ANNOTATION, build_crd, root_schema
from leaderworkerset.api.disaggregatedset import (
    MAX_ROLES,
    MAX_SLICES,
    MIN_ROLES,
    PlacementType,
    ScalingMode,
)
from leaderworkerset.api.resources import DISAGGREGATED_SETS, ROLE_SCALERS

ROLE_SPEC = "LeaderWorkerSetSpec"
ROLE_NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

ZERO_RULE: JSONObject = {
    "rule": (
        "self.roles.filter(r, !has(r.scaling) || r.scaling.mode != 'External')"
        ".all(r, !has(r.spec.replicas) || r.spec.replicas == 0)"
        " || self.roles.filter(r, !has(r.scaling) || r.scaling.mode != 'External')"
        ".all(r, has(r.spec.replicas) && r.spec.replicas > 0)"
    ),
    "message": "replicas must be zero for all non-External roles, or non-zero for all of them",
}
"""The validation rule that all roles must be scaled to zero together (R-DS-4)."""

SCALER_COLUMNS: tuple[JSONObject, ...] = (
    {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
    {"name": "Current", "type": "integer", "jsonPath": ".status.replicas"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)

SCALER_SUBRESOURCES: JSONObject = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}

TEXTS: dict[str, str] = {
    "DisaggregatedSet": (
        "A DisaggregatedSet runs the roles of one service, such as prefill and decode, as LeaderWorkerSets that are"
        " rolled out together."
    ),
    "spec": "The desired state of the DisaggregatedSet.",
    "status": "The observed state of the DisaggregatedSet.",
    "spec.roles": "The roles of the DisaggregatedSet. A change to a template, or to the order of the roles, is rolled out to all roles.",
    "spec.roles[].name": "The name of the role.",
    "spec.roles[].scaling": "The settings that determine the number of groups of the role.",
    "spec.roles[].scaling.mode": (
        "Whether spec.replicas (Static, default) or a DisaggregatedSetRoleScaler (External) determines the number of"
        " groups. With External, the controller creates a DisaggregatedSetRoleScaler for the role."
    ),
    "spec.roles[].metadata": "The labels and annotations for the LeaderWorkerSets of the role.",
    "spec.roles[].spec": (
        "The spec for the LeaderWorkerSets of the role. The replicas field specifies the number of groups in each slice."
    ),
    "spec.slices": "The number of independent copies of all roles. Defaults to 1.",
    "spec.placementPolicy": "The topology constraints for slices.",
    "spec.placementPolicy.type": (
        "Whether slices can share a topology domain. With None (default), they can. With ExclusiveSlice, slices of the same"
        " DisaggregatedSet cannot share a domain. With ExclusiveTopology, slices in the same namespace cannot share a domain."
    ),
    "spec.placementPolicy.topology": "The key of the node label that defines the topology domains.",
    "status.observedGeneration": "The most recent generation that the controller has observed.",
    "status.roleStatuses": "The status of each role. All numbers of groups are totals across all slices.",
    "status.roleStatuses[].name": "The name of the role.",
    "status.roleStatuses[].replicas": "The number of groups of the role that have been created.",
    "status.roleStatuses[].readyReplicas": "The number of groups of the role whose pods are all ready.",
    "status.roleStatuses[].updatedReplicas": "The number of groups of the role with the latest revision.",
    "status.conditions": "The conditions of the DisaggregatedSet. The types are Available and Progressing.",
}

SCALER_TEXTS: dict[str, str] = {
    "DisaggregatedSetRoleScaler": "The number of groups of one role. Autoscalers set it through the scale subresource.",
    "spec": "The desired state of the role.",
    "status": "The observed state of the role.",
    "spec.replicas": "The desired number of groups of the role.",
    "status.replicas": "The number of groups that have been created for the role.",
    "status.selector": "The label selector that autoscalers use to find the leader pods of the role.",
    "status.observedGeneration": "The most recent generation that the controller has observed.",
    "status.conditions": "The conditions of the scaler. The only condition type is Ready.",
}


def disaggregatedset_crd() -> JSONObject:
    """Return the CRD of DisaggregatedSet. Do not modify it, because its parts are shared."""
    version = {"subresources": {"status": {}}, "schema": {"openAPIV3Schema": _set_schema()}}
    return build_crd(DISAGGREGATED_SETS, {}, version, GENERATOR_ANNOTATION)


def role_scaler_crd() -> JSONObject:
    """Return the CRD of DisaggregatedSetRoleScaler. Do not modify it, because its parts are shared."""
    version = {
        "additionalPrinterColumns": list(SCALER_COLUMNS),
        "subresources": SCALER_SUBRESOURCES,
        "schema": {"openAPIV3Schema": _scaler_schema()},
    }
    return build_crd(ROLE_SCALERS, {"shortNames": ["dsrs"]}, version, GENERATOR_ANNOTATION)


def describe_disaggregatedset(document: JSONObject) -> JSONObject:
    """Return the DisaggregatedSet CRD with descriptions. `document` is the OpenAPI document of core/v1."""
    crd = disaggregatedset_crd()
    root = descriptions.with_descriptions_at_paths(_root_schema(crd), TEXTS, document)
    roles = root["properties"]["spec"]["properties"]["roles"]
    role = roles["items"]
    words = role["properties"]["spec"].get("description")
    spec = descriptions.type_with_descriptions(role["properties"]["spec"], ROLE_SPEC, document) | {"description": words}
    items = role | {"properties": role["properties"] | {"spec": spec}}
    return _with_root(crd, _replace_schema(root, ("spec", "roles"), roles | {"items": items}))


def describe_role_scaler(document: JSONObject) -> JSONObject:
    """Return the DisaggregatedSetRoleScaler CRD with descriptions."""
    crd = role_scaler_crd()
    return _with_root(crd, descriptions.with_descriptions_at_paths(_root_schema(crd), SCALER_TEXTS, document))


def _build_root(spec: JSONObject, status: JSONObject) -> JSONObject:
    return root_schema(spec, status) | {"required": ["spec"]}


def _set_schema() -> JSONObject:
    roles: JSONObject = {
        "type": "array",
        "minItems": MIN_ROLES,
        "maxItems": MAX_ROLES,
        "items": _role_schema(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    slices = {"type": "integer", "format": "int32", "default": 1, "minimum": 1, "maximum": MAX_SLICES}
    placement = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "default": "None", "enum": [kind.value for kind in PlacementType]},
            "topology": {"type": "string"},
        },
    }
    spec: JSONObject = {
        "type": "object",
        "properties": {"roles": roles, "slices": slices, "placementPolicy": placement},
        "required": ["roles"],
        "x-kubernetes-validations": [ZERO_RULE],
    }
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), schema.SCALARS["int32"])
    role_statuses = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}} | counts, "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    status = {
        "type": "object",
        "properties": {
            "observedGeneration": schema.SCALARS["int64"],
            "roleStatuses": role_statuses,
            "conditions": schema.schema_of("[]Condition"),
        },
    }
    return _build_root(spec, status)


def _role_schema() -> JSONObject:
    name = {"type": "string", "minLength": 1, "maxLength": 63, "pattern": ROLE_NAME_PATTERN}
    mode = {"type": "string", "default": "Static", "enum": [mode.value for mode in ScalingMode]}
    return {
        "type": "object",
        "properties": {
            "name": name,
            "scaling": {"type": "object", "properties": {"mode": mode}},
            "metadata": schema.EMBEDDED_METADATA,
            "spec": schema.schema_of(ROLE_SPEC),
        },
        "required": ["name"],
    }


def _scaler_schema() -> JSONObject:
    replicas = schema.SCALARS["int32"]
    spec = {
        "type": "object",
        "properties": {"replicas": replicas | {"default": 0, "minimum": 0}},
        "required": ["replicas"],
    }
    status = {
        "type": "object",
        "properties": {
            "replicas": replicas,
            "selector": {"type": "string"},
            "observedGeneration": schema.SCALARS["int64"],
            "conditions": schema.schema_of("[]Condition"),
        },
    }
    return _build_root(spec, status)


def _root_schema(crd: JSONObject) -> JSONObject:
    root: JSONObject = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root


def _with_root(crd: JSONObject, root: JSONObject) -> JSONObject:
    (version,) = crd["spec"]["versions"]
    return crd | {"spec": crd["spec"] | {"versions": [version | {"schema": {"openAPIV3Schema": root}}]}}


def _replace_schema(shape: JSONObject, path: tuple[str, ...], value: JSONObject) -> JSONObject:
    """Return an object schema with a replaced schema for the field at `path`."""
    if not path:
        return value
    child = _replace_schema(shape["properties"][path[0]], path[1:], value)
    return shape | {"properties": shape["properties"] | {path[0]: child}}
