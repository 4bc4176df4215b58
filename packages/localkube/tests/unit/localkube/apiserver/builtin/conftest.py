"""Provides kinds by plural name, with minimal valid objects."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from kuberuntime.objects.field import FieldError
from localkube.apiserver import builtin
from localkube.apiserver.model.kind import Kind


@cache
def _kinds() -> dict[str, Kind]:
    return {kind.resource.group_resource: kind for kind in builtin.kinds()}


@pytest.fixture(name="kinds")
def _kinds_fixture() -> dict[str, Kind]:
    return _kinds()


class Api:
    """A kind with the API verbs."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return the object as it is stored."""
        metadata = {"name": "web-0", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if self.kind.resource.namespaced:
            metadata["namespace"] = "default"
        resource = self.kind.resource
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        return self.kind.prepare("create", {**identity, **obj, "metadata": metadata | obj.get("metadata", {})}, None)

    def errors(self, obj: dict[str, Any]) -> list[str]:
        """Return the validation errors of a new object."""
        return texts(self.kind.validate("create", self.create(obj), None))

    def update(self, old: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
        """Return the stored object after an update of top-level fields."""
        return self.kind.prepare("update", old | change, old)

    def update_faults(self, old: dict[str, Any], change: dict[str, Any]) -> list[str]:
        """Return the validation errors of an update."""
        return texts(self.kind.validate("update", self.update(old, change), old))


def texts(errors: "list[FieldError] | Any") -> list[str]:
    """Return the errors as strings."""
    return [str(error) for error in errors]


@pytest.fixture(name="api")
def _api(kinds: dict[str, Kind]) -> Callable[[str], Api]:
    return lambda plural: Api(kinds[plural])
