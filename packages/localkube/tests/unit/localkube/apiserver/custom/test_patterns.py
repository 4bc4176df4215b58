"""Tests that CRD patterns have the syntax and the results of RE2, and are matched in linear time."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from kuberuntime.objects.field import FieldError
from localkube.apiserver.custom import keywords
from localkube.apiserver.custom.keywords import PatternError

DNS = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        (DNS, ["a", "a-b.c0"], ["", "-a", "a.", "a..b", "A"]),
        (r"b", ["abc", "b"], ["ac", ""]),
        (r"^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
        (r"^a{2,}$", ["aa", "aaaaa"], ["a"]),
        (r"^(?:ab|cd|)$", ["ab", "cd", ""], ["abcd", "a"]),
        (r"^(a|b)*?c+$", ["c", "abbacc"], ["ab"]),
        (r"(?i)^straße$", ["STRAßE"], ["x"]),
        (r"^(?i:a)b$", ["Ab"], ["AB"]),
        (r"(?m)^a$", ["b\na\nc"], ["ba"]),
        (r"^a$", ["a"], ["a\n", "b\na"]),
        (r"^.$", ["a", "\U0001f600"], ["\n", "ab"]),
        (r"(?s)^.$", ["\n"], ["ab"]),
        (r"\bfoo\b", ["a foo b", "foo"], ["food", "_foo"]),
        (r"^[[:alpha:]_]+\z", ["aB_"], ["a1"]),
        (r"^[]a[\]\\]+$", ["]a[\\"], ["b"]),
        (r"^\p{L}\PL\p{^Lu}$", ["é1a"], ["1éa"]),
        (r"^\x41\x{1F600}\.\d$", ["A\U0001f600.1"], ["A.1"]),
        (r"^\d$", ["1"], ["\u0663"]),
        (r"^\p{Greek}$", ["\u03b1"], ["a"]),
        (r"^[&&--||~~]$", ["&", "-", "~"], ["a"]),
        (r"a{,3}", ["a{,3}"], ["aaa"]),
        (r"^(a?){3}$", ["", "aaa"], ["aaaa"]),
    ],
)
def test_patterns_match_as_in_re2(pattern: str, found: list[str], not_found: list[str]) -> None:
    compiled = keywords.compile_pattern(pattern)
    assert [text for text in found if not compiled.matches(text)] == []
    assert [text for text in not_found if compiled.matches(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)", r"(a)\1", "(?P<n>a)(?P=n)", "(?>a)", "a++", "a**", "a{2}{3}", "a{1001}", "a{3,2}", "*a", "(", ")", "[", "a(?(1)b)",
        r"\Z", r"\q", "\\", "[[:odd:]]", "[b-a]", "(" * 5000, "((a{100}){100}){100}",
    ],
)  # fmt: skip
def test_syntax_that_re2_lacks_is_rejected(pattern: str) -> None:
    with pytest.raises(PatternError):
        keywords.compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)*$", "^(a?){50}a{50}$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_backtracking_patterns_are_fast(pattern: str) -> None:
    started = time.thread_time()
    assert not keywords.compile_pattern(pattern).matches("a" * 10_000 + "!")
    assert time.thread_time() - started < 5


def test_match_that_would_block_the_server_is_rejected() -> None:
    text = "".join("ab"[number * number % 7 % 2] for number in range(300_000))
    with pytest.raises(PatternError, match="too long to match against a pattern: 300000 characters"):
        keywords.compile_pattern("a[ab]{1000}c").matches(text)


PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "[ab]", ".", r"\d", "^", "$", r"\b"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(50))
@given(PATTERNS, st.text("ab1", max_size=8))
def test_patterns_match_the_same_texts_as_python(pattern: str, text: str) -> None:
    expected = re.search(pattern.replace("$", r"\Z"), text) is not None
    assert keywords.compile_pattern(pattern).matches(text) is expected


def test_stored_pattern_that_is_invalid_is_skipped() -> None:
    """New CRDs with this pattern are rejected (`definition_rules.py`). Objects of an existing CRD can be written."""
    errors: list[FieldError] = []
    keywords._pattern_check("(?=a)")("b", "spec.name", errors)
    assert errors == []
