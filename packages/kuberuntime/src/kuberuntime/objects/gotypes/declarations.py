"""Represents Go struct types as data, with the JSON fields of each type and their Go types.

The notation is Go's with the options of the JSON tag: `*int32,omitempty`, `[]Container`, `map[string]quantity`. Scalars
beyond Go's own are `quantity`, `time`, `microtime`, `bytes` (base64), `int-or-string`, and `raw` for unchanged JSON.
`KUBERNETES` contains the types of pod templates, volume claims and metadata. Other packages declare additional types
based on it.
"""

from functools import cached_property
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

Shape: TypeAlias = Literal["scalar", "struct", "list", "map"]

SCALARS: Final = frozenset(
    {"string", "bool", "int32", "int64", "int-or-string", "quantity", "time", "microtime", "bytes", "raw"}
)


class GoField(msgspec.Struct, frozen=True):
    """A field with its type (without the pointer mark), and the handling of absent and empty values."""

    type: str
    pointer: bool
    omit_empty: bool
    omit_zero: bool

    @property
    def shape(self) -> Shape:
        """Return the shape of the field's values."""
        return type_shape(self.type)


def type_shape(go_type: str) -> Shape:
    """Return the shape of a type's values.

    >>> type_shape("[]Container"), type_shape("map[string]string"), type_shape("int32"), type_shape("PodSpec")
    ('list', 'map', 'scalar', 'struct')
    """
    if go_type.startswith("[]"):
        return "list"
    if go_type.startswith("map["):
        return "map"
    return "scalar" if go_type in SCALARS else "struct"


def element_type(go_type: str) -> str:
    """Return the item type of a list or the value type of a map."""
    return go_type.removeprefix("[]").removeprefix("map[string]")


class GoTypes:
    """A table of struct types, which is read from a file when it is first used.

    Missing types are looked up in `base`.
    """

    def __init__(self, file: Path, base: "GoTypes | None" = None) -> None:
        self._file = file
        self._base = base
        self._fields: dict[str, dict[str, GoField]] = {}

    @cached_property
    def own_types(self) -> dict[str, dict[str, str]]:
        """Return the table in the file, without the base table."""
        return msgspec.json.decode(self._file.read_bytes(), type=dict[str, dict[str, str]])

    def owner(self, struct: str) -> "GoTypes":
        """Return the table that declares a struct, which is this table or a base table."""
        if struct in self.own_types:
            return self
        if self._base is None:
            raise KeyError(f"no Go type {struct!r} is recorded in {self._file.name}")
        return self._base.owner(struct)

    def fields(self, struct: str) -> dict[str, GoField]:
        """Return the fields of a struct in declaration order.

        >>> KUBERNETES.fields("EmptyDirVolumeSource")["sizeLimit"].type
        'quantity'
        """
        fields = self._fields.get(struct)
        if fields is None:
            declared = self.owner(struct).own_types[struct]
            fields = {name: _field(*notation.split(",")) for name, notation in declared.items()}
            self._fields[struct] = fields
        return fields


def _field(go_type: str, *options: str) -> GoField:
    return GoField(go_type.removeprefix("*"), go_type.startswith("*"), "omitempty" in options, "omitzero" in options)


KUBERNETES: Final = GoTypes(Path(__file__).with_name("kubernetes.json"))
"""The types of pod templates, volume claims, conditions and metadata."""
