"""Small errors put into a module's source, one at a time: what `make mutate` tries the tests with.

In: source text. Out: mutants, each the whole source with one change and a word about it. Docstrings, annotations and
the texts of errors and events stay: what they say is proved elsewhere or by reading.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
EXCHANGED_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one error."""

    line: int
    change: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module's source.

    >>> [one.change for one in mutants("def f(a):\\n    return a < 1\\n")]
    ['a < 1 -> a <= 1', '1 -> 2']
    """
    tree = ast.parse(source)
    for place, node in enumerate(ast.walk(tree)):
        for variant in range(len(list(_replacements(node)))):
            changed = copy.deepcopy(tree)
            target = next(one for position, one in enumerate(ast.walk(changed)) if position == place)
            replacement = list(_replacements(target))[variant]
            if _is_text(tree, node):
                continue
            _Exchange(target, replacement).visit(changed)
            change = f"{ast.unparse(node)} -> {ast.unparse(replacement)}"
            yield Mutant(getattr(node, "lineno", 0), change, ast.unparse(ast.fix_missing_locations(changed)))


def _replacements(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=others):
            yield ast.Compare(left, [COMPARISONS[type(op)]()], others)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str() as value):
            yield ast.Constant(f"{value}~")
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in EXCHANGED_CALLS:
            yield ast.Call(ast.Name(EXCHANGED_CALLS[name], ast.Load()), args, keywords)


def _is_text(tree: ast.AST, node: ast.AST) -> bool:
    """Return whether the node is a docstring, in an annotation, or in the text of an error."""
    return id(node) in {id(child) for top in _texts(tree) for child in ast.walk(top)}


def _texts(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.JoinedStr():
                yield node
            case ast.Raise(exc=ast.Call(args=args)):
                yield from args
            case ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.arg(annotation=ast.expr() as annotation):
                yield annotation
            case ast.FunctionDef(returns=returns, decorator_list=decorators):
                yield from decorators
                if returns is not None:
                    yield returns
            case ast.ClassDef(decorator_list=decorators):
                yield from decorators


class _Exchange(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, target: ast.AST, replacement: ast.expr) -> None:
        self._target = target
        self._replacement = replacement

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if node is self._target:
            return self._replacement
        return super().generic_visit(node)
