"""Connects admission webhooks and the pod quota to the store and to requests.

Webhook configurations are regular objects, which take effect when they are committed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    PODS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from localkube.apiserver.admission.webhook_rules import AdmissionOperation, Attempt
from localkube.apiserver.admission.webhooks import Admission
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.storage.store import Change, Store, StoreKey

MUTATING: Final = MUTATING_WEBHOOK_CONFIGURATIONS.group_resource
VALIDATING: Final = VALIDATING_WEBHOOK_CONFIGURATIONS.group_resource

OPTIONS: Final[Mapping[AdmissionOperation, str]] = {
    "CREATE": "CreateOptions",
    "UPDATE": "UpdateOptions",
    "DELETE": "DeleteOptions",
}


class Configurations:
    """Updates the webhooks when the stored configurations change."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    def load(self) -> None:
        """Load the configurations that were stored before this process started."""
        self._admission.use_mutating(self._list_stored(MUTATING))
        self._admission.use_validating(self._list_stored(VALIDATING))

    def observe(self, changes: Sequence[Change]) -> None:
        """Update the webhooks after a commit."""
        touched = {change.key.resource for change in changes}
        if MUTATING in touched:
            self._admission.use_mutating(self._list_stored(MUTATING))
        if VALIDATING in touched:
            self._admission.use_validating(self._list_stored(VALIDATING))

    def _list_stored(self, resource: str) -> list[JSONObject]:
        return [msgspec.json.decode(row) for row in self._store.list(resource)]


def namespace_labels(store: Store, namespace: str) -> Mapping[str, str]:
    """Return the labels of a namespace, to match them against the namespace selectors of webhooks."""
    return meta.labels(store.get(StoreKey(NAMESPACES.group_resource, "", namespace)) or {})


def build_attempt(call: Call, old: JSONObject | None, new: JSONObject | None, write_options: WriteOptions) -> Attempt:
    """Return the admission attempt for a write (with `new`) or a deletion."""
    operation: AdmissionOperation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    options: JSONObject = {"kind": OPTIONS[operation], "apiVersion": "meta.k8s.io/v1"}
    if new is not None:
        options |= {name: call.query[name] for name in ("fieldManager", "fieldValidation") if call.query.get(name)}
    if write_options.dry_run:
        options["dryRun"] = ["All"]
    return Attempt(
        kind=call.served.kind,
        operation=operation,
        namespace=call.namespace,
        name=call.name or meta.name(new or {}),
        object=new,
        old=old,
        user=call.user,
        dry_run=write_options.dry_run,
        subresource=call.subresource,
        options=options,
        warnings=write_options.warnings,
    )


NAME: Final = "max-pods"


def require_quota(store: Store, name: str, limit: int) -> None:
    """Reject a new pod with a ResourceQuota error if the cluster already has `limit` pods."""
    used = store.count(PODS.group_resource)
    if used >= limit:
        raise apierrors.forbidden(
            PODS,
            name,
            f"exceeded quota: {NAME}, requested: count/pods=1, used: count/pods={used}, limited: count/pods={limit}",
        )
