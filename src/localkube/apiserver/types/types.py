"""The Go types of the built-in kinds as data: type name to JSON fields to Go's notation of the field's type.

`api/gotypes.json` describes what is reachable from a pod template or a volume claim, `gotypes.json` beside this file
the rest. Both use one notation: `*int32,omitempty`, `[]Container`, `map[string]quantity`. Scalars beyond Go's own are
`quantity`, `time`, `microtime`, `bytes` (base64), `int-or-string`, and `raw` for JSON that is kept as it is.
"""

import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import msgspec

from kuberuntime.objects import gotypes

Shape: TypeAlias = Literal["scalar", "struct", "list", "map"]

SCALARS = {
    "string", "bool", "int32", "int64", "int-or-string", "quantity", "time", "microtime", "bytes", "raw",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GoField:
    """One field: the type without its marks, and how absence and emptiness look on the wire."""

    type: str
    pointer: bool
    omit_empty: bool
    omit_zero: bool

    @property
    def shape(self) -> Shape:
        """Return what sort of value the field holds."""
        return shape_of(self.type)


def shape_of(go_type: str) -> Shape:
    """Return what sort of value a type has.

    >>> shape_of("[]Container"), shape_of("map[string]string"), shape_of("int32"), shape_of("PodSpec")
    ('list', 'map', 'scalar', 'struct')
    """
    if go_type.startswith("[]"):
        return "list"
    if go_type.startswith("map["):
        return "map"
    return "scalar" if go_type in SCALARS else "struct"


def element_of(go_type: str) -> str:
    """Return the type of the items of a list or the values of a map."""
    return go_type.removeprefix("[]").removeprefix("map[string]")


@cache
def fields(struct: str) -> dict[str, GoField]:
    """Return the fields of a struct in the order of their declaration."""
    own = _own_types().get(struct)
    if own is not None:
        return {name: _field(*notation.split(",")) for name, notation in own.items()}
    return {
        name: GoField(shared.go_type, shared.pointer, "omitempty" in shared.options, "omitzero" in shared.options)
        for name, shared in gotypes.declarations(struct).items()
    }


def _field(go_type: str, *options: str) -> GoField:
    return GoField(go_type.removeprefix("*"), go_type.startswith("*"), "omitempty" in options, "omitzero" in options)


@cache
def _own_types() -> dict[str, dict[str, str]]:
    data = pkgutil.get_data(__package__, "gotypes.json")
    if data is None:
        raise FileNotFoundError(f"{__package__}/gotypes.json is missing from the installation")
    return msgspec.json.decode(data, type=dict[str, dict[str, str]])
