"""Sends requests to one API server, and records the responses in a server-independent form.

Values that always differ are replaced: UIDs by `uid-1`, `uid-2` in their order, and resourceVersions by their
rank. Times, continue tokens and generated suffixes are replaced by a word.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from kuberuntime.client.transport import Request, Transport
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import Resource

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA: Final = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TOKEN: Final = re.compile(r"('continue': ')[^']{12,}")
VERSION: Final = re.compile(r"('resourceVersion': ')(\d+)")
RECORD: Final = re.compile(r"(?<=ResourceVersion in record \()\d+")
AGE: Final = re.compile(r"\d+s")
WATCH_SECONDS: Final = 5
PATIENCE: Final = 20.0
USER_AGENT: Final = "conformance/1"


@dataclass(frozen=True)
class Entry:
    """The description of a request, and its response."""

    request: str
    status: int
    warnings: str
    body: JSON


@dataclass
class Session:
    """A session with one server in one namespace."""

    transport: Transport
    namespace: str
    entries: list[Entry] = field(default_factory=list)

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str = "application/json",
        accept: str = "application/json",
        raw: str = "",
        **query: Any,
    ) -> Any:
        """Send a request, record it, and return the response body. For `raw`, also record the bytes of that field."""
        pairs = tuple(pair for name, value in query.items() for pair in _pairs(name, value))
        content = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        headers = {"accept": accept, "user-agent": USER_AGENT} | ({"content-type": media} if body is not None else {})
        answer = await self.transport.request(Request(method, path, pairs, headers, content))
        decoded = bytes_of(answer.body, raw) if raw else decode(answer.body)
        words = f"{method} {path} {dict(pairs) or ''}".strip()
        # the last of several warnings
        warning = answer.headers.get("warning", "").split(", 299 - ")[-1].removeprefix("299 - ")
        self.entries.append(Entry(words, answer.status, warning, decoded))
        return decoded

    def path(self, resource: Resource, name: str = "", subresource: str = "") -> str:
        """Return the path of a collection or an object in the session's namespace."""
        return resource.path(self.namespace, name, subresource)

    async def create(self, resource: Resource, obj: JSONObject, **query: Any) -> Any:
        """Create an object."""
        return await self.send("POST", self.path(resource), identified(resource, obj), **query)

    async def await_known(self, resource: Resource, obj: JSONObject, shows: Callable[[Any], bool]) -> None:
        """Wait until the admission caches contain the written object.

        To check this, send dry runs that are not recorded.

        To check this, send dry runs that are not recorded.

        To check this, send dry runs that are not recorded.
        """
        rehearsal = Session(self.transport, self.namespace)
        async with asyncio.timeout(PATIENCE):
            while not shows(await rehearsal.create(resource, obj, dryRun="All")):  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.02)

    async def get(self, resource: Resource, name: str = "", *, accept: str = "application/json", **query: Any) -> Any:
        """Read an object or a collection."""
        return await self.send("GET", self.path(resource, name), accept=accept, **query)

    async def update(self, resource: Resource, obj: JSONObject, *, subresource: str = "", **query: Any) -> Any:
        """Replace an object or one of its subresources."""
        path = self.path(resource, obj["metadata"]["name"], subresource)
        return await self.send("PUT", path, identified(resource, obj) if not subresource else obj, **query)

    async def patch(
        self,
        resource: Resource,
        name: str,
        change: object,
        *,
        media: str = MERGE_PATCH,
        subresource: str = "",
        **query: Any,
    ) -> Any:
        """Patch an object or one of its subresources."""
        return await self.send("PATCH", self.path(resource, name, subresource), change, media=media, **query)

    async def apply(self, resource: Resource, obj: JSONObject, *, manager: str, **query: Any) -> Any:
        """Apply an object with server-side apply."""
        name = obj["metadata"]["name"]
        path = self.path(resource, name, str(query.pop("subresource", "")))
        whole = identified(resource, obj)
        return await self.send("PATCH", path, whole, media=APPLY_PATCH, fieldManager=manager, **query)

    async def delete(self, resource: Resource, name: str = "", options: JSONObject | None = None, **query: Any) -> Any:
        """Delete an object or a collection."""
        return await self.send("DELETE", self.path(resource, name), options, **query)

    async def watch(self, resource: Resource, count: int, **query: Any) -> list[Any]:
        """Read and record the first `count` watch events."""
        asked = {"watch": "true", "timeoutSeconds": str(WATCH_SECONDS)} | {
            name: str(value) for name, value in query.items()
        }
        request = Request("GET", self.path(resource), tuple(asked.items()), {"accept": "application/json"})
        lines: list[bytes] = []
        rest = b""
        async with self.transport.stream(request) as answer:
            async for chunk in answer.chunks:
                *whole, rest = (rest + chunk).split(b"\n")
                lines += [line for line in whole if line]
                if len(lines) >= count:
                    break
        events = [decode(line) for line in (lines or [rest])[:count]]
        shown = {name: value for name, value in query.items() if name != "resourceVersion"}
        self.entries.append(Entry(f"WATCH {self.path(resource)} {shown}", answer.status, "", events))
        return events


def _distinct(causes: list[JSONObject]) -> list[JSONObject]:
    """Sort causes, because kube-apiserver returns them in an arbitrary order. Remove duplicates."""
    ordered = sorted(causes, key=lambda cause: (str(cause.get("field")), str(cause.get("message"))))
    return [one for index, one in enumerate(ordered) if one not in ordered[:index]]


def _pairs(name: str, value: object) -> Iterable[tuple[str, str]]:
    if isinstance(value, list):
        return [(name, str(one)) for one in value]
    return [(name, str(value).lower() if isinstance(value, bool) else str(value))]


def identified(resource: Resource, obj: JSONObject) -> JSONObject:
    """Return the object with its apiVersion and kind."""
    return {"apiVersion": resource.api_version, "kind": resource.kind} | obj


def bytes_of(content: bytes, name: str) -> str:
    """Return the bytes of a field as a string. Read it from an object or from the first object in a list."""
    fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    if "items" in fields:
        fields = msgspec.json.decode(fields["items"], type=list[dict[str, msgspec.Raw]])[0]
    return bytes(fields[name]).decode()


def decode(content: bytes) -> Any:
    """Decode a JSON body. Return other bodies as strings."""
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content.decode(errors="replace")


def normalized(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries with placeholders for server-specific values."""
    found = list(entries)
    names = Names.of(found)
    return [Entry(names.request(one.request), one.status, one.warnings, names.value(one.body)) for one in found]


@dataclass
class Names:
    """Replaces the generated values of one server with placeholders."""

    versions: Mapping[str, str]
    uids: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Names":
        """Replace the resourceVersions of objects with their positions in ascending order."""
        seen = sorted({int(version) for entry in entries for version in _versions(entry.body)})
        return cls({str(version): f"version-{rank}" for rank, version in enumerate(seen)})

    def value(self, value: JSON) -> JSON:
        """Return a value in which placeholders replace names."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return self.text(value) if isinstance(value, str) else value

    def request(self, text: str) -> str:
        """Return a request description in which placeholders replace names."""
        text = TOKEN.sub(r"\1<token>", text)
        return self.text(VERSION.sub(lambda match: match[1] + self.versions.get(match[2], match[2]), text))

    def text(self, text: str) -> str:
        """Return a string in which placeholders replace names."""
        text = UID.sub(lambda match: self.uids.setdefault(match[0], f"uid-{len(self.uids) + 1}"), text)
        return RECORD.sub("<version>", MOMENT.sub("<time>", text))

    def _object(self, value: JSONObject) -> JSONObject:
        result = {self.text(name): self.value(child) for name, child in value.items() if name != "metadata"}
        if isinstance(value.get("metadata"), dict):
            result["metadata"] = self._metadata(value["metadata"])
        elif "metadata" in value:
            result["metadata"] = value["metadata"]
        if isinstance(value.get("causes"), list):
            result["causes"] = _distinct(result["causes"])
        if (value.get("details") or {}).get("causes"):
            result["message"] = "<the causes>"
        if "cells" in value:
            result["cells"] = ["<age>" if AGE.fullmatch(str(cell)) else cell for cell in result["cells"]]
        return result

    def _metadata(self, metadata: JSONObject) -> JSONObject:
        result: JSONObject = {name: self.value(child) for name, child in metadata.items()}
        version = metadata.get("resourceVersion")
        if version is not None:
            result["resourceVersion"] = self.versions.get(version, version) if "uid" in metadata else "<list>"
        if metadata.get("continue"):
            result["continue"] = "<token>"
        if metadata.get("generateName"):
            result["name"] = metadata["generateName"] + "<suffix>"
        return result


def _versions(value: JSON) -> Iterable[str]:
    """Yield the resourceVersions of all objects in a value."""
    if isinstance(value, list):
        for one in value:
            yield from _versions(one)
    elif isinstance(value, dict):
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and "uid" in metadata and str(metadata.get("resourceVersion", "")).isdecimal():
            yield metadata["resourceVersion"]
        for child in value.values():
            yield from _versions(child)
