"""Builds the CustomResourceDefinition of LeaderWorkerSet from the field tables (R-API-1 to R-API-8).

The same object is written to `deploy/crds/` by `deploy/generate.py` and loaded by the embedded cluster.
"""

from collections.abc import Mapping

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from leaderworkerset.api import schema
from leaderworkerset.api.resources import LEADERWORKERSETS

GENERATOR_ANNOTATION = {"controller-gen.kubebuilder.io/version": "v0.17.2"}
"""The annotation that tools use to compare installed CRDs (R-API-1)."""

COLUMNS: tuple[JSONObject, ...] = (
    {
        "name": "Ready",
        "type": "integer",
        "jsonPath": ".status.readyReplicas",
        "description": "Number of ready replicas",
    },
    {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas", "description": "Number of desired replicas"},
    {
        "name": "Up-to-date",
        "type": "integer",
        "jsonPath": ".status.updatedReplicas",
        "description": "Number of up-to-date replicas",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)

SUBRESOURCES: JSONObject = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.hpaPodSelector",
    },
}


DEFAULT_STRATEGY: JSONObject = {"type": "RollingUpdate"}
"""The default strategy that the API server sets. The webhook sets the other defaults (R-DEF-2)."""


def leaderworkerset_crd() -> JSONObject:
    """Return the CRD. Do not modify it, because its parts are shared."""
    version = {
        "additionalPrinterColumns": list(COLUMNS),
        "subresources": SUBRESOURCES,
        "schema": {
            "openAPIV3Schema": root_schema(
                _with_default_strategy(schema.schema_of("LeaderWorkerSetSpec")),
                schema.schema_of("LeaderWorkerSetStatus"),
            )
        },
    }
    return build_crd(LEADERWORKERSETS, {"shortNames": ["lws"]}, version, GENERATOR_ANNOTATION)


def build_crd(
    resource: Resource, names: JSONObject, version: JSONObject, annotations: Mapping[str, str] | None = None
) -> JSONObject:
    """Return a CRD.

    `names` are additional names of the kind. `version` contains the columns, subresources and schema.
    """
    own: JSONObject = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    return {
        **CUSTOM_RESOURCE_DEFINITIONS.type_meta,
        "metadata": {"name": resource.group_resource} | ({"annotations": dict(annotations)} if annotations else {}),
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": own | names,
            "versions": [{"name": resource.version, "served": True, "storage": True} | version],
        },
    }


def root_schema(spec: JSONObject, status: JSONObject) -> JSONObject:
    """Return the schema of a kind from the schemas of its spec and status."""
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


def _with_default_strategy(spec: JSONObject) -> JSONObject:
    """Set a default strategy before admission. Otherwise, Kueue would write an invalid strategy (R-KQ-10)."""
    fields = spec["properties"]
    return spec | {
        "properties": fields | {"rolloutStrategy": fields["rolloutStrategy"] | {"default": DEFAULT_STRATEGY}}
    }
