"""Tests that YAML is converted to JSON as in Kubernetes, within limits for memory and time."""

import json
import re
import time
import tracemalloc
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kuberuntime.manifests import yamltext
from kuberuntime.manifests.nesting import MAX_DEPTH
from kuberuntime.manifests.yamltext import MAX_ALIASED, YamlError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("---\n", None),
        ("# nothing\n", None),
        ("2024-01-01", "2024-01-01"),
        ("12:30:00", "12:30:00"),
        ("=", "="),
        ("a: <<", {"a": "<<"}),
        ("[1e3, 1.5, .5, 08, -3, +4]", [1000.0, 1.5, 0.5, 8.0, -3, 4]),
        ("[0x1f, 017, 0o17, 0b11, 0, -0x1f]", [31, 15, 15, 3, 0, -31]),
        ("[18446744073709551615, 18446744073709551616]", [2**64 - 1, 2.0**64]),
        ("0x1ffffffffffffffff", "0x1ffffffffffffffff"),
        ("9" * 5000, "9" * 5000),
        ("1e999", "1e999"),
        ("[-, +, ., -.x, 1_000]", ["-", "+", ".", "-.x", "1_000"]),
        ("[yes, On, FALSE, ~, null, y]", [True, True, False, None, None, "y"]),
        ('["on", \'1\', !!str 1, ! "2", !!timestamp 2024-01-01]', ["on", "1", "1", "2", "2024-01-01"]),
        ("[!!int 3, !!float 3, !!float 1.5, !!bool yes, !!null ~]", [3, 3.0, 1.5, True, None]),
        ("{1: a, on: b, 1.5: c, 1e3: d, 1234567.5: e}", {"1": "a", "true": "b", "1.5": "c", "1000": "d", "1234567.5": "e"}),
        ("{off: 1}", {"false": 1}),
        ("- &a {x: 1}\n- *a", [{"x": 1}, {"x": 1}]),
        ("- &b key\n- {*b : 1}", ["key", {"key": 1}]),
        ("- &a [&a 1, *a]\n- *a", [[1, 1], [1, 1]]),
        ("a: &a {b: 1, c: 1}\nd: {<<: *a, c: 2}", {"a": {"b": 1, "c": 1}, "d": {"b": 1, "c": 2}}),
        ("- &a {x: 1}\n- &b {x: 2, y: 2}\n- {<<: [*a, *b], z: 3}", [{"x": 1}, {"x": 2, "y": 2}, {"x": 1, "y": 2, "z": 3}]),
        ("{<<: {a: 1}, <<: {a: 2}}", {"a": 2}),
        ("a: 1\na: 2", {"a": 2}),
        ("\ufeffa: 1", {"a": 1}),
        (b"a: \xc3\xbc", {"a": "ü"}),
        ("%YAML 1.1\n%TAG !x! tag:yaml.org,2002:\n---\n!x!str 1", "1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("loader", [yaml.CSafeLoader, yaml.SafeLoader], ids=["libyaml", "PyYAML"])
def test_values_are_read_as_kubernetes_reads_them(
    monkeypatch: pytest.MonkeyPatch, text: str | bytes, value: object, loader: type
) -> None:
    """The result is the same if PyYAML was built without libyaml."""
    monkeypatch.setattr(yamltext, "SafeLoader", loader)
    found = yamltext.load(text)
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "line 2: did not find expected ',' or ']'"),
        ("a: 1\n\tb: 2", "line 2: found a tab character that violates indentation"),
        ("a: \x1b[2J", "line 1: control characters are not allowed at position 3"),
        ("a: 1\nb: \x00", "line 2: control characters are not allowed"),
        (b"a: 1\nb: \xff", "line 2: invalid UTF-8 at byte 8"),
        ("a: \ud800", "line 1: invalid text: surrogates not allowed"),
        ("a: 1\n--- \nb", "line 3: expected one document, but found several"),
        ("a: &a [*a]", "line 1: alias *a is an alias inside its own anchor"),
        ("- &a 1\n- &a {b: *a}", "line 2: alias *a is an alias inside its own anchor"),
        ("a: *b", "line 1: alias *b has no preceding anchor"),
        ("[a]: 1", "line 1: a list cannot be a key, because JSON keys must be strings"),
        ("? {a: 1}\n: 1", "line 1: a mapping cannot be a key, because JSON keys must be strings"),
        ("- &a [1]\n- {*a : 1}", "line 2: a mapping or a list cannot be a key"),
        ("a: 1\n~: 2", "line 2: null cannot be a key, because JSON keys must be strings. Put it in quotes"),
        ("a: .nan", "line 1: .nan is a number that JSON cannot represent"),
        ("a:\n- -.inf", "line 2: -.inf is a number that JSON cannot represent"),
        ("<<: 3", "line 1: << must have a mapping or a list of mappings"),
        ("<<: [{}, 3]", "line 1: << must have a mapping or a list of mappings"),
        ("a: !!set {b}", "line 1: tag !!set is not supported in JSON. Remove it"),
        ("a: !!binary YQ==", "line 1: tag !!binary is not supported in JSON. Remove it"),
        ("a: !!python/object:os.system []", "line 1: tag !!python/object:os.system is not supported"),
        ("a: !mine 1", "line 1: tag !mine is not supported in JSON. Remove it"),
        ("a: !!int x", "line 1: 'x' is not a valid value for the tag !!int"),
        ("a: !!int 1:1", "line 1: '1:1' is not a valid value for the tag !!int"),
        ("a: !!bool 1", "line 1: '1' is not a valid value for the tag !!bool"),
        ("%TAG !a! b\n" * 65 + "--- 1", "line 1: contains 65 %TAG directives, but at most 64 are allowed"),
    ],
)
def test_errors_name_line_and_problem(text: str | bytes, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        yamltext.load(text)
    assert str(caught.value).startswith(message)


def test_surrogates_are_an_error_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamltext, "SafeLoader", yaml.SafeLoader)
    with pytest.raises(YamlError, match="invalid text: surrogates not allowed"):
        yamltext.load(r'{"a": "\ud83d\ude00"}')
    with pytest.raises(YamlError, match=r"line 1: expected ',' or '\]'"):
        yamltext.load("a: [1")


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3", "{1: a, b: 2,\n '1': c}", "? a\n: 1\n? !!str a\n: 2"])
def test_duplicate_key_is_an_error_where_keys_are_unique(text: str) -> None:
    with pytest.raises(YamlError, match=r"line [23]: key '[a1]' is already defined in line 1"):
        yamltext.load(text, unique_keys=True)


def laughs(count: int, levels: int, leaf: str = "[x,x,x]") -> str:
    names = [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * count)}]" for level in range(1, levels)]
    return "\n".join([f"a0: &a0 {leaf}", *names])


def merges(count: int, levels: int) -> str:
    lines = [f"- &m{level} {{<<: [{','.join([f'*m{level - 1}'] * count)}]}}" for level in range(1, levels)]
    return "\n".join(["- &m0 {a: 1, b: 2}", *lines])


@pytest.mark.parametrize(
    "text",
    [
        laughs(9, 10),
        laughs(2, 60),
        merges(9, 12),
        "a: &a " + "x" * 60_000 + "\nb: [" + "*a," * 60 + "]",
        "[" * 50_000,
        "{a: " * 50_000,
        "- " * 50_000,
        "? " * 50_000,
        "a: !!int " + ":".join("1" * 100_000),
        "".join(f"%TAG !a{number}! b\n" for number in range(100_000)),
        "".join(f"\u2028%TAG !a{number}! b" for number in range(100_000)),
        "\n".join(" " * level + "a:" for level in range(1000)),
    ],
    ids=[
        "laughs", "doublings", "merges", "long text", "lists", "mappings", "entries", "keys",
        "base 60", "directives", "directives after separators", "indents",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_yaml_bomb_is_rejected_in_little_memory_and_time(text: str) -> None:
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(YamlError):
            yamltext.load(text)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 5


@pytest.mark.slow
def test_limits_are_exact() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert yamltext.load(deepest) is not None
    with pytest.raises(YamlError, match="line 1: nested more than 100 levels deep"):
        yamltext.load(f"[{deepest}]")
    half = "x" * (MAX_ALIASED // 2 - 1)
    assert yamltext.load(f"[&a {half}, *a, *a]") == [half] * 3
    with pytest.raises(YamlError, match=r"line 1: alias \*a: aliases must not repeat more than 3145728 characters"):
        yamltext.load(f"[&a x{half}, *a, *a]")


def test_documents_report_their_first_line() -> None:
    found = list(yamltext.documents("# first\na: 1\n---\n# none\n---\n\n- b\n"))
    assert [(document.value, document.line) for document in found] == [({"a": 1}, 2), (None, 5), (["b"], 7)]


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=8)
EXPONENT = re.compile(r"[-+]?[0-9][0-9_.]*[eE][-+]?[0-9]+")
"""kubectl and this project parse these values as numbers. PyYAML parses them as strings and does not quote them."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(VALUES.filter(lambda value: not EXPONENT.search(json.dumps(value))))
def test_written_values_are_read_back(value: Any) -> None:
    assert yamltext.load(yaml.safe_dump(value, allow_unicode=True)) == value
