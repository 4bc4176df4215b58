"""A difference leads from any state of a page to any other; texts never become HTML."""

import doctest
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.dashboard import actions, address, exporting, markup, pieces
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pieces import Piece, Rendering, difference

STATES = st.lists(st.sampled_from("abcdefgh"), unique=True).flatmap(
    lambda keys: st.tuples(
        st.just(keys),
        st.lists(st.integers(0, 2), min_size=len(keys), max_size=len(keys)),
        st.integers(0, len(keys)),
    )
)


def rendered(state: tuple[list[str], list[int], int]) -> Rendering:
    """Return a state of two regions."""
    keys, versions, cut = state
    pieces = [Piece(key, Safe(f"<i id={key}>{version}</i>")) for key, version in zip(keys, versions, strict=True)]
    return {"one": pieces[:cut], "two": pieces[cut:]}


def apply(shown: Mapping[str, Mapping[str, str]], change: JSONObject) -> dict[str, dict[str, str]]:
    """Do what `static/stream.js` does with a difference."""
    regions = {region: {k: v for k, v in pieces.items() if k not in change["gone"]} for region, pieces in shown.items()}
    for region, key, html in change["put"]:
        home = next((one for one, pieces in regions.items() if key in pieces), region)
        regions[home][key] = html
    for region, order in change["order"].items():
        everything = {key: html for pieces in regions.values() for key, html in pieces.items()}
        for own in regions.values():
            for key in order:
                own.pop(key, None)
        regions[region] = {key: everything[key] for key in order} | regions[region]
    return regions


@settings(max_examples=examples(50))
@given(STATES, STATES)
def test_difference_leads_to_the_new_state(
    old: tuple[list[str], list[int], int], new: tuple[list[str], list[int], int]
) -> None:
    before, after = rendered(old), rendered(new)
    shown = {region: {piece.key: str(piece.html) for piece in pieces} for region, pieces in before.items()}
    wanted = {region: {piece.key: str(piece.html) for piece in pieces} for region, pieces in after.items()}
    change = difference(before, after)
    reached = shown if change is None else apply(shown, change)
    assert {one: list(pieces.items()) for one, pieces in reached.items()} == {
        one: list(pieces.items()) for one, pieces in wanted.items()
    }


def test_cause_is_announced_when_it_changes() -> None:
    def state(html: str, says: str) -> Rendering:
        return {"r": [Piece("a", Safe(html), says)]}

    assert (difference(state("1", "x"), state("2", "x")) or {})["say"] == []
    assert (difference(state("1", "x"), state("2", "y")) or {})["say"] == ["y"]
    assert (difference(state("1", "x"), state("2", "")) or {})["say"] == []


@settings(max_examples=examples(30))
@given(st.text())
def test_text_never_becomes_html(text: str) -> None:
    html = joined(tag("p", text, title=text), text)
    assert html.count("<") == 2  # the start and the end of the element
    assert html.count('"') == 2
    assert "'" not in html


@pytest.mark.parametrize("module", [actions, address, markup, pieces, exporting])
def test_docstring_examples_are_correct(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted
    assert not result.failed
