"""Discovery: which groups, versions and resources are served, as kubectl and client-go request it.

```
/api, /apis                  groups and versions; all resources at once where the client accepts the aggregated form
/apis/<group>                one group
/api/v1, /apis/<g>/<v>       the resources of one version, their verbs and subresources
```
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model import refusal
from localkube.apiserver.model.catalog import Registry, Served
from localkube.apiserver.requests.body import JSON_TYPE
from localkube.apiserver.routing import loadmetrics, reviews, routes

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
EDITS: Final = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """The entry of a subresource in discovery; `group` and `version` are set if its kind is of another group."""

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


def subresources(served: Served) -> Iterator[Subresource]:
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


def answer(registry: Registry, parts: Sequence[str], accept: str) -> tuple[JSONObject, str]:
    """Return the document at a discovery path (split at its slashes), and its content type."""
    aggregated = "as=apigroupdiscoverylist" in accept.lower().replace(" ", "") and "v=v2" in accept
    match parts:
        case ["api"] | ["apis"] as root if aggregated:
            return _aggregated(registry, core=root == ["api"]), AGGREGATED
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
    raise refusal.unknown_resource()


def _addresses(registry: Registry) -> Iterator[Resource]:
    yield from (served.resource for served in registry)
    yield from (resource for resource, _ in _unstored())


def _unstored() -> Iterator[tuple[Resource, tuple[str, ...]]]:
    """Yield the resources that have no objects of their own, with their verbs."""
    yield from ((resource, ("create",)) for resource in reviews.RESOURCES)
    yield from ((resource, ("get", "list")) for resource in loadmetrics.RESOURCES)


def _groups(registry: Registry) -> list[str]:
    return sorted({resource.group for resource in _addresses(registry)})


def _versions(registry: Registry, group: str) -> list[str]:
    """Return the versions of a group, the preferred one first: of released ones the newest."""
    found = {resource.version for resource in _addresses(registry) if resource.group == group}
    return sorted(sorted(found), key=lambda version: -int(version[1:]) if version[1:].isdecimal() else 0)


def _group(registry: Registry, group: str) -> JSONObject:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in _versions(registry, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _of(registry: Registry, group: str, version: str) -> list[Served]:
    wanted = [served for served in registry if (served.resource.group, served.resource.version) == (group, version)]
    return sorted(wanted, key=lambda served: served.resource.plural)


def _resources(registry: Registry, group: str, version: str) -> JSONObject:
    listed: list[JSONObject] = []
    for served in _of(registry, group, version):
        listed.append(_resource(served))
        listed += [_subresource(served, subresource) for subresource in subresources(served)]
    listed += [
        {
            "name": resource.plural,
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(verbs),
        }
        for resource, verbs in _unstored()
        if (resource.group, resource.version) == (group, version)
    ]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed}


def _resource(served: Served) -> JSONObject:
    resource, kind = served.resource, served.kind
    names: JSONObject = {"shortNames": list(kind.short_names)} if kind.short_names else {}
    names |= {"categories": list(kind.categories)} if kind.categories else {}
    return {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(VERBS),
        **names,
    }


def _subresource(served: Served, subresource: Subresource) -> JSONObject:
    address = {"group": subresource.group, "version": subresource.version} if subresource.group else {}
    return {
        "name": f"{served.resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": served.resource.namespaced,
        **address,
        "kind": subresource.kind,
        "verbs": list(subresource.verbs),
    }


def _aggregated(registry: Registry, *, core: bool) -> JSONObject:
    groups: Iterable[str] = [""] if core else [group for group in _groups(registry) if group]
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [_discovered(served) for served in _of(registry, group, version)]
                    + [
                        _discovered_as(one, one.kind.lower(), verbs) for one, verbs in _unstored() if one.group == group
                    ],
                    "freshness": "Current",
                }
                for version in _versions(registry, group)
            ],
        }
        for group in groups
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(served: Served) -> JSONObject:
    resource = served.resource
    listed = _resource(served)
    found = _discovered_as(resource, served.kind.singular, VERBS)
    found |= {name: listed[name] for name in ("shortNames", "categories") if name in listed}
    below = [
        {
            "subresource": one.name,
            "responseKind": _kind(one.group or resource.group, one.version or resource.version, one.kind),
            "verbs": list(one.verbs),
        }
        for one in subresources(served)
    ]
    return found | {"subresources": below} if below else found


def _discovered_as(resource: Resource, singular: str, verbs: Sequence[str]) -> JSONObject:
    return {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": singular,
        "verbs": list(verbs),
    }


def _kind(group: str, version: str, kind: str) -> JSONObject:
    return {"group": group, "version": version, "kind": kind}
