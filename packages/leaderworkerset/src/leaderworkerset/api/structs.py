"""Defines the base class of API structs."""

from typing import Annotated, TypeAlias

import msgspec

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Base(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The base class of all API structs. JSON field names are in camel case, and defaults are omitted."""
