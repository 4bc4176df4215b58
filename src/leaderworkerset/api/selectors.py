"""Label selectors as values: reading `LabelSelector` and node selector terms, and asking whether labels match.

A `Selector` is a tuple of requirements that must all hold; it is hashable, so that indexes can be kept by selector.
An absent label satisfies `NotIn` and `DoesNotExist`, and no other operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from leaderworkerset.api.meta import JSONObject


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label: `In, NotIn, Exists, DoesNotExist`, and for nodes `Gt, Lt`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels satisfy the requirement; an unknown operator is never satisfied."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _compare(self.operator, value, self.values)
        return False


Selector: TypeAlias = tuple[Requirement, ...]
"""Requirements that must all hold; the empty selector matches everything."""


def parse(selector: JSONObject | None) -> Selector | None:
    """Read a `LabelSelector`; absent or null selects nothing and is None, `{}` selects everything.

    >>> parse({"matchLabels": {"app": "web"}})
    (Requirement(key='app', operator='In', values=('web',)),)
    """
    if selector is None:
        return None
    equalities = tuple(Requirement(key, "In", (value,)) for key, value in sorted(matched_labels(selector).items()))
    return equalities + parse_expressions(selector.get("matchExpressions"))


def parse_expressions(expressions: Sequence[JSONObject] | None) -> Selector:
    """Read `matchExpressions`, of a label selector or of a node selector term."""
    return tuple(
        Requirement(entry["key"], entry["operator"], tuple(entry.get("values") or ())) for entry in expressions or ()
    )


def matched_labels(selector: JSONObject) -> dict[str, str]:
    """Return `matchLabels`, empty where absent."""
    return selector.get("matchLabels") or {}


def matches(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Tell whether the labels satisfy every requirement; None matches nothing."""
    return selector is not None and all(requirement.holds(labels) for requirement in selector)


def _compare(operator: str, value: str | None, values: tuple[str, ...]) -> bool:
    bounds: list[Any] = [*values, value]
    if len(bounds) != 2 or not all(isinstance(bound, str) and bound.lstrip("-").isdecimal() for bound in bounds):
        return False
    bound, actual = int(bounds[0]), int(bounds[1])
    return actual > bound if operator == "Gt" else actual < bound
