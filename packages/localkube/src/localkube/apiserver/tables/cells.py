"""Defines columns of `kubectl get`, each with a heading and a function that returns the value for an object."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeAlias

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model.kind import Column
from localkube.apiserver.tables import table
from localkube.apiserver.tables.table import NONE

Cell: TypeAlias = Callable[[JSONObject, datetime], object]


def column(name: str, cell: Cell, *, kind: str = "string", wide: bool = False) -> tuple[Column, Cell]:
    """Return a column with its cell. `wide` columns are shown with `-o wide`."""
    return Column(name, kind, f"{name} of the object.", priority=int(wide)), cell


def path_cell(path: str, default: object = NONE) -> Cell:
    """Return a cell with the value at a dotted path."""
    names = path.split(".")

    def cell(obj: JSONObject, _now: datetime) -> object:
        value = meta.at(obj, names)
        return default if value in (None, "") else value

    return cell


def count_cell(*fields: str) -> Cell:
    """Return a cell with the total number of entries of the fields."""
    return lambda obj, _: sum(len(obj.get(field) or ()) for field in fields)


def join_items(items: Iterable[object], empty: str = NONE) -> str:
    """Join the items with commas, or return `empty` if there are none."""
    return ",".join(map(str, items)) or empty


NAME: tuple[Column, Cell] = (table.NAME, lambda obj, _: meta.name(obj))
AGE: tuple[Column, Cell] = (table.AGE, lambda obj, now: table.age(obj["metadata"].get("creationTimestamp"), now))
