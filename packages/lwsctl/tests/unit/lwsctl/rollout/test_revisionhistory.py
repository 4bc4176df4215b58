"""Tests the list of revisions and history, and its content."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.leaderworkerset import revisions
from leaderworkerset.core.leaderworkerset.previousrevisions import (
    RevisionEntry,
    current_entry,
    find_entry,
    previous_entry,
    revision_content,
)
from lwsctl.model.leaderworkerset import view
from lwsctl.rollout import revisionhistory

NEW = builders.leaderworkerset_object(image="app:2", size=1)
OLD = builders.leaderworkerset_object(image="app:1", size=1)


def retired(revision: dict[str, Any]) -> dict[str, Any]:
    key = groupname.revision_key(revision)
    moved = {"labels": {labels.HISTORY_OF: "web"}, "annotations": {labels.TEMPLATE_REVISION_HASH: key}}
    return revision | {"metadata": meta.metadata(revision) | moved}


def listed(*found: dict[str, Any]) -> list[RevisionEntry]:
    leaders = [builders.leader_pod(OLD, 0), builders.leader_pod(NEW, 1)]
    return revisionhistory.entries(view(NEW, leaders), found)


def test_revisions_are_listed_by_number_with_their_groups() -> None:
    found = listed(builders.revision(NEW, number=4), retired(builders.revision(OLD, number=2)))

    assert [(entry.number, entry.groups, entry.is_current) for entry in found] == [(2, (0,), False), (4, (1,), True)]
    assert current_entry(found) is found[1]
    assert previous_entry(found) is found[0]
    assert find_entry(found, 2) is found[0]
    assert find_entry(found, 3) is None


def test_current_revision_hides_its_history_entry() -> None:
    found = listed(builders.revision(NEW, number=4), retired(builders.revision(NEW, number=2)))
    assert [entry.number for entry in found] == [4]


def test_foreign_revisions_and_records_are_omitted() -> None:
    other = builders.revision(OLD)
    other["metadata"]["ownerReferences"] = [other["metadata"]["ownerReferences"][0] | {"uid": "another"}]
    record = builders.revision(OLD) | {"metadata": {"name": "web-0-recreations", "labels": {labels.NAME: "web"}}}
    assert listed(other, record) == []


def test_empty_history_has_no_current_or_previous_revision() -> None:
    assert (current_entry([]), previous_entry([])) == (None, None)


def test_content_has_the_restored_fields() -> None:
    entry = listed(builders.revision(NEW))[0]
    content = revision_content(entry)
    assert set(content) == {"leaderWorkerTemplate", "networkConfig"}
    assert content["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] == "app:2"
    assert "null" not in str(content)
    assert "$patch" not in str(content)


def test_revision_without_a_template_is_an_error() -> None:
    (entry,) = listed(builders.revision(NEW) | {"data": {}})
    with pytest.raises(revisions.UnreadableRevisionError, match=r"does not contain spec\.leaderWorkerTemplate"):
        revision_content(entry)


def test_document_has_stable_keys() -> None:
    shown = revisionhistory.document("web", listed(builders.revision(NEW, number=4)))
    assert (shown["apiVersion"], shown["kind"], shown["leaderWorkerSet"]) == ("lws/v1", "RevisionList", "web")
    (item,) = shown["items"]
    assert list(item) == ["revision", "key", "created", "changeCause", "groups", "current", "spec"]
