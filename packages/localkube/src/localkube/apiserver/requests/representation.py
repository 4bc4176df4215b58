"""Negotiates the format (JSON, YAML) and the representation of the objects in a response, and builds the response.

In: the Accept header, an object. Out: a `Representation`, a `Response`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec
import yaml

from kuberuntime.client.transport import Response
from kuberuntime.manifests import yamltext
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.requests.body import JSON_TYPE, YAML_TYPE
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.storage.storeerrors import StoreError

Shape: TypeAlias = Literal["", "Table", "PartialObjectMetadata"]

ACCEPTED: Final = ("application/json", "application/yaml")
ANY: Final = "*/*"
META_API: Final = "meta.k8s.io/v1"
TABLE: Final = {"kind": "Table", "apiVersion": META_API}
METADATA_ONLY: Final = {"kind": "PartialObjectMetadata", "apiVersion": META_API}


class Representation(msgspec.Struct, frozen=True):
    """The negotiated representation: the form of the objects, and the media type."""

    shape: Shape = ""
    media: str = JSON_TYPE


@lru_cache(maxsize=64)
def negotiate(accept: str) -> Representation:
    """Return the first supported representation in an Accept header.

    >>> negotiate("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    Representation(shape='Table', media='application/json')
    """
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media == ANY or not accept.strip():
            media = JSON_TYPE
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        shape = options.get("as", "").removesuffix("List")
        if media not in ACCEPTED or (shape and (options.get("g"), options.get("v")) != ("meta.k8s.io", "v1")):
            continue
        if shape == "Table":
            return Representation("Table", media)
        if shape == "PartialObjectMetadata":
            return Representation("PartialObjectMetadata", media)
        if not shape:
            return Representation("", media)
    raise apierrors.not_acceptable(ACCEPTED)


def respond(code: int, obj: JSONObject, media: str = JSON_TYPE, warnings: Sequence[str] = ()) -> Response:
    """Build a response with an object."""
    return respond_bytes(code, encode(obj), media, warnings)


def respond_rejection(error: StatusError) -> Response:
    """Build the response for an error."""
    return respond(error.code, error.status())


def respond_store_error(error: StoreError) -> Response:
    """Build the response for a request that failed because the store is unusable."""
    text = str(error)
    return respond_rejection(apierrors.unavailable(text) if error.transient else apierrors.internal_error(text))


def respond_bytes(code: int, encoded: bytes, media: str = JSON_TYPE, warnings: Sequence[str] = ()) -> Response:
    """Build a response with an object that is already encoded as JSON."""
    headers = {"content-type": media}
    if warnings:
        headers["warning"] = ", ".join(f"299 - {msgspec.json.encode(text).decode()}" for text in warnings)
    if media == YAML_TYPE:
        encoded = yaml.dump(msgspec.json.decode(encoded), Dumper=yamltext.SafeDumper, allow_unicode=True).encode()
    return Response(code, headers, encoded)


def metadata_only(obj: JSONObject) -> JSONObject:
    """Return the object's metadata as a PartialObjectMetadata."""
    return METADATA_ONLY | {"metadata": obj["metadata"]}
