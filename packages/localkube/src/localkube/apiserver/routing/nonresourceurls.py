"""Serves paths that do not refer to objects: health, version, discovery, OpenAPI and access reviews."""

from typing import Final

from kuberuntime.client.transport import Request, Response
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import Registry
from localkube.apiserver.requests import representation
from localkube.apiserver.requests.body import JSON_TYPE
from localkube.apiserver.routing import discovery, openapi, reviews
from localkube.apiserver.storage.encoding import encode
from localkube.wellknown import KUBERNETES_VERSION

_MAJOR, _MINOR = KUBERNETES_VERSION

VERSION: Final[JSONObject] = {
    "major": f"{_MAJOR}",
    "minor": f"{_MINOR}",
    "gitVersion": f"v{_MAJOR}.{_MINOR}.0+localkube",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": "linux",
}
"""The response for `/version`."""

HEALTH: Final = ("healthz", "livez", "readyz")


def respond(registry: Registry, request: Request, user: str) -> Response | None:
    """Return the response for a path that is not an object or collection, or None for other paths."""
    path = request.path.rstrip("/")
    if path in reviews.BY_PATH:
        return representation.respond(201, reviews.complete_review(request, user))
    parts = path.strip("/").split("/")
    if not _is_information(parts):
        return None
    if request.method not in {"GET", "HEAD"}:
        raise apierrors.method_not_allowed()
    if parts[0] in HEALTH:
        return Response(200, {"content-type": "text/plain; charset=utf-8"}, b"ok")
    accept = request.headers.get("accept", "")
    if parts == ["openapi", "v2"] and openapi.PROTOBUF_ACCEPTED in accept:
        return Response(200, {"content-type": openapi.PROTOBUF_TYPE}, openapi.PROTOBUF)
    document, media = _document(registry, parts, accept)
    return Response(200, {"content-type": media}, encode(document))


def _document(registry: Registry, parts: list[str], accept: str) -> tuple[JSONObject, str]:
    match parts:
        case ["version"]:
            return VERSION, JSON_TYPE
        case ["openapi", "v2"]:
            return openapi.WITHOUT_DEFINITIONS, JSON_TYPE
        case ["openapi", "v3"]:
            return openapi.document_index(registry), JSON_TYPE
        case ["openapi", "v3", *name]:
            return openapi.document(registry, "/".join(name)), JSON_TYPE
        case _:
            return discovery.respond(registry, parts, accept)


def _is_information(parts: list[str]) -> bool:
    """Return whether a path refers to the server instead of objects."""
    match parts:
        case ["version"] | ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _]:
            return True
        case ["openapi", "v2"] | ["openapi", "v3", *_]:
            return True
        case [word]:
            return word in HEALTH
    return False
