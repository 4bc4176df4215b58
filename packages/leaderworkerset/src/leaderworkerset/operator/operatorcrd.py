"""Builds the CRD of LeaderWorkerSetOperators (R-OP-1 to R-OP-8)."""

from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.crd import build_crd, root_schema
from leaderworkerset.install.operatornames import OPERATORS, SINGLETON

LOG_LEVELS: Final = ("", "Normal", "Debug", "Trace", "TraceAll")
STATES: Final = "^(Managed|Unmanaged|Force|Removed)$"
CONDITION_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
TEXT: Final[JSONObject] = {"type": "string"}
INT32: Final[JSONObject] = {"type": "integer", "format": "int32"}
INT64: Final[JSONObject] = {"type": "integer", "format": "int64"}

COLUMNS: Final[tuple[JSONObject, ...]] = (
    {"name": "State", "type": "string", "jsonPath": ".spec.managementState"},
    {"name": "Available", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Available")].status'},
    {"name": "Degraded", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Degraded")].status'},
    {"name": "Version", "type": "string", "jsonPath": ".status.version"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


def operator_crd() -> JSONObject:
    """Build the CRD."""
    only_one = {
        "rule": f"self.metadata.name == '{SINGLETON.name}'",
        "message": f"{OPERATORS.kind} is a singleton: its name must be {SINGLETON.name}",
    }
    root = root_schema(_spec(), _status()) | {
        "description": "Installs the manager of LeaderWorkerSets. The name of the object must be cluster.",
        "required": ["spec"],
        "x-kubernetes-validations": [only_one],
    }
    version = {
        "additionalPrinterColumns": list(COLUMNS),
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": root},
    }
    return build_crd(OPERATORS, {"shortNames": ["lwsop"], "categories": ["operators"]}, version)


def _spec() -> JSONObject:
    level = {"type": "string", "default": "Normal", "enum": list(LOG_LEVELS)}
    free = {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True}
    return {
        "description": "The desired state of the installation.",
        "type": "object",
        "properties": {
            "managementState": {
                "description": "Whether the operator manages the installation. If the field is not set, the state is Managed.",
                "type": "string",
                "pattern": STATES,
            },
            "logLevel": level | {"description": "The log level of the manager."},
            "operatorLogLevel": level
            | {"description": "The log level of the operator. A change takes effect immediately."},
            "observedConfig": free | {"description": "The TLS profile of the cluster. The operator sets this field."},
            "unsupportedConfigOverrides": free
            | {
                "description": (
                    "A JSON merge patch for the configuration of the manager. If a patch is set, the condition "
                    "Upgradeable is False."
                )
            },
            "nodePlacement": _placement(),
        },
    }


def _placement() -> JSONObject:
    toleration = {
        "type": "object",
        "properties": {
            "key": TEXT,
            "operator": TEXT,
            "value": TEXT,
            "effect": TEXT,
            "tolerationSeconds": INT64,
        },
    }
    return {
        "description": "The node placement of the manager pods. This setting does not affect the operator pod.",
        "type": "object",
        "properties": {
            "nodeSelector": {
                "description": "The node selector for the manager pods. If the selector is not empty, it replaces the default node selector.",
                "type": "object",
                "additionalProperties": TEXT,
            },
            "tolerations": {
                "description": "The tolerations for the manager pods. If the field is set, even to an empty list, it replaces the default tolerations.",
                "type": "array",
                "items": toleration,
            },
        },
    }


def _status() -> JSONObject:
    return {
        "description": "The observed state of the installation.",
        "type": "object",
        "properties": {
            "conditions": _list_map(["type"], _condition()) | {"description": "The conditions of the installation."},
            "generations": _list_map(["group", "resource", "namespace", "name"], _generation())
            | {"description": "The generation of the most recent Deployment that the operator has applied."},
            "observedGeneration": INT64
            | {"description": "The most recent generation of this object that the operator has observed."},
            "readyReplicas": INT32 | {"description": "The number of available replicas of the manager."},
            "version": TEXT | {"description": "The installed version of the manager."},
            "latestAvailableRevision": INT32
            | {
                "description": "This field is not used.",
                "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "must only increase"}],
            },
        },
    }


def _condition() -> JSONObject:
    return {
        "type": "object",
        "required": ["lastTransitionTime", "status", "type"],
        "properties": {
            "type": TEXT | {"maxLength": 316, "pattern": CONDITION_TYPE},
            "status": TEXT | {"enum": ["True", "False", "Unknown"]},
            "lastTransitionTime": TEXT | {"format": "date-time"},
            "reason": TEXT,
            "message": TEXT,
        },
    }


def _generation() -> JSONObject:
    names = ("group", "resource", "namespace", "name")
    properties = dict.fromkeys(names, TEXT) | {"lastGeneration": INT64, "hash": TEXT}
    return {"type": "object", "required": list(names), "properties": properties}


def _list_map(keys: list[str], item: JSONObject) -> JSONObject:
    return {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
