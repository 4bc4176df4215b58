r"""Implements JSONPath, for kubectl's templates like `{.metadata.name}{"\n"}` and for printer columns.

The functions are pure.

Input: a template or a path, and a value. Output: text or values. As in kubectl, missing fields are empty, multiple
results are separated by spaces, and objects and lists are printed as JSON. Syntax that kubectl does not support
(functions, `&&`) is rejected.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec

from kuberuntime.objects import decimals
from kuberuntime.objects.meta import JSON

Step: TypeAlias = Callable[[JSON], Iterator[JSON]]
"""A function that applies one path step to a value and returns the selected values."""

NAME: Final = r"(?:\\.|[^\s.,\[\]$@{}()\\])+"
QUOTED: Final = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
PART: Final = re.compile(rf"\{{(?P<inside>(?:{QUOTED}|[^'\"{{}}])*)\}}|(?P<text>[^{{]+)")
STEP: Final = re.compile(
    rf"""\s*(?:\.\.(?P<deep>{NAME})|\.(?P<name>{NAME})|\.?\[\s*\?\((?P<filter>(?:{QUOTED}|[^'"])*?)\)\s*\]"""
    rf"""|\.?\[(?P<inside>(?:{QUOTED}|[^'"\]])*)\]|\.(?=\s*$))"""
)
UNION: Final = re.compile(rf"\s*(?:(?P<key>{QUOTED})|(?P<bounds>-?\d*(?::-?\d*){{0,2}})|(?P<all>\*))\s*(?:,|$)")
COMPARISON: Final = re.compile(
    rf"\s*(?P<left>(?:{QUOTED}|[^'\"=!<>])+?)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<right>.+?)\s*)?"
)
SIGNS: Final[Mapping[str, Callable[[JSON, JSON], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class JSONPathError(ValueError):
    """The template cannot be parsed, or does not match the value."""


class Loop(msgspec.Struct, frozen=True):
    """A loop `{range PATH}…{end}`. Its parts are repeated for each result."""

    path: Sequence[Step]
    parts: list["Part"]


Part: TypeAlias = str | Sequence[Step] | Loop
"""A part of a template, which is either text, a path, or a loop."""


def parse(template: str) -> list[Part]:
    """Parse a template, which must contain an expression in braces."""
    if "{" not in template:
        raise JSONPathError(
            f"the template does not contain an expression in braces. Use {{{template or '.metadata.name'}}}"
        )
    parts: list[Part] = []
    open_parts, at = [parts], 0
    while at < len(template):
        match = PART.match(template, at)
        if match is None:
            raise JSONPathError(f"the expression at {template[at:]!r} is empty or not closed")
        at = match.end()
        inside = "" if match["inside"] is None else match["inside"].strip()
        if match["inside"] is None:
            open_parts[-1].append(match["text"])
        elif inside == "end":
            if len(open_parts) == 1:
                raise JSONPathError("{end} without {range}")
            open_parts.pop()
        elif inside.startswith("range "):
            loop = Loop(parse_path(inside.removeprefix("range ")), [])
            open_parts[-1].append(loop)
            open_parts.append(loop.parts)
        elif re.fullmatch(QUOTED, inside):
            open_parts[-1].append(unquote(inside))
        else:
            open_parts[-1].append(parse_path(inside))
    if len(open_parts) > 1:
        raise JSONPathError("{range} without {end}")
    return parts


def evaluate(parts: Sequence[Part], value: JSON) -> str:
    """Evaluate a template for a value."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Loop):
            texts += [evaluate(part.parts, item) for item in select(part.path, value)]
        else:
            texts.append(" ".join(map(format_result, select(part, value))))
    return "".join(texts)


def select(steps: Sequence[Step], value: JSON) -> list[JSON]:
    """Return the values that a path selects."""
    values = [value]
    for step in steps:
        values = [child for parent in values for child in step(parent)]
    return values


def format_result(value: JSON) -> str:
    """Convert a result to text. Strings are unchanged, and other values are encoded as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


def parse_path(text: str) -> list[Step]:
    """Parse a path such as `.items[*].metadata.name`. `$` and `@` mean the root value, or the element in a loop."""
    stripped = text.strip()
    steps: list[Step] = []
    at = 1 if stripped[:1] in {"$", "@"} else 0
    while at < len(stripped):
        match = STEP.match(stripped, at)
        if match is None:
            raise JSONPathError(f"{stripped[at:]!r} is invalid in {text.strip()!r}. Use a path such as .metadata.name")
        at = match.end()
        if (name := match["deep"] or match["name"]) is not None:
            steps += [_descendants, _parse_name(name)] if match["deep"] else [_parse_name(name)]
        elif match["filter"] is not None:
            steps.append(_filter(match["filter"]))
        elif match["inside"] is not None:
            steps.append(_union(match["inside"]))
    return steps


def normalize(text: str) -> str:
    """Return a path without braces and with a leading dot, which are optional in kubectl.

    >>> normalize("{.spec.replicas}"), normalize("metadata.name"), normalize("[0]")
    ('.spec.replicas', '.metadata.name', '[0]')
    """
    bare = text.strip().removeprefix("{").removesuffix("}")
    return bare if not bare or bare[0] in ".[$@" else f".{bare}"


def unquote(text: str) -> str:
    """Return the text between quotation marks, with unescaped characters."""
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), text[1:-1])


def _child_values(value: JSON) -> list[JSON]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _descendants(value: JSON) -> Iterator[JSON]:
    waiting = [value]
    while waiting:
        yield (parent := waiting.pop())
        waiting += reversed(_child_values(parent))


def _parse_name(text: str) -> Step:
    name = re.sub(r"\\(.)", r"\1", text)

    def step(value: JSON) -> Iterator[JSON]:
        if name == "*":
            yield from _child_values(value)
        elif isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _union(text: str) -> Step:
    """Parse the content of brackets, which consists of names, indexes and slices, separated by commas."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = UNION.match(text, at)
        if match is None or not match[0].strip(" ,"):
            raise JSONPathError(f"[{text}] is invalid. Use [*], [0], [0:2] or ['name']")
        at = match.end()
        bounds = match["bounds"]
        steps.append(
            _literal(unquote(match["key"])) if match["key"] else _parse_name("*") if match["all"] else _slice(bounds)
        )
    if not steps:
        raise JSONPathError("[] does not select elements. Use [*] for all elements")
    return lambda value: (result for step in steps for result in step(value))


def _literal(name: str) -> Step:
    return _parse_name(re.sub(r"(.)", r"\\\1", name))


def _slice(text: str) -> Step:
    """Parse an index or slice. As in kubectl, an index that exceeds the length of a list is an error."""
    bounds = [decimals.integer(word) if word else None for word in text.split(":")]

    def step(value: JSON) -> Iterator[JSON]:
        if not isinstance(value, list):
            raise JSONPathError(f"[{text}]: {format_result(value)} is not a list")
        first, last = bounds[0] or 0, (bounds[1] or 0) - 1 if len(bounds) > 1 else bounds[0] or 0
        if first != last + 1 and not all(-len(value) <= index < len(value) for index in (first, last)):
            raise JSONPathError(f"[{text}]: array index out of bounds: the list has {len(value)} elements")
        yield from value[slice(*bounds)] if len(bounds) > 1 else [value[first]]

    return step


def _filter(text: str) -> Step:
    """Parse a filter for list elements, which is either an existing path or a comparison."""
    match = COMPARISON.fullmatch(text)
    if match is None or "&&" in text or "||" in text:
        raise JSONPathError(f'[?({text})] is invalid. Use one comparison, such as [?(@.type=="Ready")]')
    left, sign, right = _operand(match["left"]), match["sign"], _operand(match["right"] or "@")

    def holds(value: JSON) -> bool:
        ours, theirs = left(value), right(value)
        if sign is None or not ours or not theirs:
            return bool(ours) and sign is None
        if isinstance(ours[0], str) != isinstance(theirs[0], str) or isinstance(ours[0], dict | list | None):
            raise JSONPathError(f"[?({text})] cannot compare {ours[0]!r} with {theirs[0]!r}")
        return SIGNS[sign](ours[0], theirs[0])

    return lambda value: filter(holds, _child_values(value))


def _operand(text: str) -> Callable[[JSON], list[JSON]]:
    if text[:1] in {"@", "$", "."}:
        return partial(select, parse_path(text))
    try:
        constant: JSON = unquote(text) if re.fullmatch(QUOTED, text) else msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise JSONPathError(f"{text!r} is not a path, a number or a quoted string") from error
    return lambda _value: [constant]
