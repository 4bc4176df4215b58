"""Converts objects to the requested form: unchanged, as Table rows (`kubectl get`), or as metadata only.

In: objects that a verb returned. Out: the response in the form that the client accepts. Plain lists are built from the
stored bytes without decoding them.
"""

from collections.abc import Callable, Sequence

import msgspec

from kuberuntime.client.transport import Response
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.representation import (
    META_API,
    METADATA_ONLY,
    TABLE,
    Representation,
    metadata_only,
    negotiate,
    respond,
    respond_bytes,
)
from localkube.apiserver.requests.watch import Encoder
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.tables import table
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading.list import Page, encode_list, list_metadata


def object_response(backend: Backend, call: Call, code: int, obj: JSONObject, warnings: Sequence[str] = ()) -> Response:
    """Build a response with one object (or a Status), in a form that the client accepts."""
    form = negotiate(call.headers.get("accept", ""))
    if obj.get("kind") != "Status":
        match form.shape:
            case "Table":
                obj = table.render(call.served.kind, [obj], backend.clock.now(), include_object(call))
            case "PartialObjectMetadata":
                obj = metadata_only(obj)
    return respond(code, obj, form.media, warnings)


def page_response(backend: Backend, call: Call, page: Page) -> Response:
    """Build a response with a page of a list, in a form that the client accepts."""
    form = negotiate(call.headers.get("accept", ""))
    if not form.shape:
        return respond_bytes(200, encode_list(call.served, page), form.media)
    objects = [call.served.from_store(msgspec.json.decode(item)) for item in page.items]
    if form.shape == "Table":
        rows = table.render(call.served.kind, objects, backend.clock.now(), include_object(call))
        return respond(200, {**rows, "metadata": list_metadata(page)}, form.media)
    head = {"kind": "PartialObjectMetadataList", "apiVersion": META_API, "metadata": list_metadata(page)}
    return respond(200, head | {"items": [metadata_only(obj) for obj in objects]}, form.media)


def include_object(call: Call) -> str:
    """Return the part of the object that each Table row includes, as requested."""
    return call.query.get("includeObject", "")


def watch_encoder(backend: Backend, call: Call, form: Representation) -> Encoder:
    """Return an encoder for watch events in a representation."""
    served = call.served
    identity = {"kind": served.resource.kind, "apiVersion": served.resource.api_version}
    match form.shape:
        case "PartialObjectMetadata":
            return Encoder("metadata", METADATA_ONLY, lambda obj, _: encode(metadata_only(served.from_store(obj))))
        case "Table":
            return Encoder(f"table {backend.identities.uid()}", TABLE, _table_row_encoder(backend, call))
        case _ if served.kind.alias is not None:
            return Encoder("object", identity, lambda obj, _: encode(served.from_store(obj)))
        case _:
            return Encoder("object", identity, lambda obj, value: encode(obj) if value is None else value)


def _table_row_encoder(backend: Backend, call: Call) -> Callable[[JSONObject, bytes | None], bytes]:
    """Return an encoder for Tables with one row.

    Only the first Table contains column definitions, so each watcher needs its own encoder.
    """
    columns_sent = False

    def encode_row(obj: JSONObject, _: bytes | None) -> bytes:
        nonlocal columns_sent
        rows = table.render(call.served.kind, [call.served.from_store(obj)], backend.clock.now(), include_object(call))
        if columns_sent:
            rows["columnDefinitions"] = None
        columns_sent = True
        return encode(rows)

    return encode_row
