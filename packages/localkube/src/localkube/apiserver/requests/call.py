"""Parses the resource, the object and the options of a request from its method, path and query.

In: a `Request`. Out: a `Call` on a served resource, or an error. Verbs receive calls.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from kuberuntime.client.transport import Request
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import Registry, ServedKind
from localkube.apiserver.storage.store import StoreKey

INT64: Final = 2**63
WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
"""The pattern of an integer. Its length is limited, because Python does not convert thousands of digits."""

NAMESPACED_ITSELF: Final = {"status", "finalize"}
"""Subresources of a namespace. Any other name after `namespaces/<name>/` is a resource in the namespace."""


class Call(Struct, frozen=True, kw_only=True):
    """A request for a collection (if `name` is empty), an object, or its subresource.

    `query` contains the first value of each option, and `query_pairs` contains all values.
    """

    method: str
    served: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str]
    query_pairs: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str]
    body: bytes = b""
    user: str

    @property
    def key(self) -> StoreKey:
        """Return the key under which the object is stored."""
        return self.served.key(self.namespace, self.name)

    def flag(self, option: str) -> bool:
        """Return whether a boolean option is true, in any notation of Go clients and kubectl."""
        return self.query.get(option, "false").lower() not in {"false", "0", "f"}

    def values(self, option: str) -> tuple[str, ...]:
        """Return all values of a repeatable option."""
        return tuple(value for name, value in self.query_pairs if name == option)

    def number(self, option: str) -> int | None:
        """Return an integer from the query, or None if it is absent."""
        text = self.query.get(option, "")
        if not text:
            return None
        if not WHOLE.fullmatch(text) or not -INT64 <= int(text) < INT64:
            raise apierrors.bad_request(f'{option}: Invalid value: "{text}": must be a whole number of 64 bits')
        return int(text)


def parse(registry: Registry, request: Request, user: str) -> Call:
    """Parse a request whose path starts with /api/v1 or /apis/<group>/<version>."""
    group, version, rest = _split_path(request.path)
    namespace, parts = _namespace(rest)
    if not parts or len(parts) > 3 or not all(parts):
        raise apierrors.unknown_resource()
    served = registry.find(group, version, parts[0])
    if served is None or bool(namespace) > served.resource.namespaced:
        raise apierrors.unknown_resource()
    name = parts[1] if len(parts) > 1 else ""
    if served.resource.namespaced and name and not namespace:
        raise apierrors.unknown_resource()
    return Call(
        method=request.method,
        served=served,
        namespace=namespace,
        name=name,
        subresource=parts[2] if len(parts) > 2 else "",
        query=dict(reversed(request.query)),
        query_pairs=request.query,
        headers=request.headers,
        body=request.body,
        user=user,
    )


def _split_path(path: str) -> tuple[str, str, list[str]]:
    """Return the group, the version, and the rest of a path.

    >>> _split_path("/apis/apps/v1/statefulsets/web")
    ('apps', 'v1', ['statefulsets', 'web'])
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api":
        return "", parts[1], parts[2:]
    return parts[1], parts[2], parts[3:]


def _namespace(parts: list[str]) -> tuple[str, list[str]]:
    """Remove a leading `namespaces/<name>/` that scopes a resource. Return the namespace and the rest."""
    if len(parts) > 2 and parts[0] == "namespaces" and not (len(parts) == 3 and parts[2] in NAMESPACED_ITSELF):
        return parts[1], parts[2:]
    return "", parts
