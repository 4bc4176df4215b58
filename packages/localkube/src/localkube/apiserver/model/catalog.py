"""Registers the served kinds by group, version and plural: built-in kinds, and custom resources with a CRD."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model.kind import Kind
from localkube.apiserver.storage.store import StoreKey


class ServedKind(Struct, frozen=True):
    """A kind, and how its objects are stored. `is_custom` kinds come from a CustomResourceDefinition."""

    kind: Kind
    is_custom: bool = False

    @property
    def resource(self) -> Resource:
        """Return the kind's resource."""
        return self.kind.resource

    @property
    def stored_as(self) -> str:
        """Return the resource part of store keys."""
        return (self.kind.alias.resource if self.kind.alias else self.kind.resource).group_resource

    def key(self, namespace: str, name: str) -> StoreKey:
        """Return the key under which an object of this kind is stored."""
        return StoreKey(self.stored_as, namespace if self.resource.namespaced else "", name)

    def from_store(self, stored: JSONObject) -> JSONObject:
        """Convert a stored object to this kind."""
        return self.kind.alias.from_stored(stored) if self.kind.alias else stored

    def to_store(self, obj: JSONObject) -> JSONObject:
        """Return the stored form of an object. Its identity is first, because `list.py` relies on this order."""
        stored = self.kind.alias.to_stored(obj) if self.kind.alias else obj
        return {"apiVersion": stored["apiVersion"], "kind": stored["kind"], **stored}


class Registry:
    """The kinds that are currently served."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._served = {_address(kind): ServedKind(kind) for kind in kinds}

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(tuple(self._served.values()))

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind with this group, version and plural."""
        return self._served.get((group, version, plural))

    def add(self, kind: Kind) -> None:
        """Serve a custom resource. It replaces an earlier kind with the same group, version and plural."""
        self._served[_address(kind)] = ServedKind(kind, is_custom=True)

    def remove(self, resource: Resource) -> None:
        """Stop serving a custom resource."""
        self._served.pop((resource.group, resource.version, resource.plural), None)


def _address(kind: Kind) -> tuple[str, str, str]:
    return kind.resource.group, kind.resource.version, kind.resource.plural
