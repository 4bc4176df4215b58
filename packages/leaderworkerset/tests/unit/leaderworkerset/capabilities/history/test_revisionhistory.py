"""Tests revisions that no group uses any longer."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.plan import Action, Delete, Patch
from leaderworkerset.api import labels
from leaderworkerset.capabilities.history import revisionhistory

LWS = builders.leaderworkerset_object()
KEY = builders.key_of(LWS)


def revision(number: int, *, image: str = "", owned: bool = True) -> dict[str, Any]:
    """Return a revision with separate content, or with the image of another revision."""
    made = builders.revision(builders.leaderworkerset_object(image=image or f"app:{number}-old"), number=number)
    return made if owned else made | {"metadata": meta.metadata(made) | {"ownerReferences": []}}


def past(number: int, *, image: str = "", owned: bool = True) -> dict[str, Any]:
    """Return the revision in the form of the history."""
    made = revision(number, image=image, owned=owned)
    key = meta.labels(made)[labels.TEMPLATE_REVISION_HASH]
    moved = {"labels": {labels.HISTORY_OF: "web"}, "annotations": {labels.TEMPLATE_REVISION_HASH: key}}
    return made | {"metadata": meta.metadata(made) | moved}


def limited(value: str) -> dict[str, Any]:
    return builders.leaderworkerset_object(metadata={"annotations": {labels.REVISION_HISTORY_LIMIT: value}})


def deleted(actions: list[Action]) -> list[str]:
    return [action.key.name for action in actions if isinstance(action, Delete)]


def kept(actions: list[Action]) -> list[str]:
    return [action.key.name for action in actions if isinstance(action, Patch)]


def test_outdated_revision_is_hidden_from_clients_in_one_write() -> None:
    old = revision(3)

    assert revisionhistory.update_history(LWS, KEY, [old], ()) == [
        Patch(
            resource=CONTROLLER_REVISIONS,
            key=meta.key(old),
            patch={
                "metadata": {
                    "uid": meta.uid(old),
                    "resourceVersion": "",
                    "labels": {
                        labels.NAME: None,
                        labels.TEMPLATE_REVISION_HASH: None,
                        labels.HISTORY_OF: "web",
                    },
                    "annotations": {labels.TEMPLATE_REVISION_HASH: meta.labels(old)[labels.TEMPLATE_REVISION_HASH]},
                }
            },
            if_present=True,
        )
    ]


def test_oldest_revisions_beyond_the_limit_are_deleted() -> None:
    before = [past(number) for number in (1, 2, 3)]
    actions = revisionhistory.update_history(limited("3"), KEY, [revision(4)], before)
    assert kept(actions) == [meta.name(revision(4))]
    assert deleted(actions) == [meta.name(before[0])]


def test_limit_zero_keeps_no_revision() -> None:
    actions = revisionhistory.update_history(limited("0"), KEY, [revision(4)], [past(3)])
    assert deleted(actions) == [meta.name(revision(4)), meta.name(past(3))]
    assert kept(actions) == []


def test_reused_revision_leaves_the_history() -> None:
    again = past(1, image="app:1")
    assert deleted(revisionhistory.update_history(LWS, KEY, [revision(4)], [again, past(2)])) == [meta.name(again)]


def test_newest_of_equal_revisions_is_kept() -> None:
    before, after = past(1, image="app:0"), revision(4, image="app:0")
    actions = revisionhistory.update_history(LWS, KEY, [after], [before])
    assert (kept(actions), deleted(actions)) == ([meta.name(after)], [meta.name(before)])


def test_orphaned_revisions_are_adopted_unless_owned_by_others() -> None:
    """Tests that a recreated LeaderWorkerSet can be rolled back to its old revisions."""
    stranger = past(2)
    stranger["metadata"]["ownerReferences"] = [stranger["metadata"]["ownerReferences"][0] | {"uid": "another"}]
    orphans = [revision(4, owned=False), past(3, owned=False)]
    actions = revisionhistory.update_history(LWS, KEY, orphans[:1], [*orphans[1:], stranger])
    assert deleted(actions) == []
    owners = [action.patch["metadata"]["ownerReferences"] for action in actions if isinstance(action, Patch)]
    assert owners == [[meta.controller_reference(LWS)]] * 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3), ("0", 0), ("1000", 100), ("many", 10), ("-1", 10), ("\u0663", 10), ("9" * 5000, 10)],
)
def test_history_limit_is_read_from_an_annotation(value: str, expected: int) -> None:
    assert revisionhistory.limit(limited(value)) == expected


def test_history_limit_is_ten_by_default() -> None:
    assert revisionhistory.limit(LWS) == 10


def test_history_has_a_label_selector() -> None:
    assert revisionhistory.selector("web") == "leaderworkerset.sigs.k8s.io/history-of=web"


@pytest.mark.parametrize(("count", "mebibytes", "expected"), [(9, 1, 3), (2, 5, 1), (9, 0, 9)])
def test_large_templates_are_kept_up_to_a_number_of_bytes(count: int, mebibytes: int, expected: int) -> None:
    """The newest revision is always retained, so that an update can be undone."""
    found = [revision(number) | {"data": {"text": "x" * (mebibytes * 2**20)}} for number in range(1, count + 1)]
    newest = revisionhistory.latest_revisions(found, KEY, 10)
    assert [one["revision"] for one in newest] == list(range(count, count - expected, -1))


@pytest.mark.parametrize(("text", "warns"), [("abc", True), ("-1", True), ("", True), ("0", False), ("12", False)])
def test_unreadable_history_limit_is_warned_about(text: str, warns: bool) -> None:
    warnings = list(revisionhistory.warnings({labels.REVISION_HISTORY_LIMIT: text}))
    assert bool(warnings) is warns
    assert all(text in warning and labels.REVISION_HISTORY_LIMIT in warning for warning in warnings)
