"""Generates random requests to the API server from a seed.

They use all verbs, kinds and subresources, and most are nearly valid.
"""

import gzip
import zlib
from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec
import yaml
from tests.fuzz import junk, specimens

from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.custom.customresource import kind_from_crd
from localkube.apiserver.model.kind import Kind

NAMESPACES: Final = ("default",) * 8 + ("kube-system", "one", "absent", "%2e%2e", "A", "a%00b", "%ff", "")
NAMES: Final = ("one",) * 6 + (
    "full",
    "two",
    "headless",
    "absent",
    "A",
    "%2F",
    "%00",
    "a" * 300,
    "one%0a",
    "%ff",
    "%ed%a0%80",
    "%u",
)
QUERIES: Final[dict[str, tuple[str, ...]]] = {
    "dryRun": ("All", "", "None", "all"),
    "fieldManager": ("a", "b", "", "x" * 129, "\x00", "\ud7ff", "é"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "", "odd"),
    "force": ("true", "false", "", "1", "odd"),
    "limit": ("1", "2", "0", "-1", "9" * 30, "x", "", "1.5", "²"),
    "continue": ("e30", "x", "", "%%%", "eyJyZXZpc2lvbiI6MX0", "eyJyZXZpc2lvbiI6MSwibmFtZXNwYWNlIjoiIiwibmFtZSI6ImEifQ",
                 "eyJyZXZpc2lvbiI6OTk5OTk5OTk5OTk5OTk5OTk5OTksIm5hbWVzcGFjZSI6IiIsIm5hbWUiOiJhIn0", "é", "eyJyZXZpc2lvbiI6LTEsIm5hbWVzcGFjZSI6IiIsIm5hbWUiOiJhIn0"),
    "resourceVersion": ("0", "1", "5", "-1", "x", "", "9" * 20, "9" * 5000, "²", "1.0", " 1", "+1"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "odd", ""),
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a", "a notin (", "=", "a==b,c!=d", "a>1", "a<x", "(", "x" * 300, "a=\x00", "é=é", ",", "a in ()"),
    "fieldSelector": ("metadata.name=one", "spec.nodeName=n", "a", "metadata.name", "status.phase!=Running", "=", "metadata.name=a\\,b", "metadata.name=\\", "x=y"),
    "watch": ("true", "1", "false", "", "odd"),
    "timeoutSeconds": ("0", "1", "-1", "x", "9" * 30, "9" * 400, "1.5", "²"),
    "allowWatchBookmarks": ("true", "odd", ""),
    "sendInitialEvents": ("true", "false", "", "odd"),
    "gracePeriodSeconds": ("0", "1", "-1", str(2**62), str(2**63), "x", "9" * 5000, "--1", "-"),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "odd", ""),
    "orphanDependents": ("true", "false", "odd"),
    "includeObject": ("None", "Object", "Metadata", "odd"),
    "pretty": ("true", "odd"),
    "container": ("main", "odd", "", "\x00"),
    "follow": ("true", "odd"),
    "previous": ("true", "false"),
    "tailLines": ("1", "-1", "9" * 400, "x", str(2**63)),
    "sinceSeconds": ("1", "0", "-1", "9" * 400, "x", str(2**62)),
    "sinceTime": ("2026-01-02T03:04:05Z", "x", "", "0001-01-01T00:00:00+14:00", "2026-01-02", "9999-12-31T23:59:59-23:59"),
    "limitBytes": ("1", "0", "9" * 40),
    "timestamps": ("true", "odd"),
    "command": ("true", "\x00", ""),
    "ports": ("80", "0", "x", "9" * 5000, "80,81", "²"),
    "odd": ("", "1"),
}  # fmt: skip
PATCHES: Final = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "application/apply-patch+cbor", "application/json", "", "text/plain",
)  # fmt: skip
MEDIA: Final = ("application/json",) * 80 + (
    "application/yaml", specimens.PROTOBUF, "text/plain", "", ";", "application/json;charset=utf-16", "application/cbor", "\xff", "a" * 1000,
)  # fmt: skip
ACCEPTS: Final = ("application/json",) * 60 + (
    "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/yaml", "application/yaml;as=Table;v=v1;g=meta.k8s.io",
    specimens.PROTOBUF, "*/*", "", ";", ",", "application/json;as=", "application/json;as=Table", "text/html", "\xff", "application/json;q=x",
)  # fmt: skip
PATHS: Final = (
    "/", "", "//", "/api", "/api/", "/api/v1", "/api/v1/", "/apis", "/apis/", "/apis/apps", "/apis//v1", "/apis/apps/", "/version", "/healthz",
    "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/odd", "/openapi/v3/apis/apps/v1/x", "/livez", "/readyz", "/metrics", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "/api/v1/namespaces/default/pods/one/log/x", "/api/v1//pods", "/apis/%00/v1/x", "/api/v2/pods",
    "/apis/apps/v1/namespaces/default/statefulsets//", "/apis/apps/v1/watch/statefulsets", "/api/v1/watch/pods", "/api/v1/componentstatuses", "/%", "/%ff", "/api/v1/namespaces/default/serviceaccounts/default/token",
    "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", "/logs", "/swagger.json", "/.well-known/openid-configuration",
)  # fmt: skip


def served() -> list[Kind]:
    """Return the requested kinds, which are the built-in kinds and one custom kind."""
    return [*specimens.kinds(), kind_from_crd(specimens.CRD)]


class Requests:
    """Generates requests from a seed."""

    def __init__(self, seed: int, kinds: Sequence[Kind]) -> None:
        self._random = Random(seed)
        self._kinds = kinds

    def sequence(self, length: int) -> list[Request]:
        """Return requests for a few kinds and names, so that multiple requests use the same objects."""
        chosen = self._random.sample(list(self._kinds), 3)
        first = [self._valid(kind) for kind in chosen]
        return first + [self._one(self._random.choice(chosen)) for _ in range(length - len(first))]

    def _valid(self, kind: Kind) -> Request:
        """Return a request that creates an object for later requests."""
        obj = {
            "apiVersion": kind.resource.api_version,
            "kind": kind.resource.kind,
            **self._random.choice(specimens.of(kind.resource)),
        }
        named = {**obj, "metadata": {**obj["metadata"], "name": self._name(kind, "one")}}
        return Request(
            "POST", kind.resource.path("default"), (), {"content-type": "application/json"}, msgspec.json.encode(named)
        )

    def _one(self, kind: Kind) -> Request:
        random = self._random
        method = random.choice(
            ("GET", "GET", "POST", "POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "DELETE")
        )
        if random.random() < 0.02:
            method = random.choice(("HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "ODD", "\x00"))
        subresource = random.choice((*specimens.SUBRESOURCES, "status", "scale")) if random.random() < 0.25 else ""
        on_object = bool(subresource) or (method != "POST" and random.random() < 0.85)
        path = self._path(kind, random.choice(NAMES) if on_object else "", subresource)
        media = self._media(method)
        content = self._body(kind, method, media, subresource) if self._has_body(method) else b""
        headers = {"accept": random.choice(ACCEPTS), "user-agent": random.choice(("fuzz/1", "", "\xff", "x" * 300))}
        if media or random.random() < 0.5:
            headers["content-type"] = media
        return Request(method, path, self._query(), headers, content)

    def _has_body(self, method: str) -> bool:
        return method in {"POST", "PUT", "PATCH"} or (method == "DELETE" and self._random.random() < 0.5)

    def _path(self, kind: Kind, name: str, subresource: str) -> str:
        random = self._random
        if random.random() < 0.02:
            return random.choice(PATHS)
        usual = random.random() < 0.93
        namespace = "default" if usual else random.choice(NAMESPACES)
        found = kind.resource.path(namespace, self._name(kind, name) if usual else name, subresource)
        return junk.damaged(random, found.encode()).decode(errors="replace") if random.random() < 0.01 else found

    def _name(self, kind: Kind, chosen: str) -> str:
        """Return a name that exists in most cases."""
        if not chosen or (chosen != "one" and self._random.random() < 0.15):
            return chosen
        return "things.fuzz.example.com" if kind.resource.kind == "CustomResourceDefinition" else "one"

    def _query(self) -> tuple[tuple[str, str], ...]:
        random = self._random
        names = random.sample(sorted(QUERIES), random.choice((0, 0, 0, 1, 1, 2, 4)))
        if random.random() < 0.15:
            names.append("fieldManager")
        return tuple((name, random.choice(QUERIES[name])) for name in names)

    def _media(self, method: str) -> str:
        random = self._random
        if method == "PATCH":
            return random.choice(PATCHES[:4]) if random.random() < 0.95 else random.choice(PATCHES)
        return random.choice(MEDIA)

    def _body(self, kind: Kind, method: str, media: str, subresource: str) -> bytes:
        random = self._random
        document: JSON = random.choice(specimens.of(kind.resource))
        schema = None if subresource in specimens.SUBRESOURCE_BODIES else kind.schema
        if subresource in specimens.SUBRESOURCE_BODIES:
            document = specimens.SUBRESOURCE_BODIES[subresource]
        elif method == "DELETE":
            document, schema = (
                {
                    "gracePeriodSeconds": 1,
                    "preconditions": {"uid": "a"},
                    "propagationPolicy": "Orphan",
                    "dryRun": ["All"],
                },
                None,
            )
        else:
            document = self._object(kind, document)
        if random.random() < 0.6:
            document = junk.bent(random, document, schema)
        if media == "application/json-patch+json" and random.random() < 0.95:
            document = self._operations(kind, document)
        elif method == "PATCH" and random.random() < 0.6 and isinstance(document, dict):
            document = self._fragment(kind, document)
        return self._encode(document, media)

    def _object(self, kind: Kind, specimen: JSON) -> JSONObject:
        random = self._random
        obj = {
            "apiVersion": kind.resource.api_version,
            "kind": kind.resource.kind,
            **(specimen if isinstance(specimen, dict) else {}),
        }
        metadata = dict(obj["metadata"])
        if random.random() < 0.7:
            metadata["name"] = self._name(kind, "one")
        if random.random() < 0.2:
            extra = {
                "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/a"], "resourceVersion": "3", "uid": "a",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "a", "controller": True}],
                "managedFields": [{"manager": "a", "operation": "Apply", "apiVersion": kind.resource.api_version, "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}, "f:metadata": {"f:labels": {"f:a": {}}}}}],
                "generateName": "x-", "creationTimestamp": None, "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 1, "generation": 2, "namespace": "default",
            }  # fmt: skip
            for name in random.sample(sorted(extra), random.choice((1, 1, 2, 4))):
                metadata[name] = extra[name]
        return {**obj, "metadata": metadata}

    def _fragment(self, kind: Kind, document: JSONObject) -> JSONObject:
        """Return a part of an object for a patch, sometimes with strategic merge patch directives."""
        random = self._random
        fields = kind.schema.fields or {}
        name = random.choice(sorted(fields)) if fields else "spec"
        part: JSON = (
            document.get(name, {})
            if random.random() < 0.5
            else junk.fitting(random, fields[name])
            if name in fields
            else {}
        )
        if isinstance(part, dict) and random.random() < 0.3:
            directive = random.choice(
                ("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers")
            )
            part = {
                **part,
                directive: random.choice(("delete", "replace", "merge", ["a"], [{"name": "a"}], junk.value(random))),
            }
        if isinstance(part, list) and random.random() < 0.3:
            part = [*part, {"$patch": random.choice(("delete", "replace", "odd")), "name": "main"}]
        keep: JSONObject = {
            field: document[field]
            for field in ("apiVersion", "kind", "metadata")
            if field in document and random.random() < 0.5
        }
        return {**keep, name: part}

    def _operations(self, kind: Kind, document: JSON) -> JSON:
        random = self._random
        found = list(junk.places(document)) or [("spec",)]
        operations: list[JSON] = []
        for _ in range(random.choice((1, 1, 2, 5))):
            pointers = [
                "/" + "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in random.choice(found))
                for _ in "12"
            ]
            wanted = junk.value(random)
            operation: JSON = {
                "op": random.choice(("add", "remove", "replace", "test", "copy", "move", "odd")),
                "path": pointers[0],
                "from": pointers[1],
                "value": wanted,
            }
            if random.random() < 0.15:
                operation = junk.bent(random, operation)
            operations.append(operation)
        return operations if random.random() < 0.95 else junk.value(random)

    def _encode(self, document: JSON, media: str) -> bytes:
        random = self._random
        try:
            if media in {"application/yaml", "application/apply-patch+yaml"} and random.random() < 0.5:
                content = yaml.dump(document).encode()
            else:
                content = msgspec.json.encode(document)
        except (msgspec.MsgspecError, OverflowError, UnicodeError):
            import json

            content = json.dumps(document).encode()
        if media == specimens.PROTOBUF and random.random() < 0.8:
            content = protobuf(random, document)
        if random.random() < 0.06:
            content = junk.damaged(random, content)
        return content


def protobuf(random: Random, document: JSON) -> bytes:
    """Return a body with the prefix of Kubernetes protobuf messages."""
    kind = document.get("kind", "") if isinstance(document, dict) else ""
    version = document.get("apiVersion", "") if isinstance(document, dict) else ""
    if random.random() < 0.5:
        version, kind = random.choice(
            (
                ("v1", "Namespace"),
                ("v1", "ConfigMap"),
                ("v1", "Service"),
                ("v1", "DeleteOptions"),
                ("policy/v1", "Eviction"),
            )
        )
    identity = _field(1, str(version).encode("utf-8", "replace")) + _field(2, str(kind).encode("utf-8", "replace"))
    metadata = b"".join(_random_field(random) for _ in range(random.randrange(4))) + _field(1, b"one")
    raw = _field(1, metadata) + b"".join(_random_field(random) for _ in range(random.randrange(5)))
    return b"k8s\x00" + _field(1, identity) + _field(2, raw)


def _random_field(random: Random) -> bytes:
    number, content = random.randrange(1, 20), random.randbytes(random.randrange(6))
    match random.randrange(4):
        case 0:
            return bytes((number << 3,) if number < 16 else (number << 3 & 0x7F | 0x80, 1)) + random.choice(
                (b"\x01", b"\xff" * 9 + b"\x01", b"\xff" * 30)
            )
        case 1:
            return _field(number, _field(1, content) + _field(2, random.choice((b"a", content))))
        case 2:
            return _field(number, random.choice((b"a", "é".encode(), b"\xff", b"")))
    return random.randbytes(random.randrange(8))


def _field(number: int, content: bytes) -> bytes:
    tag, size = number << 3 | 2, len(content)
    return _varint(tag) + _varint(size) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def compressed(random: Random, content: bytes) -> tuple[str, bytes]:
    """Return a content encoding and the encoded content, which is sometimes truncated or corrupted."""
    coding = random.choice(("gzip", "deflate"))
    packed = gzip.compress(content) if coding == "gzip" else zlib.compress(content)
    match random.randrange(4):
        case 0:
            packed = packed[: random.randrange(len(packed))]
        case 1:
            packed = junk.damaged(random, packed)
    return coding, packed
