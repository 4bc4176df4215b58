"""Reads the names of labels, variables, events and metrics from constants and calls in the code.

In: the sources of the packages. Out: names, for the generated reference (`generate_reference.py`), whose test fails if
one has no description.
"""
# ruff: noqa: INP001 - part of the scripts beside it

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = ROOT / "packages/leaderworkerset/src/leaderworkerset"
COMMAND: Final = ROOT / "packages/lwsctl/src/lwsctl"
RUNTIME: Final = ROOT / "packages/kuberuntime/src/kuberuntime"
LOCAL: Final = ROOT / "packages/localkube/src/localkube"

KEY: Final = re.compile(r"(?:[a-z0-9-]+\.)+(?:io|sh)/[A-Za-z][\w-]*")
"""A label or annotation, with a DNS prefix and a name."""

VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
PREDEFINED: Final = {"HOME", "PATH", "COMP_WORDS"}
"""Shell variables that are not settings."""

EVENT_CALLS: Final = {
    "EventKind": 1,
    "Event": 1,
    "_build_event": 1,
    "_event": 1,
    "SchedulingFailure": 0,
    "_FailedError": 0,
    "_with_rejection_report": 2,
}
"""The functions that build events, and the position of their `reason` argument."""

METRIC_CALLS: Final = {
    "Counter": "counter",
    "Gauge": "gauge",
    "Histogram": "histogram",
    "Tally": "counter",
    "DurationHistogram": "histogram",
    "CounterMetricFamily": "counter",
    "GaugeMetricFamily": "gauge",
}

RENAMED: Final = {"api_requests": "lws_api_requests_total"}
"""The metrics whose name is a parameter, with the name that the manager passes."""


class Metric(NamedTuple):
    """A metric, with its name, its type, its labels, and its help text."""

    name: str
    type: str
    labels: tuple[str, ...]
    help: str


@cache
def modules(folder: Path) -> Mapping[Path, ast.Module]:
    """Return the syntax trees of all modules in a directory."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}


@cache
def constants(path: Path) -> Mapping[str, str]:
    """Return the string constants of a module of the product, with resolved concatenations."""
    return _constants(modules(PRODUCT)[path])


@cache
def all_constants() -> Mapping[str, str]:
    """Return the string constants of the product. If several constants share a name, return the last one."""
    trees = (tree for folder in (PRODUCT, COMMAND) for tree in modules(folder).values())
    return {name: value for tree in trees for name, value in _constants(tree).items()}


def _constants(tree: ast.Module) -> dict[str, str]:
    values: dict[str, str] = {}
    for node in tree.body:
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=value)
                | ast.Assign(targets=[ast.Name(id=name)], value=value)
            ):
                text = _text(value, values)
                if text is not None:
                    values[name] = text
    return values


def keys() -> set[str]:
    """Return all labels, annotations, gates, finalizers and taints in the API modules of the product."""
    files = ("api/labels.py", "api/disaggregatedset.py", "install/operatornames.py")
    values = {value for file in files for value in constants(PRODUCT / file).values()}
    versions = {value for value in values if re.search(r"/v\d\w*$", value)}
    return {value for value in values - versions if KEY.fullmatch(value)}


def variables() -> set[str]:
    """Return all environment variables that the code injects into containers or reads."""
    files = ("api/labels.py", "core/policies/accelerators.py")
    injected = {value for file in files for value in constants(PRODUCT / file).values()}
    names = {value for value in injected if VARIABLE.fullmatch(value) and "_" in value}
    for folder in (PRODUCT, COMMAND, RUNTIME, LOCAL):
        for tree in modules(folder).values():
            names |= set(_read_variables(tree, {**all_constants(), **_constants(tree)}))
    return names - PREDEFINED


def events() -> set[str]:
    """Return the reasons of all events whose reason is a string or a constant."""
    reasons: set[str] = set()
    for tree in modules(PRODUCT).values():
        known = {**all_constants(), **_constants(tree)}
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if (
                    name in EVENT_CALLS and len(arguments) > EVENT_CALLS[name]
                ):
                    text = _text(arguments[EVENT_CALLS[name]], known)
                    if text and re.fullmatch(r"[A-Z]\w+", text):
                        reasons.add(text)
    return reasons


def metrics() -> tuple[Metric, ...]:
    """Return all metrics of the manager and the operator, in the order of the sources."""
    by_name: dict[str, Metric] = {}
    for folder in (PRODUCT, RUNTIME):
        for tree in modules(folder).values():
            if "prometheus_client" in {module for node in ast.walk(tree) for module in _imported(node)}:
                by_name |= {metric.name: metric for metric in _metrics(tree, _constants(tree))}
    return tuple(by_name.values())


def _imported(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.ImportFrom(module=str(name)):
            return (name.partition(".")[0],)
        case ast.Import(names=aliases):
            return tuple(alias.name.partition(".")[0] for alias in aliases)
    return ()


def _metrics(tree: ast.Module, known: Mapping[str, str]) -> Iterator[Metric]:
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        local = dict(_tuples(function))
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id=kind), args=[first, second, *rest], keywords=keywords) if (
                    kind in METRIC_CALLS
                ):
                    name, words = _text(first, known) or RENAMED[ast.unparse(first)], _text(second, known) or ""
                    label_names = (
                        rest[0] if rest else next((key.value for key in keywords if key.arg == "labels"), None)
                    )
                    suffix = "_total" if METRIC_CALLS[kind] == "counter" and not name.endswith("_total") else ""
                    yield Metric(name + suffix, METRIC_CALLS[kind], _labels(label_names, local), words)


def _tuples(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the local names of a function whose value is a tuple."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() as value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                yield from ((ast.unparse(name), value) for name, value in zip(names, values, strict=True))


def _labels(node: ast.expr | None, local: Mapping[str, ast.expr]) -> tuple[str, ...]:
    match node:
        case ast.Tuple(elts=parts):
            return tuple(label for part in parts for label in _labels(part, local))
        case ast.Starred(value=value):
            return _labels(value, local)
        case ast.Name(id=name) if name in local:
            return _labels(local[name], local)
        case ast.Constant(value=str(text)):
            return (text,)
    return ()


def _text(node: ast.expr | None, known: Mapping[str, str]) -> str | None:
    """Return the string value of an expression, which is a literal, a constant, or their concatenation."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return known.get(name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = (_text(left, known), _text(right, known))
            return None if None in parts else "".join(part for part in parts if part)
    return None


def _read_variables(tree: ast.Module, known: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables that a module reads from `environ` or from an `environment` parameter."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="get" | "pop"), args=[first, *_]):
                pass
            case ast.Subscript(value=value, slice=first):
                pass
            case _:
                continue
        text = _text(first, known)
        if re.fullmatch(r"(?:os\.)?environ(?:ment)?", ast.unparse(value)) and text and VARIABLE.fullmatch(text):
            yield text
