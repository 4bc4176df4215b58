"""The JSONPath subset for printer columns: fields, indexes, `[*]`, and filters like `[?(@.type=="Ready")]`."""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from kuberuntime.objects.meta import JSON

Step: TypeAlias = Callable[[JSON], Iterator[JSON]]

TOKEN = re.compile(
    r"\.(?P<field>(?:\\.|[^.\[\]\\])+)"
    r"|\[\s*(?P<index>-?\d+)\s*\]"
    r"|(?P<every>\[\*\]|\.\*)"
    r"|\[\s*(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)\s*\]"
    r"|\[\?\(\s*@\.(?P<key>[\w.\\/-]+)\s*(?P<operator>==|!=)\s*(?P<literal>'[^']*'|\"[^\"]*\"|[^)]*?)\s*\)\]"
)


class JSONPathError(ValueError):
    """The path uses an unsupported feature."""


def parse(path: str) -> Callable[[JSON], list[JSON]]:
    """Compile a path to a function that returns all matching values.

    >>> parse('.a[?(@.t=="x")].v')({"a": [{"t": "y", "v": 1}, {"t": "x", "v": 2}]})
    [2]
    """
    steps = list(_steps(path))

    def find(value: JSON) -> list[JSON]:
        results = [value]
        for step in steps:
            results = [child for parent in results for child in step(parent)]
        return results

    return find


def _steps(path: str) -> Iterator[Step]:
    position = 0
    while position < len(path):
        match = TOKEN.match(path, position)
        if match is None:
            raise JSONPathError(f"{path!r} is not supported from {path[position:]!r} on")
        yield _step(match)
        position = match.end()


def _step(match: re.Match[str]) -> Step:
    if match["every"]:
        return _every
    if match["index"] is not None:
        return _index(int(match["index"]))
    if match["key"] is not None:
        return _filter(match)
    name = match["quoted"] if match["quoted"] is not None else re.sub(r"\\(.)", r"\1", match["field"])
    return _field(name)


def _field(name: str) -> Step:
    def step(value: JSON) -> Iterator[JSON]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: JSON) -> Iterator[JSON]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: JSON) -> Iterator[JSON]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _filter(match: re.Match[str]) -> Step:
    find = parse(f".{match['key']}")
    literal = match["literal"].strip("'\"")
    equal = match["operator"] == "=="

    def step(value: JSON) -> Iterator[JSON]:
        for item in value if isinstance(value, list) else ():
            results = find(item)
            if (bool(results) and str(results[0]) == literal) is equal:
                yield item

    return step
