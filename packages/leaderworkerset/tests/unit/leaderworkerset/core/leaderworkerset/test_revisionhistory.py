"""What becomes of revisions that no group is made from any more."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.plan import Action, Delete, Patch
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import revisionhistory

LWS = builders.leaderworkerset_object()
KEY = builders.key_of(LWS)


def revision(number: int, *, image: str = "", owned: bool = True) -> dict[str, Any]:
    """Return a revision of content of its own, or of that of another one with the same image."""
    made = builders.revision(builders.leaderworkerset_object(image=image or f"app:{number}-old"), number=number)
    return made if owned else made | {"metadata": meta.metadata(made) | {"ownerReferences": []}}


def past(number: int, *, image: str = "", owned: bool = True) -> dict[str, Any]:
    """Return the same as it is in the history."""
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


def test_an_outdated_revision_leaves_the_sight_of_clients_in_one_write() -> None:
    old = revision(3)

    assert revisionhistory.settle(LWS, KEY, [old], ()) == [
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


def test_the_oldest_beyond_the_limit_are_deleted() -> None:
    before = [past(number) for number in (1, 2, 3)]
    actions = revisionhistory.settle(limited("3"), KEY, [revision(4)], before)
    assert kept(actions) == [meta.name(revision(4))]
    assert deleted(actions) == [meta.name(before[0])]


def test_nothing_is_kept_with_the_limit_0() -> None:
    actions = revisionhistory.settle(limited("0"), KEY, [revision(4)], [past(3)])
    assert deleted(actions) == [meta.name(revision(4)), meta.name(past(3))]
    assert kept(actions) == []


def test_content_that_is_current_again_is_history_no_more() -> None:
    again = past(1, image="app:1")
    assert deleted(revisionhistory.settle(LWS, KEY, [revision(4)], [again, past(2)])) == [meta.name(again)]


def test_of_equal_contents_the_newest_is_kept() -> None:
    before, after = past(1, image="app:0"), revision(4, image="app:0")
    actions = revisionhistory.settle(LWS, KEY, [after], [before])
    assert (kept(actions), deleted(actions)) == ([meta.name(after)], [meta.name(before)])


def test_what_nobody_owns_is_deleted_and_what_another_owns_is_left_alone() -> None:
    stranger = past(2)
    stranger["metadata"]["ownerReferences"] = [stranger["metadata"]["ownerReferences"][0] | {"uid": "another"}]
    ownerless = revision(4, owned=False)
    assert deleted(revisionhistory.settle(LWS, KEY, [ownerless], [stranger])) == [meta.name(ownerless)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3), ("0", 0), ("1000", 100), ("many", 10), ("-1", 10), ("\u0663", 10), ("9" * 5000, 10)],
)
def test_the_limit_is_a_number_of_an_annotation(value: str, expected: int) -> None:
    assert revisionhistory.limit(limited(value)) == expected


def test_ten_are_kept_where_nothing_is_said() -> None:
    assert revisionhistory.limit(LWS) == 10


def test_the_history_is_found_by_its_label() -> None:
    assert revisionhistory.selector("web") == "leaderworkerset.sigs.k8s.io/history-of=web"
