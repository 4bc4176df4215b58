"""Implements the verbs of the Kubernetes API over any `Transport`, with typed errors.

Input: resources and plain objects. Output: plain objects as returned by the server, or an `errors.APIError`. Requests
are built by `requests.py`. If the server responds with Retry-After (429 or 5xx), the client waits for a limited time,
and retries the request.
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
    from kuberuntime.plan import Propagation  # only for type checking: readers do not need the controllers' actions

FieldValidation: TypeAlias = Literal["", "Ignore", "Warn", "Strict"]

PAGE: Final = 500
"""The page size for lists, as in kubectl and client-go."""

RETRIES: Final = 8
"""The maximum number of retries of a request after responses with Retry-After."""

DRY_RUN: Final = ("dryRun", "All")

LONGEST_WAIT: Final = 10.0
"""The maximum delay for a Retry-After header in seconds. A request is delayed at most RETRIES * 10 s in total."""


class Listing(msgspec.Struct, frozen=True):
    """The objects of a list, and the resourceVersion at which a watch continues."""

    items: list[JSONObject]
    resource_version: ResourceVersion


class Page(msgspec.Struct, frozen=True):
    """One page of a list. `token` is empty on the last page."""

    items: Sequence[JSONObject]
    resource_version: ResourceVersion
    token: str


class Client:
    """A client for one API server. `field_validation` is sent with every write that contains an object.

    If `outage` is set, the log reports when the API server stops responding, and when it responds again.
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
        """Return one object, or None if it does not exist or if its kind is not served."""
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
        """List all matching objects, `limit` per request. A page is decoded while the server prepares the next page.

        If a page token expires, all objects are listed again in one request.
        """
        selection = Selection(resource, namespace, label_selector, field_selector)
        response = await self.send(requests.list_page(selection, limit=limit))
        items: list[JSONObject] = []
        while token := _token(response):
            following = asyncio.create_task(self.send(requests.list_page(selection, limit=limit, token=token)))
            try:
                await asyncio.sleep(0)  # the request is sent
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
        """Read one page, and add the kind and apiVersion, which list items do not contain."""
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
        """Create an object. If `body` is set, it is sent verbatim instead of the encoded object.

        If `subresource` is set, the object is posted to that subresource of the object with its name.
        """
        return await self._write(requests.create(resource, obj, body=body, subresource=subresource), dry_run=dry_run)

    async def update(
        self, resource: Resource, obj: JSONObject, *, subresource: str = "", dry_run: bool = False
    ) -> JSONObject:
        """Replace an object, or one of its subresources, if its resourceVersion is current."""
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
        """Apply an object server-side with the field manager `manager`."""
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
        """Patch one object or a subresource. The default of `manager` is the name in the user agent."""
        return await self._write(
            requests.patch(resource, key, patch, kind=kind, subresource=subresource, manager=manager)
        )

    async def try_patch(
        self, resource: Resource, key: ObjectKey, patch: JSON, *, kind: PatchKind, manager: str = ""
    ) -> JSONObject:
        """Return the result of a dry-run patch, including defaults and validation."""
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
        """Delete one object. Return its new state, or a Status after its deletion is complete."""
        options = requests.delete(resource, key, propagation=propagation, uid=uid, grace_period=grace_period)
        return await self._object(options)

    async def delete_collection(self, resource: Resource, namespace: str) -> None:
        """Delete all objects of a kind in a namespace."""
        await self.send(requests.delete_collection(resource, namespace))

    async def send(self, request: Request) -> Response:
        """Send any request (discovery, logs, ...) and return the response. Raise an error for an error response."""
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
        """Open a stream (logs, watches). Raise an error if the server rejects it."""
        async with self.open(Request(method, path, query)) as response:
            yield response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Send a request with a streaming response."""
        try:
            async with self._transport.stream(request) as response:
                self._record_response()
                if response.status >= 400:
                    body = b"".join([chunk async for chunk in response.chunks])
                    raise from_response(response.status, body)
                yield response
        except ConnectionFailedError as error:
            self._record_failure(error)
            raise

    def has_reported(self, error: KubeError) -> bool:
        """Return whether this error is part of an outage that is already logged."""
        return isinstance(error, ConnectionFailedError) and self._outage is not None and self._outage.is_ongoing

    async def close(self) -> None:
        """Release the connections of the transport."""
        await self._transport.close()

    async def _request(self, request: Request) -> Response:
        try:
            response = await self._transport.request(request)
        except ConnectionFailedError as error:
            self._record_failure(error)
            raise
        self._record_response()
        return response

    def _record_failure(self, error: ConnectionFailedError) -> None:
        if self._outage is not None:
            self._outage.record_failure(error)

    def _record_response(self) -> None:
        if self._outage is not None:
            self._outage.record_response()

    async def _write(self, request: Request, *, dry_run: bool = False) -> JSONObject:
        query = (*self._validation, DRY_RUN) if dry_run else self._validation
        return await self._object(request.with_query(*query) if query else request)

    async def _object(self, request: Request) -> JSONObject:
        return _decode_object(await self.send(request))


def _decode_object(response: Response) -> JSONObject:
    """Return the object in a response. Raise an error if the response is not an object, for example from a proxy."""
    try:
        return msgspec.json.decode(response.body, type=JSONObject)
    except (msgspec.DecodeError, RecursionError) as error:
        raise from_response(response.status, response.body) from error


def _page(selection: Selection, response: Response) -> Page:
    content = _decode_object(response)
    head = content.get("metadata") or {}
    identity = {"apiVersion": selection.resource.api_version, "kind": selection.resource.kind}
    items = [item if "kind" in item else identity | item for item in content.get("items") or []]
    return Page(items, ResourceVersion(str(head.get("resourceVersion") or "")), str(head.get("continue") or ""))


class _Head(msgspec.Struct):
    """The part of a page that contains the continue token."""

    metadata: JSONObject | None = None


def _token(response: Response) -> str:
    """Return the continue token, or an empty string for the last page, without decoding the objects."""
    try:
        head = msgspec.json.decode(response.body, type=_Head)
    except (msgspec.DecodeError, RecursionError) as error:
        raise from_response(response.status, response.body) from error
    return str((head.metadata or {}).get("continue") or "")


def retry_after(response: Response) -> float | None:
    """Return the seconds in the Retry-After header of a response, or None if there is no such header.

    >>> retry_after(Response(429, {"retry-after": "2"}, b"")), retry_after(Response(429, {}, b""))
    (2.0, None)
    """
    value = response.headers.get("retry-after", "")
    if (response.status == 429 or response.status >= 500) and value.isdecimal():
        return min(float(value), LONGEST_WAIT)
    return None
