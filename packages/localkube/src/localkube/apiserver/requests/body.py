"""Decodes the object in the body of a write, and checks it against the URL.

In: a call. Out: the object with its apiVersion and kind, or an error. Supports JSON, YAML, and protobuf for a few
kinds.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from kuberuntime.manifests import nesting, yamltext
from kuberuntime.manifests.yamltext import YamlError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import UndecodableError
from localkube.apiserver.requests import protobuf
from localkube.apiserver.requests.call import Call
from localkube.apiserver.types import typed

JSON_TYPE: Final = "application/json"
YAML_TYPE: Final = "application/yaml"
ACCEPTED: Final = (JSON_TYPE, YAML_TYPE)


def media_type(headers: Mapping[str, str]) -> str:
    """Return the media type of a body, or JSON if the header is absent."""
    header = headers.get("content-type", "").strip()
    return header.partition(";")[0].strip().lower() if header else JSON_TYPE


def parse(content: bytes, media: str) -> JSON:
    """Parse JSON, YAML, or protobuf. Protobuf is supported only for the kinds that kubectl sends in this form."""
    if media == protobuf.MEDIA:
        try:
            return protobuf.decode(content)
        except (protobuf.UnreadableError, UnicodeDecodeError) as error:
            raise apierrors.unsupported_media_type(ACCEPTED) from error
    if media not in ACCEPTED:
        raise apierrors.unsupported_media_type(ACCEPTED)
    return parse_yaml(content) if media == YAML_TYPE else parse_json(content)


def parse_json(content: bytes) -> JSON:
    """Parse JSON with the depth limit of `nesting.py`."""
    try:
        return nesting.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise apierrors.bad_request(f"couldn't get version/kind; json parse error: {error}") from error


def parse_yaml(content: bytes) -> JSON:
    """Parse one YAML document. Keys that are numbers or booleans become strings."""
    try:
        return yamltext.load(content)
    except YamlError as error:
        raise apierrors.bad_request(f"error converting YAML to JSON: yaml: {error}") from error


def read_object(call: Call) -> JSONObject:
    """Parse the object of a write, and check that it matches the URL."""
    obj = parse(call.body, media_type(call.headers))
    if not isinstance(obj, dict):
        raise apierrors.bad_request("couldn't get version/kind; json parse error: the body is not an object")
    if call.served.is_custom and not obj.get("kind"):
        what = call.served.resource.kind
        raise apierrors.bad_request(
            f"the object provided is unrecognized (must be of type {what}): Object 'Kind' is missing"
        )
    if call.served.is_custom and not obj.get("apiVersion"):
        raise apierrors.bad_request(_version_text(call, ""))
    return with_identity(call, obj)


def read_struct(call: Call, struct: str, versions: Collection[str]) -> JSONObject:
    """Parse the object of a subresource, which has a separate Go type and versions. Reject other objects."""
    sent = parse(call.body, media_type(call.headers))
    if not isinstance(sent, dict):
        raise apierrors.bad_request(f"the body must be a {struct} object")
    require_identity(sent, struct, versions)
    read = normalize(call, struct, sent)
    if meta.name(read) not in {"", call.name}:
        raise apierrors.bad_request(
            f"the name of the object ({meta.name(read)}) does not match the name on the URL ({call.name})"
        )
    return read


def require_identity(sent: JSONObject, kind: str, versions: Collection[str]) -> None:
    """Raise an error if an object has a different kind or version."""
    if (sent.get("kind") or kind) != kind or (sent.get("apiVersion") or min(versions)) not in versions:
        raise apierrors.bad_request(f"the body must be a {kind} object of {' or '.join(sorted(versions))}")


def normalize(call: Call, struct: str, sent: JSONObject) -> JSONObject:
    """Normalize an object to a Go type. Raise an error if a value has an incorrect type."""
    try:
        return typed.normalize(struct, sent)
    except UndecodableError as error:
        raise apierrors.undecodable(call.method, call.body, str(error)) from error


def _version_text(call: Call, version: str) -> str:
    expected = call.served.resource.api_version
    return f"the API version in the data ({version}) does not match the expected API version ({expected})"


def with_identity(call: Call, obj: JSONObject) -> JSONObject:
    """Return the object with the identity from the URL. Raise an error if the object has a different identity."""
    resource = call.served.resource
    api_version, kind = obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind
    metadata = obj.get("metadata")
    if api_version != resource.api_version:
        why = _version_text(call, str(api_version))
    elif kind != resource.kind:
        why = (
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: the object has a '
            "different kind"
        )
    elif metadata is not None and not isinstance(metadata, dict):
        why = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: metadata is not an object'
    else:
        why = ""
    if why:
        raise apierrors.undecodable(call.method, call.body, why)
    identity = {"apiVersion": api_version, "kind": kind, "metadata": metadata or {}}
    normalize(call, "PartialObjectMetadata", identity)  # fields that the server sets must also have the correct type
    return {**obj, **identity, "metadata": _with_namespace(call, metadata or {})}


def _with_namespace(call: Call, metadata: JSONObject) -> JSONObject:
    """Return the metadata with the namespace from the URL. Raise an error if it has a different namespace."""
    if not call.served.resource.namespaced:
        return {name: value for name, value in metadata.items() if name != "namespace"}
    namespace = metadata.get("namespace") or call.namespace
    if namespace == call.namespace:
        return {**metadata, "namespace": namespace}
    raise apierrors.bad_request("the namespace of the provided object does not match the namespace sent on the request")


def require_name(call: Call, obj: JSONObject) -> None:
    """Raise an error if the object's name differs from the URL."""
    name = meta.name(obj)
    if not name:
        raise apierrors.bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.name:
        raise apierrors.bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
