"""Sets the metadata of new objects, and restores immutable metadata in updates.

In: the sent metadata, the current time, new identities, the stored object. Out: the metadata to store.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from kuberuntime.objects import timestamps
from kuberuntime.objects.field import FieldError, Kind, invalid
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model.identities import Identities

SERVER_OWNED: Final = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "resourceVersion", "selfLink", "uid",
)  # fmt: skip
KEPT: Final = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
"""The fields that an update preserves from the stored object, regardless of the request."""

IMMUTABLE: Final = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")

LONGEST_BASE: Final = 58
"""The maximum number of used characters of `generateName`, which is 63 minus the suffix."""


def new_metadata(metadata: JSONObject, identities: Identities, now: datetime) -> JSONObject:
    """Return the metadata of a new object."""
    kept = {name: value for name, value in metadata.items() if name not in SERVER_OWNED and value is not None}
    if not kept.get("name") and kept.get("generateName"):
        kept["name"] = str(kept["generateName"])[:LONGEST_BASE] + identities.suffix()
    return {**kept, "uid": identities.uid(), "creationTimestamp": timestamps.render(now)}


def updated_metadata(metadata: JSONObject, old: JSONObject) -> JSONObject:
    """Return the metadata of an update, with the immutable fields restored."""
    sent = {name: value for name, value in metadata.items() if name not in {"selfLink", "generation"}}
    kept: JSONObject = {name: old[name] for name in KEPT if name in old}
    return {**sent, **kept, "uid": sent.get("uid") or old["uid"], "resourceVersion": old["resourceVersion"]}


def update_errors(metadata: JSONObject, old: JSONObject) -> Iterator[FieldError]:
    """Yield the errors of the metadata of an update."""
    for name in IMMUTABLE:
        if metadata.get(name) != old.get(name):
            yield invalid(f"metadata.{name}", metadata.get(name), "field is immutable")
    if old.get("deletionTimestamp"):
        added = sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            names = ", ".join(f'"{name}"' for name in added)
            text = (
                "no new finalizers can be added if the object is being deleted, found new finalizers"
                f" []string{{{names}}}"
            )
            yield FieldError(Kind.FORBIDDEN, "metadata.finalizers", detail=text)
