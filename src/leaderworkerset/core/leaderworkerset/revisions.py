"""Revisions: what a LeaderWorkerSet's groups are made from, kept as ControllerRevisions (contract section 6).

In: the LeaderWorkerSet as a JSON object and the ControllerRevisions that carry its name. Out: the key that new groups
get, whether that is news, and the object to create where none with the same content exists. The bytes are those of the
Go controller (R-REV-6), so that either controller recognizes the revisions of the other.

A revision is made once per content: a template that is edited back finds its old revision again, and so does a pass
that failed after creating one. (The Go controller creates another each time: Q-5, Q-6, Q-32.) It gets the next number
then, so that the current revision always has the highest, as it has with the Go controller.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.fnv import fnv1
from kuberuntime.objects.gotypes.canonicaljson import canonical_json, is_same_json
from kuberuntime.objects.gotypes.differing import surely_differs
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.fieldtypes import round_trip

HASH_ALPHABET: Final = str.maketrans("0123456789", "456789bcdf")
"""Digits become characters that no name forbids and that spell no words (R-REV-8)."""

LONGEST_NAME: Final = 220
"""How much of the LeaderWorkerSet's name a revision's name holds (R-REV-2)."""

COVERED: Final = ("leaderWorkerTemplate", "networkConfig")
"""The fields of `spec` that make a revision; a change of any other rolls nothing (R-REV-5, R-REV-16)."""

REPLACE: Final = {"$patch": "replace"}
SHARED: Final = {"subdomainPolicy": leaderworkerset.SubdomainPolicy.SHARED.value}


LONGEST_CAUSE: Final = 1024
"""How many characters of a change cause a revision records."""


class UnreadableRevisionError(ValueError):
    """A ControllerRevision that holds no template."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """Which revision new groups get. `created` is to be written first; `inherited` tells that its key was given.

    `correction` is the merge patch that the revision `corrected` needs: its number, or the cause of the change.
    """

    key: str
    is_new: bool = False
    created: JSONObject | None = None
    inherited: bool = False
    corrected: JSONObject | None = None
    correction: JSONObject | None = None

    @classmethod
    def found(cls, revision: JSONObject, obj: JSONObject, number: int, *, is_new: bool = False) -> "Resolution":
        """Return the resolution to a revision that exists, and shall have this number."""
        change = correction(revision, obj, number)
        corrected = None if change is None else revision
        return cls(key_of(revision), is_new, corrected=corrected, correction=change)


def resolve(
    obj: JSONObject, statefulset: JSONObject | None, found: Iterable[JSONObject], *, is_settled: bool = False
) -> Resolution:
    """Find the current revision, or make it, and return whether the spec differs from it (R-REV-10, R-REV-11).

    `statefulset` is the leader StatefulSet; `found` are ControllerRevisions labeled with the LeaderWorkerSet's name.
    `is_settled` tells that the current one is known to have the content of the spec (`core.leaderworkerset.settled`).
    """
    known = owned(found, obj)
    key, current = _key_used(statefulset), current_of(known, statefulset)
    if is_settled and current is not None:
        return Resolution.found(current, obj, number_of(current))
    content = build_content(obj)
    if current is None and key:
        data = canonical_json(content)
        return Resolution(key, created=build(obj, key=key, number=next_number(known), data=data), inherited=True)
    if current is not None and has_content(current, obj, content):
        return Resolution.found(current, obj, number_of(current))
    return _reuse_or_create(obj, known, content, current)


def current_of(known: Sequence[JSONObject], statefulset: JSONObject | None) -> JSONObject | None:
    """Return the revision that the leader StatefulSet is of, if it is known."""
    return find(known, _key_used(statefulset))


def build_data(obj: JSONObject) -> bytes:
    """Return the bytes of `data` that stand for the current spec (R-REV-4 to R-REV-6)."""
    return canonical_json(build_content(obj))


def build_content(obj: JSONObject) -> JSONObject:
    """Return what `data` holds for the current spec, not encoded yet."""
    spec = meta.spec(obj)
    template = round_trip("LeaderWorkerTemplate", spec.get("leaderWorkerTemplate"), "spec.leaderWorkerTemplate")
    network = round_trip("NetworkConfig", spec.get("networkConfig") or SHARED, "spec.networkConfig")
    return {"spec": {"leaderWorkerTemplate": template | REPLACE, "networkConfig": network | REPLACE}}


def content_hash(data: bytes) -> str:
    """Return the hash by which a revision is named: FNV-1 in 32 bits, as digits in another alphabet (R-REV-8)."""
    return str(fnv1(data)).translate(HASH_ALPHABET)


def build(obj: JSONObject, *, key: str, number: int, data: bytes) -> JSONObject:
    """Build the ControllerRevision (R-REV-1, R-REV-2); it records the cause of the change where one is given."""
    return _build(obj, key, number, data, digest=content_hash(data))


def _build(obj: JSONObject, key: str, number: int, data: bytes, *, digest: str) -> JSONObject:
    name = meta.name(obj)
    prefix = name.encode()[:LONGEST_NAME].decode(errors="ignore")
    cause = change_cause(obj)
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": f"{prefix}-{digest}-{number}",
            "namespace": meta.namespace(obj),
            "labels": {labels.NAME: name, labels.TEMPLATE_REVISION_HASH: key},
            "ownerReferences": [meta.controller_reference(obj)],
        }
        | ({"annotations": {labels.CHANGE_CAUSE: cause}} if cause else {}),
        "data": msgspec.json.decode(data),
        "revision": number,
    }


def change_cause(obj: JSONObject) -> str:
    """Return why an object was changed, as its annotation says; of long texts the beginning."""
    return meta.annotations(obj).get(labels.CHANGE_CAUSE, "")[:LONGEST_CAUSE]


def correction(revision: JSONObject, obj: JSONObject, number: int) -> JSONObject | None:
    """Return the merge patch that gives a revision this number, and the cause that the LeaderWorkerSet tells.

    A cause that was removed stays with the revision. Return None where nothing is to be changed.
    """
    cause = change_cause(obj)
    changes: JSONObject = {} if number_of(revision) == number else {"revision": number}
    if cause and cause != change_cause(revision):
        changes |= {"metadata": {"annotations": {labels.CHANGE_CAUSE: cause}}}
    return changes or None


def encode(revision: JSONObject) -> bytes:
    """Encode a revision such that its `data` arrives in canonical bytes: the server stores it verbatim (R-REV-7)."""
    return canonical_json(revision)


def owned(found: Iterable[JSONObject], obj: JSONObject) -> list[JSONObject]:
    """Return the revisions with a key that belong to the LeaderWorkerSet or to nobody (R-REV-3, R-REV-15)."""
    return [
        revision
        for revision in found
        if meta.labels(revision).get(labels.TEMPLATE_REVISION_HASH)
        and (meta.controller_of(revision) or {}).get("uid", meta.uid(obj)) == meta.uid(obj)
    ]


def find(known: Sequence[JSONObject], key: str) -> JSONObject | None:
    """Return the revision with the key; of several the one with the highest number."""
    matching = [revision for revision in known if key and key_of(revision) == key]
    return max(matching, key=number_of, default=None)


def next_number(known: Sequence[JSONObject]) -> int:
    """Return the number of the next revision (R-REV-3)."""
    return 1 + max((number_of(revision) for revision in known), default=0)


def has_content(revision: JSONObject, obj: JSONObject, content: JSONObject) -> bool:
    """Return whether the revision stands for the spec that `content` was built from (R-REV-11, R-REV-13).

    Where the bytes differ, the revision is laid over the LeaderWorkerSet and written anew: other versions of the
    controller wrote other bytes for the same template. Data that cannot be read is different.
    """
    if _is_surely_another(revision, content):
        return False
    if is_same_json(revision.get("data"), content):
        return True
    try:
        return is_same_json(build_content(restore(obj, revision)), content)
    except ValueError:
        return False


def _is_surely_another(revision: JSONObject, content: JSONObject) -> bool:
    """Return whether some text or number tells that the revision is of another spec, however it was written."""
    try:
        saved = _saved(revision)
    except UnreadableRevisionError:
        return True
    return any(surely_differs(saved[field], _without_directive(content["spec"][field])) for field in saved)


def restore(obj: JSONObject, revision: JSONObject) -> JSONObject:
    """Return the LeaderWorkerSet with the content of the revision: replaced wholesale, the rest live (R-REV-12).

    Raise `UnreadableRevisionError` where the revision holds no template.
    """
    return obj | {"spec": meta.spec(obj) | _saved(revision)}


def _saved(revision: JSONObject) -> JSONObject:
    """Return the fields of `spec` that a revision holds, or raise `UnreadableRevisionError`."""
    data = revision.get("data")
    content = data.get("spec") if isinstance(data, dict) else None
    if not isinstance(content, dict) or not isinstance(content.get("leaderWorkerTemplate"), dict):
        raise UnreadableRevisionError(
            f"ControllerRevision {meta.name(revision)}: data: holds no spec.leaderWorkerTemplate"
        )
    return {field: _without_directive(content[field]) for field in COVERED if isinstance(content.get(field), dict)}


def outdated(known: Sequence[JSONObject], key: str) -> list[JSONObject]:
    """Return the revisions that no group needs once all are of the key's revision (R-REV-14)."""
    return [revision for revision in known if key_of(revision) != key]


def key_of(revision: JSONObject) -> str:
    """Return the key of a revision, as it stands on the objects made from it."""
    return meta.labels(revision).get(labels.TEMPLATE_REVISION_HASH, "")


def number_of(revision: JSONObject) -> int:
    """Return the number of a revision."""
    return int(revision.get("revision") or 0)


def _reuse_or_create(
    obj: JSONObject, known: Sequence[JSONObject], content: JSONObject, current: JSONObject | None
) -> Resolution:
    is_new = current is not None
    others = [revision for revision in known if revision is not current]
    same = max((revision for revision in others if has_content(revision, obj, content)), key=number_of, default=None)
    if same is not None:
        number = number_of(same) if same is max(known, key=number_of) else next_number(known)
        return Resolution.found(same, obj, number, is_new=is_new)
    data = canonical_json(content)
    key = content_hash(data)  # once: of the largest object it takes 20 ms
    created = _build(obj, key, next_number(known), data, digest=key)
    return Resolution(key, is_new, created=created)


def _key_used(statefulset: JSONObject | None) -> str:
    return "" if statefulset is None else meta.labels(statefulset).get(labels.TEMPLATE_REVISION_HASH, "")


def _without_directive(value: JSONObject) -> JSONObject:
    return {field: child for field, child in value.items() if field != "$patch"}
