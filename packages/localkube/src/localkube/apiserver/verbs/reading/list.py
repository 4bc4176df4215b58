"""Implements GET of a collection, which returns its objects at one revision, in pages if requested.

The continue token contains the revision of the first page and the last returned key, so that all pages form a
consistent list. Lists without selectors are built from the stored bytes without decoding them.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, Kind, not_supported
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import ServedKind
from localkube.apiserver.requests import filters
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.filters import ObjectSelector
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.storage.storeerrors import CompactedError
from localkube.apiserver.verbs.backend import Backend

REVISION: Final = re.compile(r"[0-9]{1,40}", re.ASCII)
LARGEST_REVISION: Final = 2**64 - 1

MATCHES: Final = ("Exact", "NotOlderThan")

EXPIRED_LIST: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list"
    " without the continue parameter."
)


class Token(msgspec.Struct, frozen=True):
    """The content of a continue token: the revision of the list, and the last returned object."""

    revision: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    namespace: str
    name: str

    def encode(self) -> str:
        """Encode the token for clients."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "Token":
        """Parse a token. Raise an error if it is invalid."""
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=cls)
        except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError) as error:
            raise apierrors.bad_request(
                "continue key is not valid: encoded start key is not a continue token"
            ) from error


class Page(msgspec.Struct, frozen=True):
    """The encoded objects on a page, and the token of the next page, which is empty on the last page."""

    items: list[bytes]
    revision: int
    token: str = ""
    remaining: int | None = None


def list_page(backend: Backend, call: Call) -> Page:
    """Return the page that the call requests."""
    selection = filters.parse(call.served, call.namespace, call.query)
    backend.store.flush()
    limit = max(call.number("limit") or 0, 0)
    call.number("timeoutSeconds")  # has no effect on a list, but must be a number
    try:
        revision, after = _start(backend, call)
        rows = _rows(backend, call, revision, after)
        return _page(_select_rows(rows, selection), revision, limit, counted=selection.is_everything)
    except CompactedError as error:
        if call.query.get("continue"):
            raise apierrors.expired(EXPIRED_LIST) from error
        raise apierrors.too_old(int(call.query["resourceVersion"]), error.oldest) from error


def _start(backend: Backend, call: Call) -> tuple[int, tuple[str, str]]:
    """Return the revision of the list and the key after which it continues."""
    check_match(call.query)
    match, resource_version = call.query.get("resourceVersionMatch", ""), call.query.get("resourceVersion", "")
    if call.query.get("continue"):
        if resource_version not in {"", "0"}:
            raise apierrors.bad_request("specifying resource version is not allowed when using continue")
        token = Token.decode(call.query["continue"])
        return token.revision, (token.namespace, token.name)
    revision = parse_version(resource_version)
    if revision > backend.store.revision:
        raise too_new_error(revision, backend.store.revision)
    return (revision if match == "Exact" else backend.store.revision), ("", "")


def check_match(query: Mapping[str, str]) -> None:
    """Raise an error for options that are invalid for a list."""
    if "sendInitialEvents" in query:
        failure = FieldError(Kind.FORBIDDEN, "sendInitialEvents", detail="sendInitialEvents is forbidden for list")
        raise apierrors.invalid("meta.k8s.io", "ListOptions", "", [failure])
    match, resource_version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if not match:
        return
    if not resource_version:
        failure = _forbidden_match("resourceVersionMatch is forbidden unless resourceVersion is provided")
    elif query.get("continue"):
        failure = _forbidden_match("resourceVersionMatch is forbidden when continue is provided")
    elif match not in MATCHES:
        failure = not_supported("resourceVersionMatch", match, (*MATCHES, ""))
    elif match == "Exact" and resource_version == "0":
        failure = _forbidden_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    else:
        return
    raise apierrors.invalid("meta.k8s.io", "ListOptions", "", [failure])


def _forbidden_match(text: str) -> FieldError:
    return FieldError(Kind.FORBIDDEN, "resourceVersionMatch", detail=text)


def parse_version(text: str) -> int:
    """Parse a resourceVersion in the query. If it is absent, return 0."""
    if not REVISION.fullmatch(text or "0") or int(text or "0") > LARGEST_REVISION:
        raise apierrors.bad_request(
            f'resourceVersion: Invalid value: "{text}": must be a resource version of this server'
        )
    return int(text or "0")


def too_new_error(revision: int, current: int) -> apierrors.StatusError:
    """Build the error for a resourceVersion that does not exist yet."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return apierrors.StatusError(504, "Timeout", f"Too large resource version: {revision}, current: {current}", details)


def _rows(backend: Backend, call: Call, revision: int, after: tuple[str, str]) -> Iterator[bytes]:
    if revision == backend.store.revision:
        return backend.store.list(call.served.stored_as, call.namespace, after=after)
    return backend.store.list_at(revision, call.served.stored_as, call.namespace, after=after)


def _select_rows(rows: Iterator[bytes], selection: ObjectSelector) -> Iterator[bytes]:
    if selection.is_everything:
        return rows
    return (row for row in rows if selection.matches(msgspec.json.decode(row)))


def _page(rows: Iterator[bytes], revision: int, limit: int, *, counted: bool) -> Page:
    """Read a page from the rows. If `counted` is set, also count the remaining objects."""
    if not limit:
        return Page(list(rows), revision)
    items = list(islice(rows, limit))
    following = next(rows, None)
    if following is None:
        return Page(items, revision)
    last = meta.key(msgspec.json.decode(items[-1]))
    remaining = 1 + sum(1 for _ in rows) if counted else None
    return Page(items, revision, Token(revision, last.namespace, last.name).encode(), remaining)


def encode_list(served: ServedKind, page: Page) -> bytes:
    """Encode a page as the List of its kind."""
    resource = served.resource
    metadata = list_metadata(page)
    if served.is_custom:
        metadata = {"continue": ""} | metadata  # lists of custom resources include this field even without a token
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    items = b",".join(_encode_item(served, item) for item in page.items)
    return encode(head)[:-1] + b',"items":[' + items + b"]}"


def list_metadata(page: Page) -> JSONObject:
    """Build the metadata of a list."""
    head: JSONObject = {"resourceVersion": str(page.revision)}
    if page.token:
        head["continue"] = page.token
    if page.remaining is not None:
        head["remainingItemCount"] = page.remaining
    return head


def _encode_item(served: ServedKind, item: bytes) -> bytes:
    """Remove apiVersion and kind from an item, because items of built-in lists do not include these fields."""
    if served.kind.alias is not None:
        obj = served.from_store(msgspec.json.decode(item))
        return encode({name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}})
    if served.is_custom:
        return item
    resource = served.resource
    identity = b'{"apiVersion":"%s","kind":"%s",' % (resource.api_version.encode(), resource.kind.encode())
    return b"{" + item[len(identity) :]
