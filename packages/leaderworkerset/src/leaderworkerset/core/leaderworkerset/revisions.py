"""Stores templates for groups as ControllerRevisions (contract section 6).

Input: the LeaderWorkerSet as a JSON object and the ControllerRevisions that have its name as a label. Output: the key
for new groups, whether it is new, and the object to create if none with the same content exists. The bytes are equal
to those of the Go controller (R-REV-6), so that each controller recognizes the revisions of the other.

There is one revision per content. If a template is reverted, its old revision is reused. A revision that a failed pass
created is also reused. (The Go controller creates a new one each time: Q-5, Q-6, Q-32.) A reused revision gets the next
number, so that the current revision always has the highest number, as in the Go controller.

Unused revisions also count. The number and the name of the next revision are higher than those of all unused
revisions. If the leader StatefulSet has the key of an unused revision, that revision is restored
(docs/adr/0012-revision-history.md).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.fnv import fnv1
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels
from leaderworkerset.api.fieldtypes import round_trip
from leaderworkerset.api.policytypes import SubdomainPolicy

HASH_ALPHABET: Final = str.maketrans("0123456789", "456789bcdf")
"""The characters for digits. They are valid in names and do not form words (R-REV-8)."""

LONGEST_NAME: Final = 220
"""The maximum length of the LeaderWorkerSet name in a revision name (R-REV-2)."""

COVERED: Final = ("leaderWorkerTemplate", "networkConfig")
"""The `spec` fields in a revision. Changes to other fields do not start a rollout (R-REV-5, R-REV-16)."""

UNREVISED: Final = "maxGroupRestarts"
"""The `leaderWorkerTemplate` field whose changes do not start a rollout, because it is not in revisions (N-API-3)."""

REPLACE: Final = {"$patch": "replace"}
SHARED: Final = {"subdomainPolicy": SubdomainPolicy.SHARED.value}


IDENTITY: Final = (
    ("data",),
    ("metadata", "labels", labels.NAME),
    ("metadata", "labels", labels.TEMPLATE_REVISION_HASH),
)
"""The fields that are compared to determine whether two revisions are the same."""

LONGEST_CAUSE: Final = 1024
"""The maximum number of change cause characters in a revision."""


class UnreadableRevisionError(ValueError):
    """The ControllerRevision has no template."""


class RevisionGeneration(NamedTuple):
    """A LeaderWorkerSet generation, and the UID of the revision with its content."""

    uid: UID
    generation: int
    revision: UID

    @classmethod
    def of(cls, obj: JSONObject, revision: JSONObject) -> "RevisionGeneration":
        """Return the generation of an object whose content equals the revision."""
        metadata = obj["metadata"]
        return cls(metadata.get("uid", ""), metadata.get("generation", 0), revision["metadata"].get("uid", ""))


@dataclass(frozen=True, slots=True)
class Resolution:
    """The revision for new groups. `created` must first be written as `body`.

    `is_inherited` is true if its key was given.

    `correction_patch` is the merge patch that the revision `corrected` needs for its number or change cause. `revision_generation` is
    known if the revision exists. `obsolete` are the other revisions, which are not needed after all groups have this
    revision (R-REV-14).
    """

    key: str
    is_new: bool = False
    created: JSONObject | None = None
    is_inherited: bool = False
    corrected: JSONObject | None = None
    correction: JSONObject | None = None
    revision_generation: RevisionGeneration | None = field(default=None, compare=False)
    obsolete: Sequence[JSONObject] = field(default=(), compare=False, repr=False)
    body: bytes = field(default=b"", compare=False, repr=False)

    @classmethod
    def reuse(cls, revision: JSONObject, obj: JSONObject, number: int, *, is_new: bool = False) -> "Resolution":
        """Return a `Resolution` that reuses `revision` and renumbers it."""
        change = correction_patch(revision, obj, number)
        corrected = None if change is None else revision
        generation = RevisionGeneration.of(obj, revision)
        return cls(
            revision_key(revision),
            is_new,
            corrected=corrected,
            correction=change,
            revision_generation=generation,
        )

    @classmethod
    def restore(cls, retired: JSONObject, obj: JSONObject, number: int) -> "Resolution":
        """Return a `Resolution` that restores a revision from the history with this number."""
        key = revision_key(retired)
        own = {labels.NAME: meta.name(obj), labels.TEMPLATE_REVISION_HASH: key, labels.HISTORY_OF: None}
        marks = {"labels": own, "annotations": {labels.TEMPLATE_REVISION_HASH: None}}
        change = {"metadata": meta.metadata(adoption_patch(retired, obj)) | marks, "revision": number}
        return cls(key, corrected=retired, correction=change)

    @classmethod
    def create(cls, obj: JSONObject, data: bytes, number: int, *, key: str = "", is_new: bool = False) -> "Resolution":
        """Return a `Resolution` that creates a revision. It is `is_inherited` if a key is specified."""
        created = build(obj, key=key, number=number, data=data)
        return cls(revision_key(created), is_new, created, is_inherited=bool(key), body=encode(created, data))


def resolve(
    obj: JSONObject,
    key: str,
    stored: Iterable[JSONObject],
    edition: RevisionGeneration | None = None,
    history: Iterable[JSONObject] | None = None,
) -> Resolution:
    """Find or create the current revision, and return whether the spec has changed since then (R-REV-10, R-REV-11).

    `key` is the revision of the leader workload, if it exists. `stored` are ControllerRevisions with the
    LeaderWorkerSet's name as a label. `history` are its retired revisions if they were read. `edition` is the result
    of an earlier decision.
    """
    known, retired = owned_revisions(stored, obj), owned_revisions(history or (), obj)
    resolution = _resolve(obj, key, known, retired, edition)
    obsolete = [revision for revision in known if revision_key(revision) != resolution.key]
    return replace(resolution, obsolete=obsolete) if obsolete else resolution


def _resolve(
    obj: JSONObject,
    key: str,
    known: Sequence[JSONObject],
    retired: Sequence[JSONObject],
    edition: RevisionGeneration | None,
) -> Resolution:
    current = find_revision(known, key)
    if current is not None and RevisionGeneration.of(obj, current) == edition:
        return Resolution.reuse(current, obj, _current_number(current, known, retired))
    data = build_data(obj)
    if current is None and key:
        lost = find_revision(retired, key)
        number = next_number([*known, *retired])
        return Resolution.create(obj, data, number, key=key) if lost is None else Resolution.restore(lost, obj, number)
    if current is not None and has_content(current, obj, data):
        return Resolution.reuse(current, obj, _current_number(current, known, retired))
    is_new = current is not None
    others = [revision for revision in known if revision is not current]
    same = max((revision for revision in others if has_content(revision, obj, data)), key=revision_number, default=None)
    if same is None:
        return Resolution.create(obj, data, next_number([*known, *retired]), is_new=is_new)
    return Resolution.reuse(same, obj, _current_number(same, known, retired), is_new=is_new)


def _current_number(revision: JSONObject, known: Sequence[JSONObject], retired: Sequence[JSONObject]) -> int:
    """Return the number of the current revision, which is increased if a different revision has a higher number."""
    others = [other for other in (*known, *retired) if other is not revision]
    number, above = revision_number(revision), next_number(others)
    return number if number >= above - 1 else above


def build_data(obj: JSONObject) -> bytes:
    """Return the encoded `data` of the current spec (R-REV-4 to R-REV-6)."""
    return canonical_json(build_content(obj))


def build_content(obj: JSONObject) -> JSONObject:
    """Return the `data` of the current spec before encoding."""
    spec = meta.spec(obj)
    template = round_trip("LeaderWorkerTemplate", spec.get("leaderWorkerTemplate"), "spec.leaderWorkerTemplate")
    template.pop(UNREVISED, None)
    network = round_trip("NetworkConfig", spec.get("networkConfig") or SHARED, "spec.networkConfig")
    return {"spec": {"leaderWorkerTemplate": template | REPLACE, "networkConfig": network | REPLACE}}


def content_hash(data: bytes) -> str:
    """Return the hash for a revision name, which is the 32-bit FNV-1 hash in a special alphabet (R-REV-8)."""
    return str(fnv1(data)).translate(HASH_ALPHABET)


def build(obj: JSONObject, *, number: int, data: bytes, key: str = "") -> JSONObject:
    """Build the ControllerRevision (R-REV-1, R-REV-2). The default key is the hash of the data.

    The revision records the change cause if there is one.
    """
    digest = content_hash(data)
    name = meta.name(obj)
    prefix = name.encode()[:LONGEST_NAME].decode(errors="ignore")
    cause = change_cause(obj)
    return CONTROLLER_REVISIONS.controlled(
        obj,
        f"{prefix}-{digest}-{number}",
        {labels.NAME: name, labels.TEMPLATE_REVISION_HASH: key or digest},
        annotations={labels.CHANGE_CAUSE: cause} if cause else None,
        data=msgspec.json.decode(data),
        revision=number,
    )


def change_cause(obj: JSONObject) -> str:
    """Return the change cause from the annotation of an object. A long value is truncated."""
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(labels.CHANGE_CAUSE, ""))[:LONGEST_CAUSE]


def correction_patch(revision: JSONObject, obj: JSONObject, number: int) -> JSONObject | None:
    """Return a merge patch with the number, change cause, and controller of a revision.

    The revision retains a removed change cause. Return None if the revision is unchanged.
    """
    cause = change_cause(obj)
    changes = adoption_patch(revision, obj)
    if revision_number(revision) != number:
        changes["revision"] = number
    if cause and cause != change_cause(revision):
        changes["metadata"] = meta.metadata(changes) | {"annotations": {labels.CHANGE_CAUSE: cause}}
    return changes or None


def adoption_patch(orphan: JSONObject, obj: JSONObject) -> JSONObject:
    """Return a merge patch that makes the LeaderWorkerSet the controller. It is empty if there is a controller."""
    if meta.controller_of(orphan) is not None:
        return {}
    return {"metadata": {"ownerReferences": [*meta.owners(orphan), meta.controller_reference(obj)]}}


def encode(revision: JSONObject, data: bytes) -> bytes:
    """Encode a revision with canonical `data`, which the server stores unchanged (R-REV-7)."""
    return canonical_json(revision | {"data": None}).replace(b'"data":null', b'"data":' + data, 1)


def owned_revisions(stored: Iterable[JSONObject], obj: JSONObject) -> list[JSONObject]:
    """Return the revisions with a key that belong to the LeaderWorkerSet or have no owner (R-REV-3, R-REV-15)."""
    return [
        revision
        for revision in stored
        if revision_key(revision) and (meta.controller_of(revision) or {}).get("uid", meta.uid(obj)) == meta.uid(obj)
    ]


def find_revision(known: Sequence[JSONObject], key: str) -> JSONObject | None:
    """Return the revision with the key and, if there are several, with the highest number."""
    matching = [revision for revision in known if key and revision_key(revision) == key]
    return max(matching, key=revision_number, default=None)


def revision_key(revision: JSONObject) -> str:
    """Return the key of a revision, including revisions in the history."""
    own = meta.labels(revision)
    return (meta.annotations(revision) if labels.HISTORY_OF in own else own).get(labels.TEMPLATE_REVISION_HASH, "")


def next_number(known: Sequence[JSONObject]) -> int:
    """Return the number of the next revision (R-REV-3)."""
    return 1 + max((revision_number(revision) for revision in known), default=0)


def has_content(revision: JSONObject, obj: JSONObject, data: bytes) -> bool:
    """Return whether the revision content equals `data`, which is the encoded spec (R-REV-11, R-REV-13).

    If the bytes differ, the revision is merged into the LeaderWorkerSet and encoded again, because other controller
    versions wrote different bytes for the same template. Unreadable data counts as different.
    """
    try:
        return canonical_json(revision.get("data")) == data or build_data(restore(obj, revision)) == data
    except ValueError:
        return False


def restore(obj: JSONObject, revision: JSONObject) -> JSONObject:
    """Return the LeaderWorkerSet with the content of the revision. Other fields are unchanged (R-REV-12).

    The restart limit also stays, because revisions do not contain it. Raise `UnreadableRevisionError` if the revision
    has no template.
    """
    data = revision.get("data")
    content = data.get("spec") if isinstance(data, dict) else None
    if not isinstance(content, dict) or not isinstance(content.get("leaderWorkerTemplate"), dict):
        raise UnreadableRevisionError(
            f"ControllerRevision {meta.name(revision)}: data: does not contain spec.leaderWorkerTemplate"
        )
    saved = {name: _without_directive(content[name]) for name in COVERED if isinstance(content.get(name), dict)}
    live: JSONObject = meta.spec(obj).get("leaderWorkerTemplate") or {}
    if UNREVISED in live:
        saved["leaderWorkerTemplate"][UNREVISED] = live[UNREVISED]
    return obj | {"spec": meta.spec(obj) | saved}


def revision_number(revision: JSONObject) -> int:
    """Return the number of a revision."""
    return int(revision.get("revision") or 0)


def _without_directive(value: JSONObject) -> JSONObject:
    return {name: child for name, child in value.items() if name != "$patch"}
