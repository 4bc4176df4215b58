"""The client: the verbs of the Kubernetes API over any `Transport`, with typed errors.

In: resources and plain objects. Out: plain objects as the server answered, or an `errors.APIError`. Requests are built
by `requests.py`. When the server asks to wait (429 or 5xx with Retry-After), the client waits, within bounds, and sends
the request again.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from kuberuntime.client import requests
from kuberuntime.client.outage import Outage
from kuberuntime.client.requests import PatchKind, Query, Selection
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.errors import ConnectionFailedError, ExpiredError, KubeError, NotFoundError, from_response
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import Resource

if TYPE_CHECKING:
    from kuberuntime.plan import Propagation  # for types only: readers do not need the actions of controllers

FieldValidation: TypeAlias = Literal["", "Ignore", "Warn", "Strict"]

PAGE: Final = 500
"""Objects per page of a list, as kubectl and client-go request."""

RETRIES: Final = 8
"""How often one request is sent again because the server asked to wait."""

DRY_RUN: Final = ("dryRun", "All")

LONGEST_WAIT: Final = 10.0
"""The maximum seconds of a Retry-After: one request waits at most RETRIES * 10 s."""


class Listing(msgspec.Struct, frozen=True):
    """The objects of a list at one moment, and the version a watch continues from."""

    items: list[JSONObject]
    resource_version: ResourceVersion


class Page(msgspec.Struct, frozen=True):
    """One page of a list; `token` is empty on the last page."""

    items: Sequence[JSONObject]
    resource_version: ResourceVersion
    token: str


class Client:
    """A client of one API server. `field_validation` is requested with every write that takes objects.

    With `outage`, the log reports when the API server stops answering, and when it answers again.
    """

    def __init__(
        self, transport: Transport, *, field_validation: FieldValidation = "", outage: Outage | None = None
    ) -> None:
        self._transport = transport
        self._outage = outage
        self._validation: Query = (("fieldValidation", field_validation),) if field_validation else ()

    async def get(self, resource: Resource, key: ObjectKey, *, subresource: str = "") -> JSONObject:
        """Read one object."""
        return await self._object(requests.get(resource, key, subresource))

    async def find(self, resource: Resource, key: ObjectKey) -> JSONObject | None:
        """Read one object; None if it does not exist, or if its kind is not served."""
        try:
            return await self.get(resource, key)
        except NotFoundError:
            return None

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
    ) -> Listing:
        """Read all objects that match, `limit` per request; a page is decoded while the server prepares the next.

        If the token of a page expires, everything is read again in one request.
        """
        selection = Selection(resource, namespace, label_selector, field_selector)
        response = await self.send(requests.list_page(selection, limit=limit))
        items: list[JSONObject] = []
        while token := _token(response):
            following = asyncio.create_task(self.send(requests.list_page(selection, limit=limit, token=token)))
            try:
                await asyncio.sleep(0)  # lets the request be sent
                items += _page(selection, response).items
                response = await following
            except ExpiredError:
                items, response = [], await self.send(requests.list_page(selection))
                break
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
        page = _page(selection, response)
        return Listing([*items, *page.items], page.resource_version)

    async def list_page(self, selection: Selection, *, limit: int = PAGE, token: str = "") -> Page:
        """Read one page. Items of a list lack kind and apiVersion; this adds them."""
        return _page(selection, await self.send(requests.list_page(selection, limit=limit, token=token)))

    async def create(
        self,
        resource: Resource,
        obj: JSONObject,
        *,
        body: bytes | None = None,
        subresource: str = "",
        dry_run: bool = False,
    ) -> JSONObject:
        """Create an object; `body`, where given, is sent verbatim instead of an encoding of it.

        With `subresource` it is posted to that subresource of the object it names.
        """
        return await self._write(requests.create(resource, obj, body=body, subresource=subresource), dry_run=dry_run)

    async def update(
        self, resource: Resource, obj: JSONObject, *, subresource: str = "", dry_run: bool = False
    ) -> JSONObject:
        """Replace an object, or one of its subresources, at the resourceVersion it carries."""
        return await self._write(requests.update(resource, obj, subresource=subresource), dry_run=dry_run)

    async def apply(
        self,
        resource: Resource,
        obj: JSONObject,
        *,
        manager: str,
        force: bool = True,
        dry_run: bool = False,
    ) -> JSONObject:
        """Apply an object server-side as `manager`."""
        return await self._write(requests.apply(resource, obj, manager=manager, force=force), dry_run=dry_run)

    async def patch(
        self,
        resource: Resource,
        key: ObjectKey,
        patch: JSON,
        *,
        kind: PatchKind,
        subresource: str = "",
        manager: str = "",
    ) -> JSONObject:
        """Patch one object, or one of its subresources, as `manager` (default: the user agent's name)."""
        return await self._write(
            requests.patch(resource, key, patch, kind=kind, subresource=subresource, manager=manager)
        )

    async def try_patch(
        self, resource: Resource, key: ObjectKey, patch: JSON, *, kind: PatchKind, manager: str = ""
    ) -> JSONObject:
        """Return the object that a patch would result in, with defaults and all checks; nothing is written."""
        return await self._write(requests.patch(resource, key, patch, kind=kind, manager=manager), dry_run=True)

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        propagation: "Propagation | None" = None,
        uid: str | None = None,
        grace_period: int | None = None,
    ) -> JSONObject:
        """Delete one object; return its new state, or a Status if it is deleted already."""
        options = requests.delete(resource, key, propagation=propagation, uid=uid, grace_period=grace_period)
        return await self._object(options)

    async def delete_collection(self, resource: Resource, namespace: str) -> None:
        """Delete all objects of a kind in a namespace."""
        await self.send(requests.delete_collection(resource, namespace))

    async def send(self, request: Request) -> Response:
        """Send any request (discovery, logs, ...) and return the response, or raise its error."""
        response = await self._request(request)
        for _ in range(RETRIES):
            wait = retry_after(response)
            if wait is None:
                break
            await asyncio.sleep(wait)
            response = await self._request(request)
        if response.status >= 400:
            raise from_response(response.status, response.body)
        return response

    @asynccontextmanager
    async def stream(self, method: str, path: str, query: Query = ()) -> AsyncIterator[StreamResponse]:
        """Open a stream (logs, watches); raise the error if the server refuses it."""
        async with self.open(Request(method, path, query)) as response:
            yield response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Send any request whose response is a stream."""
        try:
            async with self._transport.stream(request) as response:
                self._answered()
                if response.status >= 400:
                    body = b"".join([chunk async for chunk in response.chunks])
                    raise from_response(response.status, body)
                yield response
        except ConnectionFailedError as error:
            self._failed(error)
            raise

    def has_reported(self, error: KubeError) -> bool:
        """Return whether this error only repeats an outage that the log already reports."""
        return isinstance(error, ConnectionFailedError) and self._outage is not None and self._outage.lasts

    async def close(self) -> None:
        """Release the connections of the transport."""
        await self._transport.close()

    async def _request(self, request: Request) -> Response:
        try:
            response = await self._transport.request(request)
        except ConnectionFailedError as error:
            self._failed(error)
            raise
        self._answered()
        return response

    def _failed(self, error: ConnectionFailedError) -> None:
        if self._outage is not None:
            self._outage.failed(error)

    def _answered(self) -> None:
        if self._outage is not None:
            self._outage.answered()

    async def _write(self, request: Request, *, dry_run: bool = False) -> JSONObject:
        query = (*self._validation, DRY_RUN) if dry_run else self._validation
        return await self._object(request.asking(*query) if query else request)

    async def _object(self, request: Request) -> JSONObject:
        return _decoded(await self.send(request))


def _decoded(response: Response) -> JSONObject:
    """Return the object of a response; raise if it is not an object (from a proxy)."""
    try:
        return msgspec.json.decode(response.body, type=JSONObject)
    except (msgspec.DecodeError, RecursionError) as error:
        raise from_response(response.status, response.body) from error


def _page(selection: Selection, response: Response) -> Page:
    answer = _decoded(response)
    head = answer.get("metadata") or {}
    identity = {"apiVersion": selection.resource.api_version, "kind": selection.resource.kind}
    items = [item if "kind" in item else identity | item for item in answer.get("items") or []]
    return Page(items, ResourceVersion(str(head.get("resourceVersion") or "")), str(head.get("continue") or ""))


class _Head(msgspec.Struct):
    """The part of a page that has the token of the next one."""

    metadata: JSONObject | None = None


def _token(response: Response) -> str:
    """Return the token of the next page, empty after the last one; the objects are not decoded."""
    try:
        head = msgspec.json.decode(response.body, type=_Head)
    except (msgspec.DecodeError, RecursionError) as error:
        raise from_response(response.status, response.body) from error
    return str((head.metadata or {}).get("continue") or "")


def retry_after(response: Response) -> float | None:
    """Return the seconds that the server requests to wait before the same request, None if it requests none.

    >>> retry_after(Response(429, {"retry-after": "2"}, b"")), retry_after(Response(429, {}, b""))
    (2.0, None)
    """
    value = response.headers.get("retry-after", "")
    if (response.status == 429 or response.status >= 500) and value.isdecimal():
        return min(float(value), LONGEST_WAIT)
    return None
