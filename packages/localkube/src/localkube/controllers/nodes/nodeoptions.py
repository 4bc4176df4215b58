"""Parses the labels, taints and capacity of simulated nodes.

In: the values of `--node-label`, `--node-taint` and `--node-capacity`. Labels and taint values may contain the number
of the node, as in `rack=r{i//2}`: braces contain integer arithmetic on `i`. Python's parser parses the expression,
whose tree is evaluated for each node. Out: values for `nodes.NodeSettings`, or a `ValueError` that names the invalid
value and the valid form.
"""

import ast
import re
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from kuberuntime.objects import names, quantity
from kuberuntime.objects.meta import JSONObject

OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
}
FORM: Final = "Use integer arithmetic with i, such as {i}, {i//2} or {i%4+1}"
LONGEST_EXPRESSION: Final = 100
PIECES = re.compile(r"\{([^{}]*)\}")


class LabelTemplate(Struct, frozen=True):
    """A label whose value depends on the number of the node."""

    key: str
    text: str

    def value(self, index: int) -> str:
        """Return the value for node number `index`.

        >>> parse_label("rack=r{i//2}").value(3)
        'r1'
        """
        word = f"{self.key}={self.text}"
        value = PIECES.sub(lambda piece: str(_evaluate(_parse(piece[1], word), index, word)), self.text)
        for failure in names.label_value(value):
            raise ValueError(f"Invalid value: {self.key}={value!r} for node {index}: {failure}")
        return value


def parse_label(text: str) -> LabelTemplate:
    """Parse `key=template`. Errors in the template are raised by this call, not when nodes are created."""
    key, separator, template = text.partition("=")
    errors = [*names.qualified_name(key)] if separator else ["must have the form KEY=VALUE"]
    rest = PIECES.sub("", template)
    if "{" in rest or "}" in rest:
        errors.append(f"a brace is not opened or not closed. {FORM}")
    if errors:
        raise ValueError(f"Invalid value: {text!r}: {errors[0]}")
    label = LabelTemplate(key, template)
    label.value(0)
    return label


def _parse(expression: str, text: str) -> ast.expr:
    if len(expression) > LONGEST_EXPRESSION:
        raise _invalid_template_error(text, f"an expression has more than {LONGEST_EXPRESSION} characters")
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise _invalid_template_error(text, f"{{{expression}}} is not an expression. {FORM}") from error


def _evaluate(node: ast.expr, index: int, text: str) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id="i"):
            return index
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, index, text)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            values = _evaluate(left, index, text), _evaluate(right, index, text)
            if values[1] == 0 and isinstance(operator, ast.FloorDiv | ast.Mod):
                raise _invalid_template_error(text, f"division by zero for node {index}")
            return OPERATORS[type(operator)](*values)
    raise _invalid_template_error(text, f"{ast.unparse(node)!r} is not allowed. {FORM}")


def _invalid_template_error(text: str, detail: str) -> ValueError:
    return ValueError(f"Invalid value: {text!r}: {detail}")


EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

CAPACITY: Final = {"cpu": "1k", "memory": "4Ti", "ephemeral-storage": "100Ti", "pods": "10k"}
"""The default capacity of a node. The names of other resources contain a domain."""


class TaintTemplate(Struct, frozen=True):
    """A taint whose value can depend on the number of the node."""

    label: LabelTemplate
    effect: str

    def taint(self, index: int) -> JSONObject:
        """Return the taint of node number `index`."""
        value = self.label.value(index)
        return {"key": self.label.key, "effect": self.effect} | ({"value": value} if value else {})


def parse_taint(text: str) -> TaintTemplate:
    """Parse `key=value:Effect` or `key:Effect`, as in kubectl. The value can be a template.

    >>> parse_taint("pool=p{i//2}:NoSchedule").taint(3)
    {'key': 'pool', 'effect': 'NoSchedule', 'value': 'p1'}
    """
    head, separator, effect = text.rpartition(":")
    if not separator or effect not in EFFECTS:
        form = f"must have the form KEY=VALUE:EFFECT with an effect of {', '.join(EFFECTS)}"
        raise ValueError(f"Invalid value: {text!r}: {form}")
    return TaintTemplate(parse_label(head if "=" in head else f"{head}="), effect)


def parse_capacity(words: Iterable[str]) -> dict[str, str]:
    """Parse `resource=amount` items, which can be separated by commas.

    >>> parse_capacity(["cpu=8,memory=32Gi", "google.com/tpu=4"])
    {'cpu': '8', 'memory': '32Gi', 'google.com/tpu': '4'}
    """
    capacity: dict[str, str] = {}
    for text in words:
        for part in text.split(","):
            name, separator, amount = part.partition("=")
            failure = _problem(name, amount) if separator else "must have the form RESOURCE=AMOUNT[,RESOURCE=AMOUNT…]"
            if failure or name in capacity:
                raise ValueError(f"Invalid value: {text!r}: {failure or f'{name} is specified two times'}")
            capacity[name] = amount
    return capacity


def _problem(name: str, amount: str) -> str:
    """Return the error in the capacity of a resource, or an empty string if it is valid."""
    for failure in names.qualified_name(name):
        return f"{name!r} is not a resource name: {failure}"
    if not ("/" in name or name in CAPACITY or name.startswith("hugepages-")):
        return f"unknown resource {name!r}: must be {', '.join(CAPACITY)}, hugepages-…, or a name with a domain"
    try:
        value = quantity.parse(amount)
    except quantity.QuantityError as error:
        return f"{name}: {error}"
    if value < quantity.ZERO:
        return f"{name}: must be greater than or equal to 0"
    if value.fraction().denominator != 1 and ("/" in name or name == "pods"):
        return f"{name}: must be a whole number"
    return ""
