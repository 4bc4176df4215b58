"""Builds the replacement for an object that differs from the desired object (R-OP-25).

A desired object replaces the live object as a whole, so that other spec fields are removed. Labels, annotations,
finalizers and owners from other writers are kept, as well as the status and the fields in `KEPT`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import DEPLOYMENTS, SECRETS, SERVICE_ACCOUNTS, Resource
from leaderworkerset.install.certmanager import INJECT
from leaderworkerset.install.operatornames import OPERATORS, SPEC_HASH

KEPT: Final[Mapping[Resource, Sequence[str]]] = {
    SECRETS: ("data", "type"),
    SERVICE_ACCOUNTS: ("secrets", "imagePullSecrets"),
}
"""The fields of other writers.

Examples are the certificate of the manager, and pull secrets from administrators or OpenShift.
"""

RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
"""The pod template annotation that `kubectl rollout restart` uses to request new pods."""

VOLATILE: Final = ("generation", "managedFields", "resourceVersion")

Live: TypeAlias = Mapping[tuple[Resource, ObjectKey], JSONObject]


class Difference(msgspec.Struct, frozen=True):
    """An object to create, or to replace `live`. If `must_recreate` is set, `live` is deleted first."""

    kind: Resource
    desired: JSONObject
    live: JSONObject | None
    must_recreate: bool = False


def digest(value: JSON) -> str:
    """Return the SHA-256 hash of a value. The field order does not affect the hash."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def with_content_hash(obj: JSONObject) -> JSONObject:
    """Return the object with a hash of its content."""
    own = meta.metadata(obj)
    return obj | {"metadata": own | {"annotations": {**meta.annotations(obj), SPEC_HASH: digest(obj)}}}


def content(obj: JSONObject) -> JSONObject:
    """Return the object without the metadata that changes with each write.

    >>> content({"metadata": {"name": "x", "resourceVersion": "7"}})
    {'metadata': {'name': 'x'}}
    """
    return obj | {"metadata": {name: value for name, value in meta.metadata(obj).items() if name not in VOLATILE}}


def merge_live_fields(kind: Resource, desired: JSONObject, live: JSONObject) -> JSONObject:
    """Return the replacement for the live object, with the desired fields and the fields of other writers."""
    theirs = {name: text for name, text in meta.annotations(live).items() if name != INJECT}
    owners = [owner for owner in meta.owners(live) if owner.get("kind") != OPERATORS.kind]
    own = meta.metadata(live) | {
        "labels": {**meta.labels(live), **meta.labels(desired)},
        "annotations": {**theirs, **meta.annotations(desired)},
        "ownerReferences": [*owners, *meta.owners(desired)],
    }
    kept = {name: live[name] for name in ("status", *KEPT.get(kind, ())) if name in live}
    result = desired | kept | {"metadata": own}
    if kind == DEPLOYMENTS:
        return result | {"spec": _with_restart_annotation(result["spec"], meta.spec(live))}
    return result | {"webhooks": _with_injected_ca(result["webhooks"], live)} if "webhooks" in result else result


def is_frozen(kind: Resource, desired: JSONObject, live: JSONObject) -> bool:
    """Return whether the live object must be recreated, because it cannot be updated to the desired object.

    A role with an aggregation rule can only be written by cluster administrators.
    """
    selects = kind == DEPLOYMENTS and meta.spec(live).get("selector") != meta.spec(desired)["selector"]
    is_closed = bool(live.get("immutable") or live.get("aggregationRule"))
    return is_closed or live.get("roleRef") != desired.get("roleRef") or selects


def _with_restart_annotation(spec: JSONObject, live: JSONObject) -> JSONObject:
    """Return a Deployment spec that preserves the restart annotation of a user."""
    restart_time = meta.annotations(live.get("template") or {}).get(RESTARTED)
    if restart_time is None:
        return spec
    template = spec["template"]
    annotations = {**meta.annotations(template), RESTARTED: restart_time}
    return spec | {"template": template | {"metadata": template["metadata"] | {"annotations": annotations}}}


def _with_injected_ca(webhooks: Sequence[JSONObject], live: JSONObject) -> list[JSONObject]:
    """Return the webhooks with the CAs that were injected in webhooks with the same name (R-OP-18)."""
    bundles = {
        webhook.get("name"): (webhook.get("clientConfig") or {}).get("caBundle")
        for webhook in live.get("webhooks") or []
    }
    return [
        webhook | {"clientConfig": webhook["clientConfig"] | {"caBundle": bundle}}
        if (bundle := bundles.get(webhook["name"]))
        else webhook
        for webhook in webhooks
    ]
