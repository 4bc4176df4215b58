"""Permissions that a part of a program needs at the API server; RBAC rules are generated from them.

Each part declares its permissions next to its code (`controllers/permissions.py`, `webhooks/permissions.py`,
`kuberuntime/serving/permissions.py`); nothing else decides what the installed roles allow.
"""

from collections.abc import Iterable

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource


class Permission(Struct, frozen=True):
    """Verbs on a resource or one of its subresources; with `names` only on the objects with these names."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Return the resource as a role names it.

        >>> from kuberuntime.objects.resources import PODS
        >>> Permission(PODS, ("get",), "log").target
        'pods/log'
        """
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural


def policy_rules(permissions: Iterable[Permission]) -> list[JSONObject]:
    """Build the rules of a role, sorted; permissions that differ only in the resource become one rule."""
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
    """Merge the permissions of several parts on the same objects; verbs are sorted."""
    verbs: dict[tuple[Resource, str, tuple[str, ...]], set[str]] = {}
    for permission in permissions:
        names = tuple(sorted(permission.names))
        verbs.setdefault((permission.resource, permission.subresource, names), set()).update(permission.verbs)
    return [
        Permission(resource, tuple(sorted(allowed_verbs)), subresource, names)
        for (resource, subresource, names), allowed_verbs in verbs.items()
    ]
