"""Revisions: the templates that groups are created from, kept as ControllerRevisions (contract section 6).

In: the LeaderWorkerSet as a JSON object and the ControllerRevisions that carry its name. Out: the key for new groups,
whether it is new, and the object to create if none with the same content exists. The bytes are those of the Go
controller (R-REV-6), so that either controller recognizes the revisions of the other.

There is one revision per content: a template that is edited back finds its old revision again, and so does a pass
after one that failed when it had created a revision. (The Go controller creates another each time: Q-5, Q-6, Q-32.) A
revision that is used again gets the next number, so that the current one always has the highest, as with Go.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.fnv import fnv1
from kuberuntime.objects.gotypes.canonicaljson import (
    WrittenJSON,
    canonical_json,
    canonical_object,
    is_same_json,
    written,
)
from kuberuntime.objects.gotypes.differing import surely_differs
from kuberuntime.objects.gotypes.rereading import Reading
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.fieldtypes import is_written_as, round_trip

HASH_ALPHABET: Final = str.maketrans("0123456789", "456789bcdf")
"""Maps digits to characters that names allow and that form no words (R-REV-8)."""

LONGEST_NAME: Final = 220
"""The maximum length of the LeaderWorkerSet's name within a revision's name (R-REV-2)."""

COVERED: Final = ("leaderWorkerTemplate", "networkConfig")
"""The fields of `spec` that make a revision; a change of any other starts no rollout (R-REV-5, R-REV-16)."""

REPLACE: Final = {"$patch": "replace"}
SHARED: Final = {"subdomainPolicy": leaderworkerset.SubdomainPolicy.SHARED.value}


LONGEST_CAUSE: Final = 1024
"""The maximum number of characters of a change cause that a revision records."""


class UnreadableRevisionError(ValueError):
    """A ControllerRevision without a template."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The revision that new groups get. `created` is to be written first; `inherited` says that its key was given.

    `correction` is the merge patch that the revision `corrected` needs: its number, or the cause of the change.
    What was made on the way, and need not be made again: `data` are the bytes of what is created, `template` is
    `spec.leaderWorkerTemplate` as Go writes it, where it was read, and `is_exact` says that a revision that was found
    holds it in the same bytes.
    """

    key: str
    is_new: bool = False
    created: JSONObject | None = None
    inherited: bool = False
    corrected: JSONObject | None = None
    correction: JSONObject | None = None
    data: bytes | None = field(default=None, compare=False, repr=False)
    template: JSONObject | None = field(default=None, compare=False, repr=False)
    is_exact: bool = field(default=False, compare=False, repr=False)

    @classmethod
    def found(cls, revision: JSONObject, obj: JSONObject, number: int, *, is_new: bool = False) -> "Resolution":
        """Return the resolution to an existing revision, which shall have this number."""
        change = correction(revision, obj, number)
        corrected = None if change is None else revision
        return cls(key_of(revision), is_new, corrected=corrected, correction=change)

    @classmethod
    def made(
        cls, obj: JSONObject, content: WrittenJSON, number: int, *, key: str = "", is_new: bool = False
    ) -> "Resolution":
        """Return the resolution to a revision that is to be created; one whose key is given is `inherited`."""
        digest = content_hash(content.data)
        created = _build(obj, key or digest, number, content.value, digest=digest)
        return cls(key or digest, is_new, created, inherited=bool(key), data=content.data)


def resolve(
    obj: JSONObject,
    statefulset: JSONObject | None,
    found: Iterable[JSONObject],
    *,
    is_settled: bool = False,
    before: Reading | None = None,
) -> Resolution:
    """Find the current revision, or make it, and return whether the spec differs from it (R-REV-10, R-REV-11).

    `statefulset` is the leader StatefulSet; `found` are ControllerRevisions labeled with the LeaderWorkerSet's name.
    `is_settled` says that the current one is known to have the content of the spec (`core.leaderworkerset.settled`),
    `before` is the last known reading of its template.
    """
    known = owned(found, obj)
    key, current = _key_used(statefulset), current_of(known, statefulset)
    if is_settled and current is not None:
        return Resolution.found(current, obj, number_of(current))
    if current is not None and before is None and meta.is_observed(obj):
        held = _held(current, obj)
        if held is not None:
            return replace(Resolution.found(current, obj, number_of(current)), is_exact=True, template=held)
    content = build_content(obj, before)
    resolution = _resolve(obj, known, current, content, key)
    return replace(resolution, template=_without_directive(content["spec"]["leaderWorkerTemplate"]))


def _resolve(
    obj: JSONObject, known: Sequence[JSONObject], current: JSONObject | None, content: JSONObject, key: str
) -> Resolution:
    if current is None and key:
        return Resolution.made(obj, written(content), next_number(known), key=key)
    if current is not None and not _is_surely_another(current, content):
        is_exact = is_same_json(current.get("data"), content)
        if is_exact or _is_restored(current, obj, content):
            return replace(Resolution.found(current, obj, number_of(current)), is_exact=is_exact)
    return _reuse_or_create(obj, known, content, current)


def _held(current: JSONObject, obj: JSONObject) -> JSONObject | None:
    """Return the template as the current revision holds it, if that holds all content of the spec in the same bytes.

    None says nothing. The template is written to bytes alone, not to objects, of which the revision already has equal
    ones. It is tried where a status of this generation was written, since then the content is likely the same.
    """
    spec, data = meta.spec(obj), current.get("data") or {}
    try:
        saved, others = _saved(current), _with_network({}, spec)
    except ValueError:
        return None
    held = data | {
        "spec": data["spec"] | {"leaderWorkerTemplate": {"$patch": data["spec"]["leaderWorkerTemplate"].get("$patch")}}
    }
    template = saved["leaderWorkerTemplate"]
    is_exact = is_same_json(held, others) and is_written_as(
        "LeaderWorkerTemplate", spec.get("leaderWorkerTemplate"), template
    )
    return template if is_exact else None


def current_of(known: Sequence[JSONObject], statefulset: JSONObject | None) -> JSONObject | None:
    """Return the revision of the leader StatefulSet, if it is known."""
    return find(known, _key_used(statefulset))


def build_data(obj: JSONObject) -> bytes:
    """Return the bytes of `data` for the current spec (R-REV-4 to R-REV-6)."""
    return canonical_json(build_content(obj))


def build_content(obj: JSONObject, before: Reading | None = None) -> JSONObject:
    """Return the content of `data` for the current spec, before encoding; `before` is a reading of an earlier template."""
    spec = meta.spec(obj)
    template = round_trip("LeaderWorkerTemplate", spec.get("leaderWorkerTemplate"), "spec.leaderWorkerTemplate", before)
    return _with_network(template, spec)


def _with_network(template: JSONObject, spec: JSONObject) -> JSONObject:
    """Return the content of `data` for a template as Go writes it, and the network of a spec."""
    network = round_trip("NetworkConfig", spec.get("networkConfig") or SHARED, "spec.networkConfig")
    return {"spec": {"leaderWorkerTemplate": template | REPLACE, "networkConfig": network | REPLACE}}


def content_hash(data: bytes) -> str:
    """Return the hash by which a revision is named: FNV-1 in 32 bits, as digits in another alphabet (R-REV-8)."""
    return str(fnv1(data)).translate(HASH_ALPHABET)


def build(obj: JSONObject, *, key: str, number: int, data: bytes) -> JSONObject:
    """Build the ControllerRevision (R-REV-1, R-REV-2); it records the change cause if one is given."""
    return _build(obj, key, number, msgspec.json.decode(data), digest=content_hash(data))


def _build(obj: JSONObject, key: str, number: int, content: JSON, *, digest: str) -> JSONObject:
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
        "data": content,
        "revision": number,
    }


def change_cause(obj: JSONObject) -> str:
    """Return the change cause of an object's annotation; long texts are truncated."""
    return meta.annotations(obj).get(labels.CHANGE_CAUSE, "")[:LONGEST_CAUSE]


def correction(revision: JSONObject, obj: JSONObject, number: int) -> JSONObject | None:
    """Return the merge patch that gives a revision this number and the LeaderWorkerSet's change cause.

    A cause that was removed stays with the revision. Return None if nothing is to be changed.
    """
    cause = change_cause(obj)
    changes: JSONObject = {} if number_of(revision) == number else {"revision": number}
    if cause and cause != change_cause(revision):
        changes |= {"metadata": {"annotations": {labels.CHANGE_CAUSE: cause}}}
    return changes or None


def encode(revision: JSONObject, data: bytes | None = None) -> bytes:
    """Encode a revision such that its `data` arrives in canonical bytes: the server stores it verbatim (R-REV-7).

    `data` are these bytes, where they are known.
    """
    return canonical_json(revision) if data is None else canonical_object(revision, {"data": data})


def owned(found: Iterable[JSONObject], obj: JSONObject) -> list[JSONObject]:
    """Return the revisions with a key that belong to the LeaderWorkerSet or have no owner (R-REV-3, R-REV-15)."""
    return [
        revision
        for revision in found
        if meta.labels(revision).get(labels.TEMPLATE_REVISION_HASH)
        and (meta.controller_of(revision) or {}).get("uid", meta.uid(obj)) == meta.uid(obj)
    ]


def find(known: Sequence[JSONObject], key: str) -> JSONObject | None:
    """Return the revision with the key; of several, the one with the highest number."""
    matching = [revision for revision in known if key and key_of(revision) == key]
    return max(matching, key=number_of, default=None)


def next_number(known: Sequence[JSONObject]) -> int:
    """Return the number of the next revision (R-REV-3)."""
    return 1 + max((number_of(revision) for revision in known), default=0)


def has_content(revision: JSONObject, obj: JSONObject, content: JSONObject) -> bool:
    """Return whether the revision has the content of the spec that `content` was built from (R-REV-11, R-REV-13).

    If the bytes differ, the revision is merged into the LeaderWorkerSet and encoded again: other versions of the
    controller wrote other bytes for the same template. Data that cannot be read is different.
    """
    if _is_surely_another(revision, content):
        return False
    return is_same_json(revision.get("data"), content) or _is_restored(revision, obj, content)


def _is_restored(revision: JSONObject, obj: JSONObject, content: JSONObject) -> bool:
    try:
        return is_same_json(build_content(restore(obj, revision)), content)
    except ValueError:
        return False


def _is_surely_another(revision: JSONObject, content: JSONObject) -> bool:
    """Return whether a string or number proves that the revision is of another spec, whatever its encoding."""
    try:
        saved = _saved(revision)
    except UnreadableRevisionError:
        return True
    return any(surely_differs(saved[name], _without_directive(content["spec"][name])) for name in saved)


def reading_of(spec: JSONObject, revision: JSONObject) -> Reading:
    """Return the template of a spec with what a revision holds for it, in the same bytes that the spec is written in."""
    return Reading(spec.get("leaderWorkerTemplate"), _saved(revision)["leaderWorkerTemplate"])


def restore(obj: JSONObject, revision: JSONObject) -> JSONObject:
    """Return the LeaderWorkerSet with the content of the revision: its fields are replaced, all others stay (R-REV-12).

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
    return {name: _without_directive(content[name]) for name in COVERED if isinstance(content.get(name), dict)}


def outdated(known: Sequence[JSONObject], key: str) -> list[JSONObject]:
    """Return the revisions that no group needs once all are of the key's revision (R-REV-14)."""
    return [revision for revision in known if key_of(revision) != key]


def key_of(revision: JSONObject) -> str:
    """Return the key of a revision, as the objects created from it carry it."""
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
    return Resolution.made(obj, written(content), next_number(known), is_new=is_new)


def _key_used(statefulset: JSONObject | None) -> str:
    return "" if statefulset is None else meta.labels(statefulset).get(labels.TEMPLATE_REVISION_HASH, "")


def _without_directive(value: JSONObject) -> JSONObject:
    return {name: child for name, child in value.items() if name != "$patch"}
