"""Selects the webhooks for a request. Configurations are parsed once per change.

A `Hook` is a webhook with compiled selectors. `HookIndex` caches the hooks with a matching rule by operation and
resource, so that a request without webhooks costs one dictionary lookup. Each resource has only one version, so
matchPolicy Equivalent and Exact are the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects import meta, resources, selectors
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.objects.selectors import LabelSelector
from localkube.apiserver.admission import match_conditions
from localkube.apiserver.admission.match_conditions import Condition
from localkube.apiserver.model.kind import Kind

AdmissionOperation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
NamespaceLabels: TypeAlias = Callable[[str], Mapping[str, str]]

EXEMPT = {resources.MUTATING_WEBHOOK_CONFIGURATIONS, resources.VALIDATING_WEBHOOK_CONFIGURATIONS}
"""The resources that are never sent to webhooks, so that users can repair a broken webhook."""


class Attempt(Struct, frozen=True, kw_only=True):
    """A write during admission. `object` is None for DELETE, `old` for CREATE. Webhooks add to `warnings`."""

    kind: Kind
    operation: AdmissionOperation
    namespace: str
    name: str
    object: JSONObject | None
    old: JSONObject | None
    user: str
    dry_run: bool = False
    subresource: str = ""
    options: JSONObject = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Hook(Struct, frozen=True):
    """A webhook with compiled selectors and match conditions."""

    declaration: JSONObject
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """Return the webhook's name."""
        return str(self.declaration["name"])

    def selects(self, attempt: Attempt, namespace_labels: NamespaceLabels) -> bool:
        """Return whether the selectors match the old or new object and its namespace, and all conditions are true."""
        if not all(condition(attempt.object) for condition in self.conditions):
            return False
        objects = [obj for obj in (attempt.object, attempt.old) if obj is not None]
        if self.objects.requirements and not any(self.objects.matches(meta.labels(obj)) for obj in objects):
            return False
        if not self.namespaces.requirements:
            return True
        if attempt.kind.resource == resources.NAMESPACES:
            return any(self.namespaces.matches(meta.labels(obj)) for obj in objects[:1])
        return not attempt.namespace or self.namespaces.matches(namespace_labels(attempt.namespace))


def parse_hooks(configurations: Iterable[JSONObject]) -> tuple[Hook, ...]:
    """Parse configurations, sorted by name."""
    ordered = sorted(configurations, key=meta.name)
    return tuple(
        _parse_hook(declaration) for configuration in ordered for declaration in configuration.get("webhooks") or ()
    )


def _parse_hook(declaration: JSONObject) -> Hook:
    return Hook(
        declaration,
        namespaces=selectors.from_object(declaration["namespaceSelector"]),
        objects=selectors.from_object(declaration["objectSelector"]),
        conditions=match_conditions.compile_conditions(declaration),
    )


class HookIndex:
    """The webhooks in all configurations of one type, indexed by operation and resource."""

    def __init__(self, hooks: Sequence[Hook] = ()) -> None:
        self._hooks = tuple(hooks)
        self._hooks_by_key: dict[tuple[Resource, AdmissionOperation, str], tuple[Hook, ...]] = {}

    def find(self, attempt: Attempt) -> tuple[Hook, ...]:
        """Return the webhooks with a rule that matches the attempt."""
        if not self._hooks:
            return ()
        key = (attempt.kind.resource, attempt.operation, attempt.subresource)
        hooks = self._hooks_by_key.get(key)
        if hooks is None:
            hooks = self._hooks_by_key[key] = tuple(hook for hook in self._hooks if _has_matching_rule(hook, *key))
        return hooks


def _has_matching_rule(hook: Hook, resource: Resource, operation: str, subresource: str) -> bool:
    if resource in EXEMPT:
        return False
    rules = hook.declaration.get("rules") or ()
    return any(_rule_matches(rule, resource, operation, subresource) for rule in rules)


def _rule_matches(rule: JSONObject, resource: Resource, operation: str, subresource: str) -> bool:
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return (
        rule["scope"] in {"*", scope}
        and not {"*", operation}.isdisjoint(rule["operations"])
        and not {"*", resource.group}.isdisjoint(rule["apiGroups"])
        and not {"*", resource.version}.isdisjoint(rule["apiVersions"])
        and any(_resource_matches(pattern, resource.plural, subresource) for pattern in rule["resources"])
    )


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    """Return whether a pattern such as `pods`, `pods/status`, `*`, `*/*`, `pods/*` or `*/status` matches this resource.

    >>> _resource_matches("*", "pods", "status"), _resource_matches("pods/*", "pods", "status")
    (False, True)
    """
    resource, _, part = pattern.partition("/")
    return resource in {"*", plural} and part in ({subresource, "*"} if subresource else {"", "*"})
