"""A webhook as a value: its path, its decision, and the writes that the API server sends to it."""

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
"""Does not match objects that are being deleted, because deletion must not depend on the manager (docs/adr/0029)."""

NOTHING_TO_CHECK: Final[JSONObject] = {"name": "nothing-to-check", "expression": "false"}
"""Does not match any request, because a webhook that allows everything would only cost time (docs/adr/0041)."""

ClientConfig: TypeAlias = Callable[[str], JSONObject]
"""Builds the `clientConfig` of a webhook from its path."""


class WebhookSpec(Struct, frozen=True, kw_only=True):
    """One webhook. `mutates` means that it may change objects; `selector` (labels) and `conditions` select its objects.

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
        """Build the entry in a webhook configuration."""
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
