"""Which permissions a request needs, as the API server's authorizer sees it, and whether declarations grant them.

In: requests as the client sends them. Out: needs, one per verb, resource and name.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from testkit.transports import ForwardingTransport

from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.objects.meta import JSONObject
from kuberuntime.policyrules import Permission

PLURALS = {
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", "leaderworkersets"),
    "DisaggregatedSet": ("disaggregatedset.x-k8s.io", "disaggregatedsets"),
    "Pod": ("", "pods"),
}
"""The kinds that own the objects of the controllers."""


@dataclass(frozen=True, order=True)
class Need:
    """One permission that a request needs."""

    group: str
    target: str
    verb: str
    name: str = ""


@dataclass
class RecordingTransport(ForwardingTransport):
    """Passes everything on and records the needed permissions; `is_old` servers do not support streamed lists."""

    is_old: bool = False
    needs: set[Need] = field(default_factory=set)

    async def request(self, request: Request) -> Response:
        self.needs.update(needs_of(request))
        return await self.inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        self.needs.update(needs_of(request))
        if self.is_old and ("sendInitialEvents", "true") in request.query:
            return refusal()
        return self.inner.stream(request)


@asynccontextmanager
async def refusal() -> AsyncIterator[StreamResponse]:
    """Reject a request like an API server that cannot stream a list."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"kind":"Status","code":422,"reason":"Invalid","message":"sendInitialEvents is forbidden"}'

    yield StreamResponse(422, {}, chunks())


def needs_of(request: Request) -> Iterator[Need]:
    """Return the permissions for references that block the owner's deletion, if the API server checks them."""
    group, target, name = split(request.path)
    query = dict(request.query)
    selected = query.get("fieldSelector", "").removeprefix("metadata.name=")
    match request.method:
        case "GET" if query.get("watch"):
            yield Need(group, target, "watch", selected)
        case "GET":
            yield Need(group, target, "get", name) if name else Need(group, target, "list", selected)
        case "POST":
            yield Need(group, target, "create")
        case "PUT":
            yield Need(group, target, "update", name)
        case "PATCH":
            yield Need(group, target, "patch", name)
            if "apply-patch" in request.headers.get("content-type", ""):
                yield Need(group, target, "create")
        case "DELETE":
            yield Need(group, target, "delete", name)
    if request.method in {"POST", "PATCH"}:
        yield from needs_of_owners(json.loads(request.body))


def needs_of_owners(obj: JSONObject) -> Iterator[Need]:
    """Return what references that block the owner's deletion need where the API server checks them."""
    for reference in obj.get("metadata", {}).get("ownerReferences", []):
        if reference.get("blockOwnerDeletion"):
            group, plural = PLURALS[reference["kind"]]
            yield Need(group, f"{plural}/finalizers", "update", reference["name"])


def split(path: str) -> tuple[str, str, str]:
    """Return API group, resource with subresource, and name of a path."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, name, subresource = [*rest, "", ""][:3]
    return group, f"{resource}/{subresource}" if subresource else resource, name


def grants(permission: Permission, need: Need) -> bool:
    """Return whether a permission covers the need; permissions on names never cover a creation."""
    is_named = not permission.names or (need.verb != "create" and need.name in permission.names)
    same = (permission.resource.group, permission.target) == (need.group, need.target)
    return same and need.verb in permission.verbs and is_named


def missing(permissions: Iterable[Permission], needs: Iterable[Need]) -> list[Need]:
    """Return the needs without a permission."""
    allowed = list(permissions)
    return sorted(need for need in needs if not any(grants(one, need) for one in allowed))


def unused(permissions: Iterable[Permission], needs: Iterable[Need]) -> list[str]:
    """Return the verbs that are declared and were never needed."""
    seen = list(needs)
    return sorted(
        f"{verb} {permission.target}"
        for permission in permissions
        for verb in permission.verbs
        if not any(grants(permission, need) for need in seen if need.verb == verb)
    )
