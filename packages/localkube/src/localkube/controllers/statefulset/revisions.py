"""Manages the revisions of a StatefulSet template: the current, the update and obsolete revisions.

Mirrors `getStatefulSetRevisions`, `truncateHistory` and `pkg/controller/history`. A revision is named `<set>-<hash>`.
The hash includes the template and the collision count, so that a name collision leads to a new name.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.controllers.templatehash import template_hash

HASH_LABEL: Final = "controller.kubernetes.io/hash"
HISTORY_LIMIT: Final = 10
LONGEST_PREFIX: Final = 223


class CurrentRevision(Struct, frozen=True):
    """The latest revision already has the template."""

    revision: JSONObject


class RenumberedRevision(Struct, frozen=True):
    """An older revision has the template, and becomes the latest revision with `number`."""

    revision: JSONObject
    number: int


class NewRevision(Struct, frozen=True):
    """No revision has the template, so a revision with `number` is created."""

    number: int


def sort_revisions(revisions: Iterable[JSONObject]) -> list[JSONObject]:
    """Sort from oldest to newest."""
    return sorted(
        revisions,
        key=lambda revision: (revision_number(revision), meta.creation_timestamp(revision), meta.name(revision)),
    )


def choose_update(
    statefulset: JSONObject, history: Sequence[JSONObject]
) -> CurrentRevision | RenumberedRevision | NewRevision:
    """Determine the update revision. `history` is sorted."""
    data = revision_data(statefulset)
    equal = [revision for revision in history if revision.get("data") == data]
    number = revision_number(history[-1]) + 1 if history else 1
    if not equal:
        return NewRevision(number)
    return CurrentRevision(history[-1]) if equal[-1] is history[-1] else RenumberedRevision(equal[-1], number)


def choose_current(statefulset: JSONObject, history: Iterable[JSONObject], update: JSONObject) -> JSONObject:
    """Return the current revision in the status, or the update revision if it is unknown or deleted."""
    name = meta.status(statefulset).get("currentRevision")
    return next((revision for revision in history if meta.name(revision) == name), update)


def obsolete_revisions(
    statefulset: JSONObject, history: Sequence[JSONObject], live: Collection[str]
) -> tuple[JSONObject, ...]:
    """Return the oldest revisions above the history limit that are not `live` (used by a pod or the status)."""
    limit = meta.spec(statefulset).get("revisionHistoryLimit")
    dead = [revision for revision in history if meta.name(revision) not in live]
    surplus = len(dead) - (HISTORY_LIMIT if limit is None else int(limit))
    return tuple(dead[: max(surplus, 0)])


def build(statefulset: JSONObject, number: int, collisions: int) -> JSONObject:
    """Build a ControllerRevision from the StatefulSet's template."""
    data = revision_data(statefulset)
    digest = template_hash(data, collisions)
    metadata: JSONObject = {
        "name": f"{meta.name(statefulset)[:LONGEST_PREFIX]}-{digest}",
        "namespace": meta.namespace(statefulset),
        "labels": meta.labels(meta.spec(statefulset)["template"]) | {HASH_LABEL: digest},
        "ownerReferences": [meta.controller_reference(statefulset)],
    }
    if annotations := meta.annotations(statefulset):
        metadata["annotations"] = annotations
    kind = {"apiVersion": "apps/v1", "kind": "ControllerRevision"}
    return kind | {"metadata": metadata, "data": data, "revision": number}


def revision_data(statefulset: JSONObject) -> JSONObject:
    """Return the data of a revision, which is a patch that replaces the template of the StatefulSet."""
    return {"spec": {"template": meta.spec(statefulset)["template"] | {"$patch": "replace"}}}


def read_template(revision: JSONObject) -> JSONObject:
    """Return the pod template of the revision."""
    template: JSONObject = revision["data"]["spec"]["template"]
    return {field: value for field, value in template.items() if field != "$patch"}


def revision_number(revision: JSONObject) -> int:
    """Return the number of the revision in the history."""
    return int(revision.get("revision") or 0)
