"""Serves discovery documents with groups, versions and resources, for kubectl and client-go.

```
/api, /apis                   groups and versions; all resources at once if the client accepts the aggregated form
/apis/<group>                 one group
/api/v1, /apis/<g>/<v>        the resources of one version, their verbs and subresources
```
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import Registry, ServedKind
from localkube.apiserver.requests.body import JSON_TYPE
from localkube.apiserver.routing import resourcemetrics, reviews, routes

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
EDITS: Final = ("get", "patch", "update")


class Subresource(Struct, frozen=True):
    """A subresource in discovery. `group` and `version` are set if its kind belongs to a different group."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


POD_SUBRESOURCES: Final = (
    Subresource("attach", "PodAttachOptions", ("create", "get")),
    Subresource("binding", "Binding", ("create",)),
    Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    Subresource("exec", "PodExecOptions", ("create", "get")),
    Subresource("log", "Pod", ("get",)),
    Subresource("portforward", "PodPortForwardOptions", ("create", "get")),
    Subresource("resize", "Pod", EDITS),
)
SCALE: Final = Subresource("scale", "Scale", EDITS, "autoscaling", "v1")


class DiscoveryResource(NamedTuple):
    """A resource in discovery."""

    resource: Resource
    singular: str
    verbs: tuple[str, ...]
    names: JSONObject
    subresources: tuple[Subresource, ...] = ()


def list_resources(registry: Registry) -> list[DiscoveryResource]:
    """Return all resources, including resources without objects, sorted by name."""
    served = [_resource_entry(kind) for kind in registry]
    of_reviews = [DiscoveryResource(resource, resource.kind.lower(), ("create",), {}) for resource in reviews.RESOURCES]
    of_metrics = [
        DiscoveryResource(resource, resource.kind.lower(), ("get", "list"), {})
        for resource in resourcemetrics.RESOURCES
    ]
    return sorted([*served, *of_reviews, *of_metrics], key=lambda item: item.resource.plural)


def _resource_entry(served: ServedKind) -> DiscoveryResource:
    kind = served.kind
    names: JSONObject = {"shortNames": list(kind.short_names)} if kind.short_names else {}
    names |= {"categories": list(kind.categories)} if kind.categories else {}
    return DiscoveryResource(kind.resource, kind.singular, VERBS, names, tuple(subresources(served)))


def subresources(served: ServedKind) -> Iterator[Subresource]:
    """Yield the subresources of a kind."""
    kind = served.kind
    if kind.has_status:
        yield Subresource("status", kind.resource.kind, EDITS)
    if kind.scale is not None:
        yield SCALE
    if "log" in routes.OWN_SUBRESOURCES.get(served.stored_as, ()):
        yield from POD_SUBRESOURCES
    if "finalize" in routes.OWN_SUBRESOURCES.get(served.stored_as, ()):
        yield Subresource("finalize", kind.resource.kind, ("update",))


def respond(registry: Registry, parts: Sequence[str], accept: str) -> tuple[JSONObject, str]:
    """Return the document for a discovery path (split at slashes), and its content type."""
    aggregated = "as=apigroupdiscoverylist" in accept.lower().replace(" ", "") and "v=v2" in accept
    match parts:
        case ["api"] | ["apis"] as root if aggregated:
            return _aggregated_document(registry, core=root == ["api"]), AGGREGATED
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}, JSON_TYPE
        case ["apis"]:
            groups = [_group(registry, group) for group in _groups(registry) if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}, JSON_TYPE
        case ["apis", group] if group in _groups(registry):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}, JSON_TYPE
        case ["api", "v1"]:
            return _resources(registry, "", "v1"), JSON_TYPE
        case ["apis", group, version] if version in _versions(registry, group):
            return _resources(registry, group, version), JSON_TYPE
    raise apierrors.unknown_resource()


def _groups(registry: Registry) -> list[str]:
    return sorted({item.resource.group for item in list_resources(registry)})


def _versions(registry: Registry, group: str) -> list[str]:
    """Return the versions of a group, starting with the preferred version, which is the latest stable version."""
    versions = {item.resource.version for item in list_resources(registry) if item.resource.group == group}
    return sorted(sorted(versions), key=lambda version: -int(version[1:]) if version[1:].isdecimal() else 0)


def _group(registry: Registry, group: str) -> JSONObject:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in _versions(registry, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources_of_version(registry: Registry, group: str, version: str) -> list[DiscoveryResource]:
    return [
        item for item in list_resources(registry) if (item.resource.group, item.resource.version) == (group, version)
    ]


def _resources(registry: Registry, group: str, version: str) -> JSONObject:
    entries = [entry for item in _resources_of_version(registry, group, version) for entry in _resource_entries(item)]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": entries}


def _resource_entries(item: DiscoveryResource) -> Iterator[JSONObject]:
    """Yield the discovery entries of a resource and its subresources, for an APIResourceList."""
    resource = item.resource
    place = {"singularName": "", "namespaced": resource.namespaced}
    singular = {"singularName": item.singular} if item.verbs is VERBS else {}
    yield {"name": resource.plural, **place, **singular, "kind": resource.kind, "verbs": list(item.verbs), **item.names}
    for below in item.subresources:
        address = {"group": below.group, "version": below.version} if below.group else {}
        name = f"{resource.plural}/{below.name}"
        yield {"name": name, **place, **address, "kind": below.kind, "verbs": list(below.verbs)}


def _aggregated_document(registry: Registry, *, core: bool) -> JSONObject:
    groups: Iterable[str] = [""] if core else [group for group in _groups(registry) if group]
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        _aggregated_resource(item) for item in _resources_of_version(registry, group, version)
                    ],
                    "freshness": "Current",
                }
                for version in _versions(registry, group)
            ],
        }
        for group in groups
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_resource(item: DiscoveryResource) -> JSONObject:
    resource = item.resource
    below = [
        {
            "subresource": subresource.name,
            "responseKind": _kind_entry(
                subresource.group or resource.group, subresource.version or resource.version, subresource.kind
            ),
            "verbs": list(subresource.verbs),
        }
        for subresource in item.subresources
    ]
    return {
        "resource": resource.plural,
        "responseKind": _kind_entry(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": item.singular,
        "verbs": list(item.verbs),
        **item.names,
        **({"subresources": below} if below else {}),
    }


def _kind_entry(group: str, version: str, kind: str) -> JSONObject:
    return {"group": group, "version": version, "kind": kind}
