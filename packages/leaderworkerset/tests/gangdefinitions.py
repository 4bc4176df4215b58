"""Defines the CRDs of gang schedulers with the fields that tests write."""

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.core.gang.coscheduling import COSCHEDULING
from leaderworkerset.core.gang.provider import Provider
from leaderworkerset.core.gang.volcano import VOLCANO

COUNT: JSONObject = {"type": "integer", "format": "int32", "minimum": 1}
AMOUNTS: JSONObject = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
}


def kind_of(provider: Provider) -> Resource:
    """Return the kind that represents a group, for a scheduler that has one."""
    assert provider.group_object is not None
    return provider.group_object


def define(resource: Resource, fields: JSONObject, annotations: dict[str, str]) -> JSONObject:
    """Return the CRD of a kind. A field that it does not contain is an error in the test."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.group_resource, "annotations": annotations},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": names | {"singular": resource.kind.lower()},
            "versions": [version],
        },
    }


VOLCANO_DEFINITION = define(
    kind_of(VOLCANO), {"minMember": COUNT, "minResources": AMOUNTS, "queue": {"type": "string"}}, {}
)
COSCHEDULING_DEFINITION = define(
    kind_of(COSCHEDULING),
    {"minMember": COUNT, "minResources": AMOUNTS},
    {"api-approved.kubernetes.io": "unapproved, for tests"},
)
