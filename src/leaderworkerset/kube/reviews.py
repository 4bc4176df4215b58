"""Who may read metrics: TokenReview tells who asks, SubjectAccessReview whether they may GET the path (R-MGR-6).

Both answers are kept for a short while, so that a scraper costs the API server one pair of requests a minute. Tokens
are kept as hashes only.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.api.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from leaderworkerset.kube.client import Client
from leaderworkerset.kube.clock import Clock
from leaderworkerset.kube.errors import KubeError

ALLOWED_SECONDS: Final = 60.0
DENIED_SECONDS: Final = 10.0
LIMIT: Final = 1024
"""Answers remembered at most: whoever floods us with invented tokens fills no memory."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The HTTP status a request gets, and until when that is believed."""

    status: int
    until: float


class Authorizer:
    """Decides whether the bearer of a token may GET a path."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._verdicts: dict[tuple[bytes, str], Verdict] = {}

    async def status(self, authorization: str, path: str) -> int:
        """Return 200, 401 or 403; raise `KubeError` if the API server cannot be asked."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return 401
        key = (hashlib.sha256(token.encode()).digest(), path)
        verdict = self._verdicts.get(key)
        if verdict is None or self._clock.monotonic() >= verdict.until:
            status = await self._ask(token.strip(), path)
            seconds = ALLOWED_SECONDS if status == 200 else DENIED_SECONDS
            verdict = Verdict(status, self._clock.monotonic() + seconds)
            self._remember(key, verdict)
        return verdict.status

    async def _ask(self, token: str, path: str) -> int:
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

    def _remember(self, key: tuple[bytes, str], verdict: Verdict) -> None:
        if len(self._verdicts) >= LIMIT:
            self._verdicts.pop(next(iter(self._verdicts)))
        self._verdicts[key] = verdict


def application(path: str, render: Callable[[], bytes], content_type: str, authorizer: Authorizer) -> web.Application:
    """Build an application that serves one text to those who may read it."""

    async def serve(request: web.Request) -> web.Response:
        try:
            status = await authorizer.status(request.headers.get("Authorization", ""), path)
        except KubeError as error:
            return web.Response(status=503, text=f"cannot tell whether you may read this: {error}")
        match status:
            case 200:
                return web.Response(body=render(), headers={"Content-Type": content_type})
            case 401:
                return web.Response(status=401, text="Unauthorized: send a bearer token")
            case _:
                return web.Response(status=403, text=f"Forbidden: this account may not get {path}")

    served = web.Application()
    served.add_routes([web.get(path, serve)])
    return served
