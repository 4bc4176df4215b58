"""Represents the permissions that a component needs for API requests. RBAC rules are generated from them.

Each component declares its permissions next to its code (`controllers/permissions.py`, `webhooks/permissions.py`,
`kuberuntime/serving/permissions.py`). The installed roles contain only these permissions.
"""

from collections.abc import Iterable

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource


class Permission(Struct, frozen=True):
    """The permission for verbs on a resource or subresource. `names` restricts it to objects with these names."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Return the resource in the notation of roles.

        >>> from kuberuntime.objects.resources import PODS
        >>> Permission(PODS, ("get",), "log").target
        'pods/log'
        """
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural


def policy_rules(permissions: Iterable[Permission]) -> list[JSONObject]:
    """Build the sorted rules of a role. Permissions that differ only in the resource are combined in one rule."""
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], set[str]] = {}
    for permission in merge(permissions):
        key = (permission.resource.group, permission.names, permission.verbs)
        alike.setdefault(key, set()).add(permission.target)
    rules = [
        {"apiGroups": [group], "resources": sorted(targets)}
        | ({"resourceNames": list(names)} if names else {})
        | {"verbs": list(verbs)}
        for (group, names, verbs), targets in alike.items()
    ]
    return sorted(rules, key=lambda rule: (rule["apiGroups"], rule["resources"]))


def merge(permissions: Iterable[Permission]) -> list[Permission]:
    """Merge permissions for the same objects. Verbs are sorted."""
    verbs: dict[tuple[Resource, str, tuple[str, ...]], set[str]] = {}
    for permission in permissions:
        names = tuple(sorted(permission.names))
        verbs.setdefault((permission.resource, permission.subresource, names), set()).update(permission.verbs)
    return [
        Permission(resource, tuple(sorted(allowed_verbs)), subresource, names)
        for (resource, subresource, names), allowed_verbs in verbs.items()
    ]
