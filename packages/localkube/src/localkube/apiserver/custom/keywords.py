"""Compiles the validation keywords of a structural schema to checks.

A check receives a value with the correct type, its path, and a list to which it appends errors.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from kuberuntime.objects.field import FieldError, Kind, invalid, not_supported, render
from kuberuntime.objects.meta import JSON, JSONObject

EFFORT: Final = 10**8
"""The maximum product of string length and pattern instructions."""


class PatternError(ValueError):
    """The string is not an RE2 regular expression, or a value is too long for the pattern."""


class Pattern(Struct, frozen=True):
    """A compiled pattern, which RE2 matches in linear time as in kube-apiserver."""

    compiled: Any

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches part of the string. Raise `PatternError` if this takes too long."""
        if len(text) * self.compiled.programsize > EFFORT:
            raise PatternError(f"the value is too long to match against a pattern: {len(text)} characters")
        return self.compiled.search(text) is not None


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern. Raise `PatternError` if RE2 rejects it."""
    import re2  # imported with the first CRD that has a pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(re2.compile(text, options))
    except re2.error as error:
        raise PatternError(error.args[0].decode(errors="replace")) from error


Check: TypeAlias = Callable[[JSON, str, list[FieldError]], None]

INTEGER_BITS = {"int32": 32, "int64": 64}
TYPE_NAMES: dict[str, type] = {
    "null": type(None), "boolean": bool, "string": str, "integer": int, "number": float, "array": list,
}  # fmt: skip
"""JSON types and their Python types.

Booleans come first, because a boolean in Python is also an integer.
"""


class Checker(Protocol):
    """A schema node for combinations such as `allOf`."""

    def check(self, value: JSON, path: str, errors: list[FieldError]) -> None:
        """Collect the errors of a value."""


Compiler: TypeAlias = Callable[[JSONObject], Checker]


def join(path: str, name: str) -> str:
    """Append a field to a path."""
    return f"{path}.{name}" if path else name


def type_error(path: str, value: JSON, expected: str) -> FieldError:
    """Build the error for a value with an incorrect type."""
    actual = type_name(value)
    expected = "integer,string" if expected == "x-kubernetes-int-or-string" else expected
    text = f"{path} in body must be of type {expected}: {render(actual)}"
    return FieldError(Kind.TYPE_INVALID, path or "<nil>", actual, text)


def type_name(value: JSON) -> str:
    """Return the JSON type of a value."""
    return next((name for name, kind in TYPE_NAMES.items() if isinstance(value, kind)), "object")


def compile_checks(schema: JSONObject, compiler: Compiler) -> tuple[Check, ...]:
    """Return the checks for a schema's keywords, in the order in which the API server reports errors."""
    return (*_value_checks(schema), *_combination_checks(schema, compiler))


def _value_checks(schema: JSONObject) -> Iterator[Check]:
    if schema.get("enum"):
        yield _enum_check(schema["enum"])
    if "pattern" in schema:
        yield _pattern_check(schema["pattern"])
    if schema.get("format") in INTEGER_BITS and schema.get("type") == "integer":
        yield _integer_format_check(schema["format"])
    if schema.get("format") == "date-time":
        yield _check_date_time
    yield from (_limit_check(rule, schema[keyword], schema) for keyword, rule in LIMITS.items() if keyword in schema)


def _enum_check(allowed: list[JSON]) -> Check:
    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        if value not in allowed:
            errors.append(not_supported(path, value, allowed))

    return check


def _pattern_check(pattern: str) -> Check:
    """Check a string against a pattern. Skip invalid patterns that earlier versions stored."""
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return lambda _value, _path, _errors: None

    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        try:
            if not isinstance(value, str) or compiled.matches(value):
                return
            errors.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
        except PatternError as error:
            errors.append(FieldError(Kind.TOO_LONG, path, detail=str(error)))

    return check


def _integer_format_check(name: str) -> Check:
    limit = 2 ** (INTEGER_BITS[name] - 1)

    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        if not -limit <= value < limit:
            errors.append(invalid(path, value, f"Checked value must be of type integer with format {name}"))

    return check


def _check_date_time(value: JSON, path: str, errors: list[FieldError]) -> None:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        errors.append(invalid(path, value, f"{path} in body must be of type date-time: {render(value)}"))


Rule: TypeAlias = Callable[[JSON, JSON, str, JSONObject], FieldError | None]
"""Returns an error if a value violates a keyword of a schema."""


def _bound_rule(word: str, side: int, exclusive: str) -> Rule:
    def rule(value: JSON, limit: JSON, path: str, schema: JSONObject) -> FieldError | None:
        strict = bool(schema.get(exclusive))
        if side * value > side * limit or (not strict and value == limit):
            return None
        words = f"{word} than" if strict else f"{word} than or equal to"
        return invalid(path, value, f"{path} in body should be {words} {render(limit)}")

    return rule


def _check_multiple(value: JSON, factor: JSON, path: str, _schema: JSONObject) -> FieldError | None:
    return invalid(path, value, f"{path} in body should be a multiple of {render(factor)}") if value % factor else None


def _minimum_rule(what: str) -> Rule:
    def rule(value: JSON, limit: JSON, path: str, _schema: JSONObject) -> FieldError | None:
        bad_value = value if isinstance(value, str) else len(value)
        return invalid(path, bad_value, f"{path} in body should {what.format(limit)}") if len(value) < limit else None

    return rule


def _check_maximum_items(value: JSON, limit: JSON, path: str, _schema: JSONObject) -> FieldError | None:
    text = f"{len(value)}: must have at most {limit} items"
    return FieldError(Kind.TOO_MANY, path, detail=text) if len(value) > limit else None


def _check_maximum_length(value: JSON, limit: JSON, path: str, _schema: JSONObject) -> FieldError | None:
    text = f"may not be more than {limit} bytes"
    return FieldError(Kind.TOO_LONG, path, detail=text) if len(value) > limit else None


LIMITS: dict[str, Rule] = {
    "minimum": _bound_rule("greater", 1, "exclusiveMinimum"),
    "maximum": _bound_rule("less", -1, "exclusiveMaximum"),
    "multipleOf": _check_multiple,
    "minLength": _minimum_rule("be at least {} chars long"),
    "maxLength": _check_maximum_length,
    "minItems": _minimum_rule("have at least {} items"),
    "maxItems": _check_maximum_items,
    "minProperties": _minimum_rule("have at least {} properties"),
    "maxProperties": _check_maximum_items,
}


def _limit_check(rule: Rule, limit: JSON, schema: JSONObject) -> Check:
    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        if (error := rule(value, limit, path, schema)) is not None:
            errors.append(error)

    return check


def _combination_checks(schema: JSONObject, compiler: Compiler) -> Iterator[Check]:
    if schema.get("allOf"):
        yield _all_of_check([compiler(child) for child in schema["allOf"]])
    if schema.get("anyOf") and not schema.get("x-kubernetes-int-or-string"):
        yield _some_of_check([compiler(child) for child in schema["anyOf"]], "anyOf")
    if schema.get("oneOf"):
        yield _some_of_check([compiler(child) for child in schema["oneOf"]], "oneOf")
    if "not" in schema:
        yield _not_check(compiler(schema["not"]))


def _all_of_check(nodes: list[Checker]) -> Check:
    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        for node in nodes:
            node.check(value, path, errors)

    return check


def _some_of_check(nodes: list[Checker], keyword: str) -> Check:
    words = "one and only one schema" if keyword == "oneOf" else "at least one schema"

    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        fitting = sum(_fits(node, value, path) for node in nodes)
        if fitting == 0 or (keyword == "oneOf" and fitting > 1):
            errors.append(invalid(path, value, f"{render(path)} must validate {words} ({keyword})"))

    return check


def _not_check(node: Checker) -> Check:
    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        if _fits(node, value, path):
            errors.append(invalid(path, value, f"{render(path)} must not validate the schema (not)"))

    return check


def _fits(node: Checker, value: JSON, path: str) -> bool:
    errors: list[FieldError] = []
    node.check(value, path, errors)
    return not errors
