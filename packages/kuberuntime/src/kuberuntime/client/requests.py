"""Builds requests for the verbs of the Kubernetes API. A connection is not required.

Input: a resource, a key, an object, options. Output: a `transport.Request`. The client (`client.py`) sends them and
the watch (`watch.py`) streams them. No other code contains verbs, queries or content types.
"""

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from kuberuntime.client.transport import Request
from kuberuntime.errors import UnusableNameError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource

if TYPE_CHECKING:
    from kuberuntime.plan import Propagation  # only for type checking: readers do not need the controllers' actions

PatchKind: TypeAlias = Literal["merge", "json", "strategic"]
Query: TypeAlias = tuple[tuple[str, str], ...]

JSON_TYPE: Final = "application/json"
NAME_FIELD: Final = "metadata.name"
APPLY_TYPE: Final = "application/apply-patch+yaml"
PATCH_TYPES: Final[dict[PatchKind, str]] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

_NOT_OF_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""The JSON characters that YAML prohibits or interprets as line breaks. API servers decode apply requests as YAML."""


class Selection(msgspec.Struct, frozen=True):
    """A selection of objects by kind, namespace (empty for all namespaces), labels and fields."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def path(self) -> str:
        """Return the URL path of the collection."""
        return self.resource.path(_path_segment(self.resource, "namespace", self.namespace) if self.namespace else "")

    @property
    def name(self) -> str:
        """Return the name of the selected object, or an empty string if several objects can match."""
        field, _, name = self.field_selector.partition("=")
        return name if field == NAME_FIELD else ""

    @property
    def query(self) -> Query:
        """Return the selectors as query pairs."""
        return _present_pairs(labelSelector=self.label_selector, fieldSelector=self.field_selector)


def select_one(resource: Resource, key: ObjectKey) -> Selection:
    """Return the selection of a single object by name."""
    return Selection(resource, key.namespace, field_selector=f"{NAME_FIELD}={key.name}")


def namespace_of(request: Request) -> str:
    """Return the namespace in a request path, or an empty string.

    >>> namespace_of(Request("GET", "/apis/apps/v1/namespaces/default/statefulsets/web"))
    'default'
    """
    return request.path.partition("/namespaces/")[2].partition("/")[0]


def get(resource: Resource, key: ObjectKey, subresource: str = "") -> Request:
    """Build a request to read one object."""
    return Request("GET", object_path(resource, key, subresource))


def list_page(selection: Selection, *, limit: int = 0, token: str = "") -> Request:
    """Build a list request for at most `limit` objects (0 for all). `token` is the continue token."""
    paging = _present_pairs(limit=str(limit) if limit else "", **{"continue": token})
    return Request("GET", selection.path, selection.query + paging)


def watch(selection: Selection, *, version: str, timeout: int, initial: bool = False) -> Request:
    """Build a watch request for changes after `version`.

    If `initial` is set, the server sends existing objects first.
    """
    streaming: Query = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")) if initial else ()
    always: Query = (("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(timeout)))
    return Request(
        "GET", selection.path, selection.query + always + _present_pairs(resourceVersion=version) + streaming
    )


def create(
    resource: Resource, obj: JSONObject, *, body: bytes | None = None, query: Query = (), subresource: str = ""
) -> Request:
    """Build a request to create `obj`. If `body` is set, it is sent verbatim instead.

    With `subresource` it is posted to that subresource of the object it names.
    """
    content = msgspec.json.encode(obj) if body is None else body
    if subresource:
        path = object_path(resource, meta.key(obj), subresource)
    else:
        path = _collection_path(resource, meta.namespace(obj))
    return Request("POST", path, query, {"content-type": JSON_TYPE}, content)


def update(resource: Resource, obj: JSONObject, *, subresource: str = "", query: Query = ()) -> Request:
    """Build a request to replace `obj`, or one of its subresources, if its resourceVersion is current."""
    path = object_path(resource, meta.key(obj), subresource)
    return Request("PUT", path, query, {"content-type": JSON_TYPE}, msgspec.json.encode(obj))


def apply(resource: Resource, obj: JSONObject, *, manager: str, force: bool) -> Request:
    """Build a server-side apply request for `obj` with the field manager `manager`. The body is also valid YAML."""
    path = object_path(resource, meta.key(obj))
    query = (("fieldManager", manager), ("force", "true" if force else "false"))
    return Request("PATCH", path, query, {"content-type": APPLY_TYPE}, _encode_for_yaml(obj))


def _encode_for_yaml(obj: JSONObject) -> bytes:
    """Encode as JSON, and escape characters that YAML prohibits or interprets as line breaks."""
    body = msgspec.json.encode(obj)
    if body.isascii() and b"\x7f" not in body:
        return body
    return _NOT_OF_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", body.decode()).encode()


def patch(
    resource: Resource, key: ObjectKey, content: JSON, *, kind: PatchKind, subresource: str = "", manager: str = ""
) -> Request:
    """Build a merge, JSON or strategic merge patch of one object. `manager` owns the changed fields."""
    path = object_path(resource, key, subresource)
    return Request(
        "PATCH",
        path,
        _present_pairs(fieldManager=manager),
        {"content-type": PATCH_TYPES[kind]},
        msgspec.json.encode(content),
    )


def delete(
    resource: Resource,
    key: ObjectKey,
    *,
    propagation: "Propagation | None" = None,
    uid: str | None = None,
    grace_period: int | None = None,
) -> Request:
    """Build a request to delete one object. If `uid` is set, it is a precondition."""
    options: JSONObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if uid is not None:
        options["preconditions"] = {"uid": uid}
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    path = object_path(resource, key)
    return Request("DELETE", path, (), {"content-type": JSON_TYPE}, msgspec.json.encode(options))


def delete_collection(resource: Resource, namespace: str) -> Request:
    """Build a request to delete all objects of a kind in a namespace."""
    return Request("DELETE", _collection_path(resource, namespace))


def object_path(resource: Resource, key: ObjectKey, subresource: str = "") -> str:
    """Return the path of one object. Raise an error for names that would change the path.

    >>> from kuberuntime.objects.resources import PODS
    >>> object_path(PODS, ObjectKey("default", "web-0"), "status")
    '/api/v1/namespaces/default/pods/web-0/status'
    """
    namespace = _path_segment(resource, "namespace", key.namespace) if resource.namespaced else ""
    return resource.path(namespace, _path_segment(resource, "name", key.name), subresource)


def _collection_path(resource: Resource, namespace: str) -> str:
    return resource.path(_path_segment(resource, "namespace", namespace) if resource.namespaced else "")


def _path_segment(resource: Resource, what: str, value: str) -> str:
    """Return `value` if it is a valid path segment, as API servers require for names."""
    if not value:
        raise UnusableNameError(f"{resource.kind}: {what}: Required value: specify the {what} of the object")
    if value in {".", ".."} or "/" in value or "%" in value:
        raise UnusableNameError(
            f"{resource.kind}: {what}: Invalid value: {value!r}: may not be '.' or '..' or contain '/' or '%'"
        )
    return value


def _present_pairs(**pairs: str) -> Query:
    return tuple((name, value) for name, value in pairs.items() if value)
