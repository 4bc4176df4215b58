"""What the structs of the API have in common."""

from typing import Annotated, TypeAlias

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Base(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The base of all structs of the API: camel-case names in JSON, defaults omitted."""


class Identified(Base, frozen=True, kw_only=True):
    """An object of the API. `metadata` stays a JSON object; the properties read it."""

    metadata: JSONObject | None = None

    @property
    def _own(self) -> JSONObject:
        return {"metadata": self.metadata}

    @property
    def name(self) -> str:
        """Return `metadata.name`."""
        return meta.name(self._own)

    @property
    def namespace(self) -> str:
        """Return `metadata.namespace`."""
        return meta.namespace(self._own)

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        return meta.key(self._own)

    @property
    def uid(self) -> UID:
        """Return `metadata.uid`."""
        return meta.uid(self._own)

    @property
    def generation(self) -> int:
        """Return `metadata.generation`, 0 where absent."""
        return meta.generation(self._own)

    @property
    def labels(self) -> dict[str, str]:
        """Return `metadata.labels`."""
        return meta.labels(self._own)

    @property
    def annotations(self) -> dict[str, str]:
        """Return `metadata.annotations`."""
        return meta.annotations(self._own)

    @property
    def is_deleting(self) -> bool:
        """Return whether the object carries a deletion timestamp."""
        return meta.is_deleting(self._own)
