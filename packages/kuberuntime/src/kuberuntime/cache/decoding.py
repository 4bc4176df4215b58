"""Decodes watch lines and list pages one object at a time, and stores only the required fields.

Input: bytes of a response, and the functions that decode one object and reduce it. Output: inputs of the watch
(`watch.py`). A page is decoded item by item, because 500 whole pods need twenty times the memory of their kept
fields, and processes rarely return memory to the system.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec

from kuberuntime.cache import projection, watch
from kuberuntime.cache.projection import Decode
from kuberuntime.client.client import Page
from kuberuntime.client.transport import Response
from kuberuntime.errors import EXCERPT, ConnectionFailedError, from_response
from kuberuntime.objects.meta import JSONObject, ResourceVersion
from kuberuntime.objects.resources import Resource

Reduce: TypeAlias = Callable[[JSONObject], JSONObject]
"""Returns the fields to store of a newly decoded object. It can modify the object."""

Report: TypeAlias = Callable[[JSONObject, Exception], None]
"""Receives an ignored object. The object contains only its `metadata`."""

OBJECTS: Final = {"ADDED", "MODIFIED", "DELETED"}
"""The event types that contain an object of the watched kind."""

_HEAD: Final = re.compile(rb'\{"type":"(ADDED|MODIFIED|DELETED)","object":(?=\{)')
"""The start of an event with an object, as API servers encode it."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[][{},:]', re.DOTALL)


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct):
    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)
    token: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct):
    """One page of a list. Its items are decoded one at a time."""

    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_list = msgspec.json.Decoder(_List).decode


class Decoder:
    """Decodes the list pages and watch lines of one resource.

    An object that cannot be decoded or reduced is skipped and reported with the readable part of its metadata.
    Otherwise a user who may store one object could stop the watch of all objects.
    """

    def __init__(self, resource: Resource, decode: Decode, reduce: Reduce, report: Report) -> None:
        self._identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._decode = decode
        self._reduce = reduce
        self._report = report

    def event(self, line: bytes) -> watch.StreamEvent:
        """Decode one line of a watch stream. A line that API servers encode is decoded in one pass."""
        try:
            if (head := _HEAD.match(line)) and line.endswith(b"}}"):
                with suppress(msgspec.DecodeError):
                    obj = self._decode(memoryview(line)[head.end() : -1])
                    return watch.StreamEvent(head[1].decode(), self._reduce(obj))
            decoded = _decode_line(line)
            if decoded.type in OBJECTS:
                return watch.StreamEvent(decoded.type, self._reduce(self._decode(decoded.object)))
            return watch.StreamEvent(decoded.type, projection.decode(decoded.object))
        except Exception as error:  # noqa: BLE001 - edge: anything may be stored in an object
            return self._unusable_event(line, error)

    def page(self, response: Response) -> Page:
        """Decode one page of a list, and add the kind and apiVersion, which list items do not contain."""
        try:
            decoded = _decode_page(response.body)
            items = [obj for item in decoded.items or () if (obj := self._item(item)) is not None]
        except (msgspec.DecodeError, ValueError) as error:
            raise from_response(response.status, response.body) from error
        head = decoded.metadata or _ListMeta()
        return Page(items, ResourceVersion(head.resource_version or ""), head.token or "")

    def _item(self, item: msgspec.Raw) -> JSONObject | None:
        try:
            obj = self._decode(item)
            for name, value in self._identity.items():
                obj.setdefault(name, value)
            return self._reduce(obj)
        except Exception as error:  # noqa: BLE001 - edge: anything may be stored in an object
            self._report(self._identity | _decode_identity(bytes(item)), error)
            return None

    def _unusable_event(self, line: bytes, error: Exception) -> watch.StreamEvent:
        try:
            head = _HEAD.match(line)
            obj = self._identity | _decode_identity(line[head.end() :] if head else b"")
        except ValueError:
            excerpt = f"the watch sent an invalid event: {line[:EXCERPT]!r}: {error}"
            raise ConnectionFailedError(excerpt) from error
        self._report(obj, error)
        return watch.StreamEvent(watch.UNUSABLE, obj)


def children(text: bytes) -> Iterator[bytes]:
    """Yield the encoded elements of an array, or alternating names and values of an object, at any nesting depth.

    >>> list(children(b'{"a": [1, {"b": 2}], "c": "}"}'))
    [b'"a"', b' [1, {"b": 2}]', b' "c"', b' "}"']
    """
    depth = start = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                start = token.end() if depth == 1 else start
            case b"}" | b"]":
                depth -= 1
                if not depth:
                    yield from filter(bytes.strip, (text[start : token.start()],))
                    return
            case b"," | b":" if depth == 1:
                yield text[start : token.start()]
                start = token.end()
    raise ValueError("an array or object is incomplete")


def _members(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    parts = map(bytes.strip, children(text))
    return zip(parts, parts, strict=False)


def _decode_page(body: bytes) -> _List:
    """Split a page into its items, because msgspec cannot skip an item that it cannot decode."""
    try:
        return _decode_list(body)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, RecursionError):
        members = dict(_members(body))
        head = msgspec.json.decode(members.get(b'"metadata"', b"null"), type=_ListMeta | None)
        return _List(head, [*map(msgspec.Raw, children(members.get(b'"items"', b"[]")))])


def _decode_identity(text: bytes) -> JSONObject:
    """Return an object with the decodable members of its metadata. Raise ValueError if the object has no name.

    Metadata precedes all fields whose depth users control, so the rest of the object is not split.
    """
    metadata = {}
    for name, value in _members(next((value for name, value in _members(text) if name == b'"metadata"'), b"{}")):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            metadata[msgspec.json.decode(name, type=str)] = msgspec.json.decode(value)
    if not metadata.get("name"):
        raise ValueError("the object has no name")
    return {"metadata": metadata}
