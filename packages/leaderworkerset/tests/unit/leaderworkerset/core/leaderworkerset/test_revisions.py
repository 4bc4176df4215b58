"""Tests the exact bytes and names of revisions, and the current revision of a LeaderWorkerSet."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import revisions
from leaderworkerset.core.leaderworkerset.revisions import Resolution, RevisionGeneration

VECTORS = json.loads(Path("packages/leaderworkerset/tests/vectors/lws-revision-vectors.json").read_text())
LWS = builders.leaderworkerset_object()
KEY = builders.key_of(LWS)
EDITED = builders.leaderworkerset_object(image="app:2")
EDITED_KEY = builders.key_of(EDITED)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["input"]["metadata"]["name"])
def test_data_and_hash_equal_those_of_the_go_controller(vector: dict[str, Any]) -> None:
    """Data and hash equal the values of the Go controller (R-REV-4 to R-REV-9)."""
    data = revisions.build_data(vector["input"])

    assert data.decode() == vector["dataRaw"]
    assert revisions.content_hash(data) == vector["hash"]


def test_revision_has_name_labels_and_owner() -> None:
    """A revision has a name, labels and an owner (R-REV-1, R-REV-2)."""
    data = revisions.build_data(LWS)

    assert revisions.build(LWS, key="k", number=3, data=data) == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"web-{KEY}-3",
            "namespace": "default",
            "labels": {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: "k"},
            "ownerReferences": [meta.controller_reference(LWS)],
        },
        "data": json.loads(data),
        "revision": 3,
    }


def test_long_name_is_truncated() -> None:
    """A long name is truncated (R-REV-2)."""
    lws = builders.leaderworkerset_object("n" * 230)

    name = meta.name(revisions.build(lws, key="k", number=1, data=b"{}"))

    assert name == "n" * 220 + f"-{revisions.content_hash(b'{}')}-1"


def test_data_is_sent_in_canonical_bytes() -> None:
    """The data is sent in canonical form (R-REV-7)."""
    data = revisions.build_data(builders.leaderworkerset_object(image="<app>&"))
    revision = revisions.build(LWS, key="k", number=1, data=data)
    sent = revisions.encode(revision, data)

    assert sent == canonical_json(revision)
    assert b'"data":' + data in sent
    assert b"\\u003capp\\u003e\\u0026" in data


def test_revisions_of_others_are_ignored() -> None:
    """Revisions of an earlier LeaderWorkerSet with the same name and recreation records are ignored.

    Rules R-REV-3, R-REV-15.
    """
    namesake = builders.leaderworkerset_object(metadata={"uid": "another"})
    orphan = builders.revision(LWS, number=2)
    orphan = orphan | {"metadata": {k: v for k, v in orphan["metadata"].items() if k != "ownerReferences"}}
    record = builders.revision(LWS, number=9)
    record = record | {"metadata": record["metadata"] | {"labels": {labels.NAME: "web"}}}
    mine = builders.revision(LWS)

    known = revisions.owned_revisions([builders.revision(namesake, number=7), orphan, record, mine], LWS)

    assert known == [orphan, mine]
    assert revisions.next_number(known) == 3
    assert revisions.next_number([]) == 1


def test_new_set_gets_its_first_revision() -> None:
    """A new LeaderWorkerSet receives its first revision (R-REV-10)."""
    data = revisions.build_data(LWS)

    resolution = revisions.resolve(LWS, "", [])

    assert resolution == Resolution(KEY, created=revisions.build(LWS, key=KEY, number=1, data=data))


def test_statefulset_names_the_current_revision() -> None:
    """A StatefulSet contains the key of the current revision (R-REV-10)."""
    assert revisions.resolve(LWS, KEY, [builders.revision(LWS)]) == Resolution(KEY)


def test_highest_revision_of_equal_keys_is_used() -> None:
    """If keys are equal, the highest revision is used (R-REV-10, Q-5)."""
    first, second = builders.revision(EDITED, key=KEY, number=1), builders.revision(LWS, number=2)

    assert revisions.find_revision([second, first], KEY) == second
    assert revisions.find_revision([first], "other") is None
    assert revisions.find_revision([first], "") is None


def test_key_of_an_older_controller_is_kept() -> None:
    """The adoption does not replace pods, and the name contains the hash of the content (R-REV-10)."""
    resolution = revisions.resolve(LWS, "legacy", [])

    assert (resolution.key, resolution.is_new, resolution.is_inherited) == ("legacy", False, True)
    assert resolution.created == revisions.build(LWS, key="legacy", number=1, data=revisions.build_data(LWS))


def test_statefulset_without_a_key_gets_the_content_hash() -> None:
    """A StatefulSet without a key receives the hash of the content (R-REV-10)."""
    resolution = revisions.resolve(LWS, "", [])

    assert (resolution.key, resolution.is_new, resolution.is_inherited) == (KEY, False, False)


def test_edited_template_gets_a_new_revision() -> None:
    """A revision is created for a changed template (R-REV-11)."""
    resolution = revisions.resolve(EDITED, KEY, [builders.revision(LWS)])

    data = revisions.build_data(EDITED)
    created = revisions.build(EDITED, key=EDITED_KEY, number=2, data=data)
    assert resolution == Resolution(EDITED_KEY, is_new=True, created=created)


@pytest.mark.parametrize(
    "changed",
    [
        {"template": {"size": 3}},
        {"template": {"restartPolicy": "None"}},
        {"template": {"workerTemplate": builders.pod_template(labels={"a": "b"})}},
        {"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}},
    ],
)
def test_template_changes_create_a_revision(changed: dict[str, Any]) -> None:
    """Changes to a template create a revision (R-REV-5, R-REV-16)."""
    lws = builders.leaderworkerset_object(**changed)

    assert revisions.resolve(lws, KEY, [builders.revision(LWS)]).is_new


@pytest.mark.parametrize(
    "changed",
    [
        {"replicas": 9},
        {"rollout": {"partition": 1, "maxSurge": 2}},
        {"spec": {"startupPolicy": "LeaderReady"}},
        {"spec": {"networkConfig": None}},
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
        {"template": {"subGroupPolicy": None}},
        {"template": {"maxGroupRestarts": 3}},
        {"spec": {"podTerminationPolicy": "Parallel"}},
        {"spec": {"groupIdentity": "Hash", "groupReplacementPolicy": "Immediate", "scheduling": {}}},
    ],
)
def test_other_changes_create_no_revision(changed: dict[str, Any]) -> None:
    """Other changes do not create a revision (R-REV-5, R-REV-13, R-REV-16, N-API-2, N-API-3)."""
    lws = builders.leaderworkerset_object(**changed)

    assert revisions.resolve(lws, KEY, [builders.revision(LWS)]) == Resolution(KEY)


def test_equivalent_stored_bytes_create_no_revision() -> None:
    """An example is data from an older controller (R-REV-12, R-REV-13)."""
    stored = builders.revision(LWS)
    template = stored["data"]["spec"]["leaderWorkerTemplate"]
    worker = template["workerTemplate"] | {"metadata": {"creationTimestamp": None}}
    older = {"spec": {"leaderWorkerTemplate": template | {"workerTemplate": worker}, "networkConfig": None}}

    assert revisions.resolve(LWS, KEY, [stored | {"data": older}]) == Resolution(KEY)


def test_known_edition_is_not_compared_again() -> None:
    """If the generation and the revision are unchanged, the content is unchanged too (R-REV-11)."""
    current = builders.revision(LWS)
    known = revisions.resolve(LWS, KEY, [current]).revision_generation
    unreadable = LWS | {"spec": {"leaderWorkerTemplate": {"size": "two"}}}

    assert known == RevisionGeneration.of(LWS, current)
    assert revisions.resolve(unreadable, KEY, [current], known) == Resolution(KEY)


@pytest.mark.parametrize(
    ("metadata", "uid"),
    [({"generation": 2}, "uid-of-revision"), ({"uid": "another"}, "uid-of-revision"), ({}, "another")],
    ids=["edited", "created again", "another revision"],
)
def test_new_edition_is_compared(metadata: dict[str, Any], uid: str) -> None:
    """A new generation is compared (R-REV-11)."""
    known = RevisionGeneration.of(LWS, builders.revision(LWS, uid="uid-of-revision"))
    edited = builders.leaderworkerset_object(image="app:2", metadata=metadata)
    current = builders.revision(edited | {"spec": LWS["spec"]}, uid=uid)

    found = revisions.resolve(edited, KEY, [current], known)

    assert (found.key, found.is_new, found.revision_generation) == (EDITED_KEY, True, None)


@pytest.mark.parametrize("data", [None, [], {"spec": 1}, {"spec": {"leaderWorkerTemplate": {"size": "two"}}}])
def test_unreadable_data_differs(data: object) -> None:
    """Unreadable data is treated as different (R-REV-11)."""
    broken = builders.revision(LWS) | {"data": data}

    assert not revisions.has_content(broken, EDITED, revisions.build_data(EDITED))


def test_data_with_invalid_types_differs() -> None:
    """The error occurs only when the data is decoded into Go types (R-REV-11)."""
    stored = builders.revision(EDITED)
    template = stored["data"]["spec"]["leaderWorkerTemplate"]
    broken = {"spec": {"leaderWorkerTemplate": template | {"volumeClaimTemplates": "none"}}}

    assert not revisions.has_content(stored | {"data": broken}, EDITED, revisions.build_data(EDITED))


def test_differs_from_upstream_reverted_template_reuses_revision() -> None:
    """If a template is reverted, the existing revision is reused and receives the next revision number.

    The Go controller creates a second revision with the same key (Q-5).
    """
    known = [builders.revision(LWS), builders.revision(EDITED, number=2)]
    numbered = Resolution(KEY, is_new=True, corrected=known[0], correction={"revision": 3})

    assert revisions.resolve(LWS, EDITED_KEY, known) == numbered
    again = [known[0] | {"revision": 3}, known[1]]
    assert revisions.resolve(LWS, EDITED_KEY, again) == Resolution(KEY, is_new=True)


@pytest.mark.parametrize(
    ("recorded", "told", "change"),
    [
        ("", "", None),
        ("old", "", None),
        ("new", "new", None),
        ("", "new", {"metadata": {"annotations": {labels.CHANGE_CAUSE: "new"}}}),
        ("old", "new" * 1000, {"metadata": {"annotations": {labels.CHANGE_CAUSE: ("new" * 1000)[:1024]}}}),
    ],
)
def test_change_cause_is_recorded_when_given(recorded: str, told: str, change: object) -> None:
    def with_cause(cause: str) -> dict[str, Any]:
        return builders.leaderworkerset_object(metadata={"annotations": {labels.CHANGE_CAUSE: cause}} if cause else {})

    assert revisions.correction_patch(builders.revision(with_cause(recorded)), with_cause(told), 1) == change


def test_differs_from_upstream_failed_pass_keeps_its_revision() -> None:
    """If an apply fails or the cache is outdated, no additional revision is created (Q-6, Q-32)."""
    known = [builders.revision(LWS), builders.revision(EDITED, number=2)]

    assert revisions.resolve(EDITED, KEY, known) == Resolution(EDITED_KEY, is_new=True)
    assert revisions.resolve(LWS, "", [builders.revision(LWS)]) == Resolution(KEY)


def retired(lws: dict[str, Any], number: int, key: str = "") -> dict[str, Any]:
    """Return a revision in the form of the history."""
    known = builders.revision(lws, number=number)
    moved = {
        "labels": {labels.HISTORY_OF: "web"},
        "annotations": {labels.TEMPLATE_REVISION_HASH: key or builders.key_of(lws)},
    }
    return known | {"metadata": known["metadata"] | moved}


def test_current_revision_gets_the_highest_number() -> None:
    """An update that was reverted before its first step has a revision with a higher number."""
    known = [builders.revision(LWS), builders.revision(EDITED, number=2)]
    numbered = Resolution(KEY, corrected=known[0], correction={"revision": 3})
    edition = RevisionGeneration.of(LWS, known[0])

    assert revisions.resolve(LWS, KEY, known) == numbered
    assert revisions.resolve(LWS, KEY, known, edition) == numbered
    assert revisions.resolve(LWS, KEY, known[:1], history=[retired(EDITED, 5)]) == Resolution(
        KEY, corrected=known[0], correction={"revision": 6}
    )


def test_new_revision_is_named_after_the_history() -> None:
    """A template that is reverted and then reapplied has a name that is not in the history."""
    namesake = retired(builders.leaderworkerset_object(image="app:2", metadata={"uid": "another"}), 9)

    resolution = revisions.resolve(EDITED, KEY, [builders.revision(LWS)], history=[retired(EDITED, 2), namesake])

    assert resolution.created is not None
    assert meta.name(resolution.created) == f"web-{EDITED_KEY}-3"


def test_retired_revision_is_restored_when_its_key_is_in_use() -> None:
    """Otherwise, the spec's content would be stored under the key of a different template."""
    lost = retired(EDITED, 2)

    resolution = revisions.resolve(LWS, EDITED_KEY, [builders.revision(LWS)], history=[lost])

    own = {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: EDITED_KEY, labels.HISTORY_OF: None}
    marks = {"labels": own, "annotations": {labels.TEMPLATE_REVISION_HASH: None}}
    assert resolution == Resolution(EDITED_KEY, corrected=lost, correction={"metadata": marks, "revision": 3})


def test_restore_replaces_only_the_template() -> None:
    """A restore replaces only the template (R-REV-12)."""
    live = builders.leaderworkerset_object(image="app:2", replicas=7, size=5)

    restored = revisions.restore(live, builders.revision(LWS))

    assert restored["spec"]["leaderWorkerTemplate"]["size"] == 2
    assert restored["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] == "app:1"
    assert "$patch" not in restored["spec"]["leaderWorkerTemplate"]
    assert restored["spec"]["replicas"] == 7
    assert live["spec"]["leaderWorkerTemplate"]["size"] == 5


def test_restore_keeps_the_restart_limit() -> None:
    """Revisions do not contain the limit, so an earlier template is restored with the current limit (N-API-3)."""
    live = builders.leaderworkerset_object(template={"maxGroupRestarts": 3})

    assert revisions.restore(live, builders.revision(LWS))["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] == 3


def test_all_revisions_except_the_current_are_outdated() -> None:
    """All revisions except the current one are outdated (R-REV-14)."""
    known = [builders.revision(LWS), builders.revision(EDITED, number=2), builders.revision(LWS, number=3)]

    assert revisions.resolve(LWS, KEY, known).obsolete == [known[1]]
