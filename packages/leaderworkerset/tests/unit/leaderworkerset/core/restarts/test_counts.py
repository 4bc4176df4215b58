"""Tests the restart counts in the annotation of a LeaderWorkerSet."""

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.leaderworkerset import statefulsets
from leaderworkerset.core.leaderworkerset.cachedapply import Identity
from leaderworkerset.core.restarts import counts
from leaderworkerset.core.restarts.counts import Key


def counted(text: str) -> JSONObject:
    return builders.leaderworkerset_object(metadata={"annotations": {labels.GROUP_RESTART_COUNTS: text}})


@pytest.mark.parametrize("text", ["", "{}"])
def test_empty_annotation_has_no_counts(text: str) -> None:
    """An empty annotation does not contain restart counts (N-RB-10)."""
    assert counts.read(counted(text)) == {}
    assert counts.read(builders.leaderworkerset_object()) == {}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("null", "invalid group restart counts: expected a JSON object"),
        ('{"a/0": -1}', 'invalid group restart count for group "a/0": must be non-negative'),
        ('{"a/0": 2147483648}', 'invalid group restart count for group "a/0": must not be more than 2147483647'),
        ('{"a": 1}', 'invalid group restart count key "a"'),
        ('{"a/0": 1.5}', "invalid group restart counts: Expected `int`"),
        ('{"a/0": true}', "invalid group restart counts: Expected `int`"),
        ("[1]", "invalid group restart counts: Expected"),
        ("{", "invalid group restart counts: "),
        ('{"a/0": ' + "9" * 5000 + "}", "invalid group restart count"),
    ],
)
def test_unreadable_counts_are_an_error(text: str, error: str) -> None:
    """Numbers of any length cause an error (N-RB-10)."""
    with pytest.raises(ValueError, match="invalid group restart") as caught:
        counts.read(counted(text))
    assert error in str(caught.value)


def test_counts_round_trip() -> None:
    """The write contains the version that was read, so that no other writer's count is lost (N-RB-1, N-RB-3)."""
    found = {Key("b", "1"): 2, Key("a", "0"): 1}

    patch = counts.write(builders.leaderworkerset_object(), found)

    assert (patch.resource, patch.key.name) == (LEADERWORKERSETS, "web")
    text = patch.patch["metadata"]["annotations"][labels.GROUP_RESTART_COUNTS]
    assert text == '{"a/0":1,"b/1":2}'
    assert {"uid": "uid-of-web", "resourceVersion": "1"}.items() <= patch.patch["metadata"].items()
    assert counts.read(counted(text)) == found


def test_empty_counts_remove_the_annotation() -> None:
    """If there are no counts, the annotation is removed (N-RB-16)."""
    patch = counts.write(builders.leaderworkerset_object(), {})

    assert patch.patch["metadata"]["annotations"] == {labels.GROUP_RESTART_COUNTS: None}


def test_counts_are_not_copied_to_statefulsets() -> None:
    """A restart does not cause a write of the leader StatefulSet."""
    obj = counted('{"a/0": 1}')
    lws = leaderworkerset.decode(obj)

    assert labels.GROUP_RESTART_COUNTS not in meta.annotations({"metadata": statefulsets.build_metadata(obj, lws, "k")})
    assert Identity.from_object(obj) == Identity.from_object(counted('{"a/0": 2}'))


def test_confirmation_is_a_patch_without_changes() -> None:
    """The confirmation is a patch without changes (N-RB-2)."""
    patch = counts.require_unchanged(builders.leaderworkerset_object())

    assert patch.patch == {"metadata": {"uid": "uid-of-web", "resourceVersion": "1"}}


def test_ordinal_is_parsed_from_a_key() -> None:
    """The ordinal is parsed from the key (N-RB-10)."""
    assert Key("a", "12").ordinal == 12
    with pytest.raises(ValueError, match='invalid group restart count key "a/x"'):
        _ = Key("a", "x").ordinal
