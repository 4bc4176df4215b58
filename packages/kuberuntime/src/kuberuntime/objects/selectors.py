"""Parses, matches and formats label selectors and field selectors.

The string form (`app=web,tier in (a,b),!old`) is used in queries, and the object form (`matchLabels`,
`matchExpressions`) in specs. A selector without requirements matches everything. A null object form matches nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kuberuntime.objects import decimals, meta, names
from kuberuntime.objects.meta import JSON, JSONObject


class SelectorError(ValueError):
    """The string or object is not a valid selector. The message contains the location of the error."""


class Operator(StrEnum):
    """A label selector operator. `GT` and `LT` compare integers."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


LABEL_OPERATORS = frozenset({Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST})


class Requirement(Struct, frozen=True):
    """One requirement for one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels match the requirement. `NotIn` also matches a missing label."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case _:
                number, bound = decimals.integer(value or ""), decimals.integer(self.values[0])
                if number is None or bound is None:
                    return False
                return number > bound if self.operator is Operator.GT else number < bound

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        return {
            Operator.IN: f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})",
            Operator.NOT_IN: f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})",
            Operator.EXISTS: self.key,
            Operator.DOES_NOT_EXIST: f"!{self.key}",
            Operator.GT: f"{self.key}>{values}",
            Operator.LT: f"{self.key}<{values}",
        }[self.operator]


class LabelSelector(Struct, frozen=True):
    """The requirements that must all be met. With `matches_nothing`, the selector does not match any labels."""

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet all requirements."""
        return not self.matches_nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(matches_nothing=True)


def format_labels(labels: Mapping[str, str]) -> str:
    """Format a selector that requires these labels, in the order of their keys.

    >>> format_labels({"b": "2", "a": "1"})
    'a=1,b=2'
    """
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


_KEY = r"(?P<{0}>[^\s,=!<>()]+)"
_TERM = re.compile(
    r"\s*(?:"
    rf"!\s*{_KEY.format('absent')}"
    rf"|{_KEY.format('set')}\s+(?P<set_operator>in|notin)\s*\((?P<set_values>[^()]*)\)"
    rf"|{_KEY.format('single')}\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,=!<>()]*)"
    rf"|{_KEY.format('present')}"
    r")\s*(?:,|$)"
)


def parse_labels(text: str) -> LabelSelector:
    """Parse the string form. An empty string selects all objects.

    >>> parse_labels("app=web, tier notin (a, b)").matches({"app": "web"})
    True
    """
    requirements = []
    position = 0
    text = text.partition("\0")[0]  # Go's parser stops at a null character
    end = len(text.rstrip())
    while position < end:
        match = _TERM.match(text, position)
        if match is None:
            raise SelectorError(
                f"unable to parse label selector {text!r} at {text[position:].strip()!r}: expected requirements such "
                "as a=b, a!=b, a in (b,c), !a or a>1, separated by commas"
            )
        requirements.append(_requirement(*_read_term(match)))
        position = match.end()
    if text.rstrip().endswith(","):
        raise SelectorError(f"unable to parse label selector {text!r}: a requirement is missing after the last comma")
    return LabelSelector(tuple(requirements))


_SINGLE_OPERATORS = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN, ">": Operator.GT, "<": Operator.LT}
_SET_OPERATORS = {"in": Operator.IN, "notin": Operator.NOT_IN}


def _read_term(match: re.Match[str]) -> tuple[str, Operator, tuple[str, ...]]:
    if match["absent"]:
        return match["absent"], Operator.DOES_NOT_EXIST, ()
    if match["present"]:
        return match["present"], Operator.EXISTS, ()
    if match["single"]:
        return match["single"], _SINGLE_OPERATORS[match["operator"]], (match["value"],)
    values = tuple(value.strip() for value in match["set_values"].split(","))
    return match["set"], _SET_OPERATORS[match["set_operator"]], values


def from_object(selector: JSONObject | None) -> LabelSelector:
    """Parse the object form of a label selector. Null does not select any object. `{}` selects all objects."""
    if selector is None:
        return NOTHING
    equal = [_requirement(key, Operator.IN, (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    expressions = selector.get("matchExpressions") or []
    return LabelSelector((*equal, *(parse_expression(item, LABEL_OPERATORS) for item in expressions)))


def parse_expression(expression: JSONObject, operators: Iterable[Operator] = Operator) -> Requirement:
    """Parse `{key, operator, values}`. Label selectors support only the first four operators."""
    key, operator, values = (expression.get(name) for name in ("key", "operator", "values"))
    allowed = sorted(operators)
    if operator not in allowed:
        raise SelectorError(f"operator {operator!r} of label {key!r} must be one of {', '.join(allowed)}")
    return _requirement(str(key), Operator(operator), tuple(values or ()))


def _requirement(key: str, operator: Operator, values: tuple[str, ...]) -> Requirement:
    errors = [*names.qualified_name(key)]
    match operator:
        case Operator.IN | Operator.NOT_IN:
            errors += [] if values else [f"operator {operator} requires at least one value"]
            errors += [f"value {value!r}: {error}" for value in values for error in _value_errors(value)]
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            errors += [f"operator {operator} does not support values"] if values else []
        case _:
            errors += (
                [] if len(values) == 1 and _is_integer(values[0]) else [f"operator {operator} requires one integer"]
            )
    if errors:
        raise SelectorError(f"label {key!r}: {'; '.join(errors)}")
    return Requirement(key, operator, values)


def _value_errors(value: JSON) -> Sequence[str]:
    return names.label_value(value) if isinstance(value, str) else ["must be a string"]


def _is_integer(value: JSON) -> bool:
    return isinstance(value, str) and decimals.integer(value) is not None


class FieldTerm(Struct, frozen=True):
    """One requirement for one field, which must or must not equal `value`."""

    path: str
    is_equality: bool
    value: str

    def matches(self, text: str) -> bool:
        """Return whether the field value meets the requirement. A missing field is equivalent to an empty string."""
        return (text == self.value) is self.is_equality


_ESCAPED = re.compile(r"\\(.)")
_FIELD_TERM = re.compile(r"(?P<path>[^=!,\\]+)(?P<operator>==|=|!=)(?P<value>(?:\\[\\,=]|[^\\,=])*)(?:,|$)")


def parse_fields(text: str) -> tuple[FieldTerm, ...]:
    r"""Parse `a=b,c!=d` with the escapes `\\`, `\,` and `\=` in values. An empty string selects all objects.

    >>> parse_fields("status.phase!=Running")
    (FieldTerm(path='status.phase', is_equality=False, value='Running'),)
    """
    terms = []
    position = 0
    while position < len(text):
        match = _FIELD_TERM.match(text, position)
        if match is None:
            raise SelectorError(
                f"unable to parse field selector {text!r} at {text[position:]!r}: "
                "expected requirements such as metadata.name=a or status.phase!=Running, separated by commas"
            )
        terms.append(FieldTerm(match["path"], match["operator"] != "!=", _ESCAPED.sub(r"\1", match["value"])))
        position = match.end()
    return tuple(terms)


def selects(service: JSONObject, pod: JSONObject) -> bool:
    """Return whether a Service selects a pod. A Service without a selector does not select any pods."""
    selector: Mapping[str, str] = meta.spec(service).get("selector") or {}
    return bool(selector) and selector.items() <= meta.labels(pod).items()


def field_text(obj: JSONObject, path: str) -> str:
    """Return the field value at a dotted path, or an empty string if the field does not exist.

    >>> field_text({"spec": {"unschedulable": True}}, "spec.unschedulable")
    'true'
    """
    value = meta.at(obj, path.split("."))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
