"""Builds roles for users with view or edit permissions in a namespace, for the kinds of the manager.

Kubernetes adds the rules to its own roles `view`, `edit` and `admin` by the label of each role. They need no binding,
and the manager needs none of them.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CLUSTER_ROLES, Resource
from leaderworkerset.api import metadata
from leaderworkerset.install.objects import KindDeclarations

AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
SCALE: Final = ("patch", "update")


def build(declared: KindDeclarations) -> Sequence[tuple[Resource, JSONObject]]:
    """Build two roles for each kind, for editors and viewers."""
    return [
        (CLUSTER_ROLES, role)
        for definition in declared.definitions()
        for role in (_editor(definition), _viewer(definition))
    ]


def _editor(definition: JSONObject) -> JSONObject:
    scale = [_rule(definition, ("scale",), SCALE)] if "scale" in _subresources(definition) else []
    return _role(definition, "editor", "edit", [_rule(definition, ("",), WRITE), *scale])


def _viewer(definition: JSONObject) -> JSONObject:
    below = _rule(definition, _subresources(definition), ("get",))
    return _role(definition, "viewer", "view", [_rule(definition, ("",), READ), below])


def _role(definition: JSONObject, name: str, joins: str, rules: list[JSONObject]) -> JSONObject:
    singular = meta.spec(definition)["names"]["singular"]
    role = metadata.build(CLUSTER_ROLES, f"lws-{singular}-{name}-role", rules=rules)
    own = role["metadata"]
    return role | {"metadata": own | {"labels": own["labels"] | {f"{AGGREGATE}{joins}": "true"}}}


def _rule(definition: JSONObject, subresources: Sequence[str], verbs: Sequence[str]) -> JSONObject:
    spec = meta.spec(definition)
    plural = spec["names"]["plural"]
    resources = [f"{plural}/{subresource}" if subresource else plural for subresource in subresources]
    return {"apiGroups": [spec["group"]], "resources": resources, "verbs": list(verbs)}


def _subresources(definition: JSONObject) -> Sequence[str]:
    """Return the subresources of the stored version."""
    (stored_version,) = [version for version in meta.spec(definition)["versions"] if version["storage"]]
    return sorted(stored_version.get("subresources") or {})
