"""Defines a webhook with its path, admission function, and rules."""

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.webhooks.review import Decide

NOT_DELETING: Final[JSONObject] = {
    "name": "not-deleting",
    "expression": "object == null || !has(object.metadata.deletionTimestamp)",
}
"""Excludes terminating objects, because deletion must not depend on the manager (docs/adr/0029)."""

NOTHING_TO_CHECK: Final[JSONObject] = {"name": "nothing-to-check", "expression": "false"}
"""Does not match any request, because a webhook that allows all requests would only add latency (docs/adr/0041)."""

ClientConfig: TypeAlias = Callable[[str], JSONObject]
"""Builds the `clientConfig` of a webhook with this path."""


class WebhookSpec(Struct, frozen=True, kw_only=True):
    """A webhook. If `mutates` is set, it can change objects. `selector` and `conditions` select the objects.

    `is_called` is False for a webhook that is only declared, because clients of upstream expect it.
    """

    name: str
    path: str
    decide: Decide
    resource: Resource
    operations: tuple[str, ...]
    mutates: bool
    selector: JSONObject | None = None
    conditions: tuple[JSONObject, ...] = ()
    is_called: bool = True

    def build(self, client_config: ClientConfig) -> JSONObject:
        """Build the entry for a webhook configuration."""
        rule = {
            "apiGroups": [self.resource.group],
            "apiVersions": [self.resource.version],
            "operations": list(self.operations),
            "resources": [self.resource.plural],
        }
        entry = {
            "name": self.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": client_config(self.path),
            "failurePolicy": "Fail",
            "rules": [rule],
            "sideEffects": "None",
        }
        conditions = [*([NOT_DELETING] if "UPDATE" in self.operations else ()), *self.conditions]
        conditions = conditions if self.is_called else [*conditions, NOTHING_TO_CHECK]
        matched = {"matchConditions": conditions} if conditions else {}
        return entry | matched | ({} if self.selector is None else {"objectSelector": self.selector})
