"""Labels and taints of simulated nodes, computed from the node's number: `rack=r{i//2}`.

Braces contain integer arithmetic on `i` (0 for the first node): `+ - * // %`, parentheses, whole numbers. Python's
parser reads it, and its tree is evaluated node by node; anything else is refused.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects import names

OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
}
FORM: Final = "want integer arithmetic on i, like {i}, {i//2} or {i%4+1}"
LONGEST: Final = 100
PIECES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class LabelTemplate:
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
    """Read `key=template`; raise errors in the template here, not when nodes are created."""
    key, separator, template = text.partition("=")
    errors = names.qualified_name(key) if separator else ["must have the form KEY=VALUE"]
    rest = PIECES.sub("", template)
    if "{" in rest or "}" in rest:
        errors.append(f"a brace is not closed, or closes nothing; {FORM}")
    if errors:
        raise ValueError(f"Invalid value: {text!r}: {errors[0]}")
    parsed = LabelTemplate(key, template)
    parsed.value(0)
    return parsed


def _parse(expression: str, text: str) -> ast.expr:
    if len(expression) > LONGEST:
        raise _invalid(text, f"an expression has more than {LONGEST} characters")
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise _invalid(text, f"{{{expression}}} is not an expression; {FORM}") from error


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
                raise _invalid(text, f"division by zero for node {index}")
            return OPERATORS[type(operator)](*values)
    raise _invalid(text, f"{ast.unparse(node)!r} is not allowed; {FORM}")


def _invalid(text: str, detail: str) -> ValueError:
    return ValueError(f"Invalid value: {text!r}: {detail}")
