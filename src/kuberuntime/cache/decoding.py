"""Decodes watch lines and list pages object by object, so that memory holds only the kept fields of each.

In: bytes of a response, and a function that reduces a decoded object. Out: inputs of the watch (`watch.py`). A page is
decoded item by item: 500 whole pods take twenty times the memory of their kept fields, and a process hardly returns
such memory to the system.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from kuberuntime.cache import watch
from kuberuntime.client.client import Page
from kuberuntime.client.transport import Response
from kuberuntime.errors import EXCERPT, ConnectionFailedError, from_response
from kuberuntime.objects.meta import JSONObject, ResourceVersion
from kuberuntime.objects.resources import Resource

Reduce: TypeAlias = Callable[[JSONObject], JSONObject]
"""Returns the kept fields of an object."""

OBJECTS: Final = {"ADDED", "MODIFIED", "DELETED"}
"""The types of events that carry an object of the kind that is watched."""


class _Line(msgspec.Struct):
    """One line of a watch stream."""

    type: str
    object: JSONObject


class _ListMeta(msgspec.Struct):
    """The metadata of a list."""

    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)
    token: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct):
    """One page of a list; the items are decoded one at a time."""

    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_list = msgspec.json.Decoder(_List).decode
_decode_object = msgspec.json.Decoder(JSONObject).decode


class Decoder:
    """Decodes the list pages and watch lines of one resource."""

    def __init__(self, resource: Resource, reduce: Reduce) -> None:
        self._identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._reduce = reduce

    def event(self, line: bytes) -> watch.StreamEvent:
        """Decode one line of a watch stream."""
        try:
            decoded = _decode_line(line)
        except msgspec.DecodeError as error:
            raise ConnectionFailedError(
                f"the watch sent a line that is not an event: {line[:EXCERPT]!r}: {error}"
            ) from error
        is_object = decoded.type in OBJECTS
        return watch.StreamEvent(decoded.type, self._reduce(decoded.object) if is_object else decoded.object)

    def page(self, response: Response) -> Page:
        """Decode one page of a list. Items of a list lack kind and apiVersion; this adds them."""
        try:
            decoded = _decode_list(response.body)
            items = [self._reduce(self._identity | _decode_object(item)) for item in decoded.items or ()]
        except msgspec.DecodeError as error:
            raise from_response(response.status, response.body) from error
        head = decoded.metadata or _ListMeta()
        return Page(items, ResourceVersion(head.resource_version or ""), head.token or "")
