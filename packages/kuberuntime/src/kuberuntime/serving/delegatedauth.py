"""Authenticates metrics clients with TokenReview, and authorizes them with SubjectAccessReview (R-MGR-6).

Both results are cached briefly, so that a scraper costs the API server one pair of requests a minute. Tokens are kept
as hashes only. Clients can invent tokens. So reviews of tokens that were not allowed recently are rate-limited, and
their results are cached separately: invented tokens affect neither the API server nor the scrapers. Addresses that sent
an invalid token have a separate limit, so that a scraper with a new token does not wait behind invented ones.
"""

import hashlib
from collections.abc import Callable
from typing import Final, TypeAlias

from aiohttp import web
from msgspec import Struct

from kuberuntime.client.client import Client
from kuberuntime.client.ratelimit import TokenBucket
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource

ALLOWED_SECONDS: Final = 60.0
DENIED_SECONDS: Final = 10.0
KNOWN_SECONDS: Final = 3600.0
"""The time in seconds for which an allowed token is known. Reviews of known tokens are not rate-limited."""

LIMIT: Final = 1024
"""The maximum number of cached allowed results, of cached denied results, and of addresses.

It limits memory usage.
"""

UNKNOWN_RATE: Final = 2.0
UNKNOWN_BURST: Final = 10
"""The rate limit and burst of TokenReviews for unknown tokens.

Addresses with invalid tokens have a second one.
"""

SUSPECT_SECONDS: Final = 300.0
"""The time in seconds during which an address has a separate limit after it sent an unknown token."""


class AccessDecision(Struct, frozen=True):
    """The HTTP status of a cached request, and the expiration time of the cache entry."""

    status: int
    until: float


Key: TypeAlias = tuple[bytes, str]
"""A cache key, which consists of the hash of a token and a path."""


class UnknownTokenLimiter:
    """Limits reviews of unknown tokens. Addresses that recently sent invalid tokens have a separate limit.

    An address is suspected from its first unknown token until that proves valid. So many concurrent unknown tokens of
    one address take only one from the limit of others.
    """

    def __init__(self) -> None:
        self._suspect_limit = TokenBucket(UNKNOWN_RATE, UNKNOWN_BURST)
        self._other_limit = TokenBucket(UNKNOWN_RATE, UNKNOWN_BURST)
        self._suspects: dict[str, float] = {}  # expiration times, with the longest inactive address first

    def try_take(self, address: str, now: float) -> bool:
        """Return whether an unknown token from this address may be reviewed now."""
        is_suspect = now < self._suspects.get(address, now)
        if not is_suspect and not self._other_limit.try_take(now):
            return False
        self._suspects.pop(address, None)
        if len(self._suspects) >= LIMIT:
            del self._suspects[next(iter(self._suspects))]
        self._suspects[address] = now + SUSPECT_SECONDS
        return not is_suspect or self._suspect_limit.try_take(now)

    def clear(self, address: str) -> None:
        """Stop treating the address as suspicious."""
        self._suspects.pop(address, None)


class Authorizer:
    """Decides whether the owner of a token may GET a path."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._allowed: dict[Key, AccessDecision] = {}
        self._denied: dict[Key, AccessDecision] = {}
        self._unknown = UnknownTokenLimiter()

    async def status(self, authorization: str, path: str, address: str = "") -> int:
        """Return 200, 401, 403, or 429 for too many unknown tokens. Raise `KubeError` if the API server fails.

        `address` is the address of the client.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip() or not token.isascii():  # invalid (RFC 6750)
            return 401
        key = (hashlib.sha256(token.encode()).digest(), path)
        now = self._clock.monotonic()
        allowed, denied = self._allowed.get(key), self._denied.get(key)
        for verdict in (allowed, denied):
            if verdict is not None and now < verdict.until:
                return verdict.status
        is_known = allowed is not None and now < allowed.until + KNOWN_SECONDS
        if not is_known and not self._unknown.try_take(address, now):
            return 429
        status = await self._review(token.strip(), path)
        if status != 401:
            self._unknown.clear(address)
        self._cache(key, status)
        return status

    async def _review(self, token: str, path: str) -> int:
        review = await self._create(TOKEN_REVIEWS, {"token": token})
        if not review.get("authenticated"):
            return 401
        user: JSONObject = review.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        return 200 if (await self._create(SUBJECT_ACCESS_REVIEWS, spec)).get("allowed") else 403

    async def _create(self, resource: Resource, spec: JSONObject) -> JSONObject:
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        return meta.status(await self._client.create(resource, obj))

    def _cache(self, key: Key, status: int) -> None:
        verdicts, seconds = (self._allowed, ALLOWED_SECONDS) if status == 200 else (self._denied, DENIED_SECONDS)
        for others in (self._allowed, self._denied):
            others.pop(key, None)
        if len(verdicts) >= LIMIT:
            verdicts.pop(next(iter(verdicts)))
        verdicts[key] = AccessDecision(status, self._clock.monotonic() + seconds)


def application(path: str, render: Callable[[], bytes], content_type: str, authorizer: Authorizer) -> web.Application:
    """Build an application that serves text to authorized clients."""

    async def serve(request: web.Request) -> web.Response:
        try:
            status = await authorizer.status(request.headers.get("Authorization", ""), path, request.remote or "")
        except KubeError as error:
            return web.Response(status=503, text=f"cannot check whether you have permission to read this URL: {error}")
        match status:
            case 200:
                return web.Response(body=render(), headers={"Content-Type": content_type})
            case 429:
                text = "Too many requests with unknown tokens. Retry after one second"
                return web.Response(status=429, text=text, headers={"Retry-After": "1"})
            case 401:
                return web.Response(status=401, text="Unauthorized: the request requires a bearer token")
            case _:
                return web.Response(status=403, text=f"Forbidden: this account does not have permission to get {path}")

    served = web.Application()
    served.add_routes([web.get(path, serve)])
    return served
