"""The base of the structs of the API."""

from typing import Annotated, TypeAlias

import msgspec

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Base(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The base of all structs of the API: camel-case names in JSON, defaults omitted."""
