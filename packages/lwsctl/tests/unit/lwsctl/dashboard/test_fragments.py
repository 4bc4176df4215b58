"""Tests that a difference transforms one page state into another, and that strings are not parsed as HTML."""

import doctest
import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from kuberuntime.objects.meta import JSONObject
from lwsctl.dashboard import actions, address, fragments, markup, staticfiles
from lwsctl.dashboard.fragments import Fragment, Rendering, difference
from lwsctl.dashboard.markup import Safe, join, tag

STATES = st.lists(st.sampled_from("abcdefgh"), unique=True).flatmap(
    lambda keys: st.tuples(
        st.just(keys),
        st.lists(st.integers(0, 2), min_size=len(keys), max_size=len(keys)),
        st.integers(0, len(keys)),
    )
)


def rendered(state: tuple[list[str], list[int], int]) -> Rendering:
    """Return a state with two regions."""
    keys, versions, cut = state
    pieces = [piece(key, version) for key, version in zip(keys, versions, strict=True)]
    return {"one": pieces[:cut], "two": pieces[cut:]}


def piece(key: str, version: int) -> Fragment:
    """Return an element with a nested element.

    Versions 0 and 1 differ in the part, and version 2 also differs around it.
    """
    inner = Fragment(f"{key}/in", Safe(f"<b id={key}/in>{version % 2}</b>"))
    part = Fragment(f"{key}/part", Safe(f"<u id={key}/part>x{inner.html}</u>"), parts=(inner,))
    return Fragment(key, Safe(f"<i id={key}>{part.html}{version // 2}</i>"), parts=(part,))


def apply(shown: Mapping[str, Mapping[str, str]], change: JSONObject) -> dict[str, dict[str, str]]:
    """Apply a difference to the regions in the same way as `static/stream.js`."""
    gone = change.get("gone", ())
    regions = {region: {k: v for k, v in pieces.items() if k not in gone} for region, pieces in shown.items()}
    for region, key, html in change.get("put", ()):
        whole = key.partition("/")[0]
        home = next((one for one, pieces in regions.items() if whole in pieces), region)
        regions[home][whole] = replaced(regions[home].get(whole, ""), key, html)
    for region, order in change.get("order", {}).items():
        everything = {key: html for pieces in regions.values() for key, html in pieces.items()}
        for own in regions.values():
            for key in order:
                own.pop(key, None)
        regions[region] = {key: everything[key] for key in order} | regions[region]
    return regions


def replaced(text: str, key: str, html: str) -> str:
    """Replace the element with this ID in the HTML of an element. Without the ID, replace the whole element."""
    element = re.compile(rf"<(\w) id={key}>.*</\1>")
    return element.sub(html, text) if element.search(text) else html


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
        return {"r": [Fragment("a", Safe(html), says)]}

    assert "say" not in (difference(state("1", "x"), state("2", "x")) or {})
    assert (difference(state("1", "x"), state("2", "y")) or {})["say"] == ["y"]
    assert "say" not in (difference(state("1", "x"), state("2", "")) or {})


def test_only_the_parts_that_changed_are_sent() -> None:
    def put(old: int, new: int) -> list[str]:
        return [entry[1] for entry in (difference({"r": [piece("a", old)]}, {"r": [piece("a", new)]}) or {})["put"]]

    assert put(0, 1) == ["a/in"]
    assert put(0, 2) == ["a"]


@settings(max_examples=examples(30))
@given(st.text())
def test_text_never_becomes_html(text: str) -> None:
    html = join(tag("p", text, title=text), text)
    assert html.count("<") == 2  # the start tag and the end tag
    assert html.count('"') == 2
    assert "'" not in html


@pytest.mark.parametrize("module", [actions, address, markup, fragments, staticfiles])
def test_docstring_examples_are_correct(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted
    assert not result.failed
