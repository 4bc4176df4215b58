"""Checks each request before any data is read. Pure.

The dashboard has the permissions of the user's kubeconfig, so it responds only to the user's browser:

- Other machines do not reach it: it listens on a loopback address only.
- Other users of this machine have no cookie. The dashboard sets the cookie once, in exchange for the token in the link that it
  prints. The address of every page has a random beginning, and the cookie is bound to that: browsers send cookies of
  127.0.0.1 to every port, and a program of another user may listen on one of them.
- Pages of other sites in the same browser are refused by `Origin` and `Sec-Fetch-Site`, and get no cookie (SameSite).
- Another host name with the address 127.0.0.1 (DNS rebinding) is refused, as `Host` has another value.
"""

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from msgspec import Struct

COOKIE: Final = "lws-dashboard"
ACTION_HEADER: Final = "X-Dashboard-Token"
"""The header with the second secret, which is required for action requests.

Only dashboard pages contain this secret.
"""

METHODS: Final = frozenset({"GET", "POST"})
OWN_SITES: Final = frozenset({"same-origin", "none"})
"""The values of `Sec-Fetch-Site` for requests from dashboard pages and for typed addresses."""

LONGEST_ADDRESS: Final = 4096

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy. It permits scripts and styles from this server, and denies frames."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of all responses, including rejections."""


class Rejection(Enum):
    """The reasons to reject a request, with the status and the message of the response."""

    HOST = (403, "this address differs from the address that `lws dashboard` printed")
    ORIGIN = (403, "requests from other pages are not allowed")
    METHOD = (405, "use GET to read the dashboard, and POST for actions")
    ADDRESS = (414, "the address is too long")
    NO_SESSION = (403, "open the link that `lws dashboard` printed; each link can be used once, in one browser")
    USED = (403, "this link was already used; restart `lws dashboard` to get a new link")
    READ_ONLY = (403, "the dashboard is read-only; use `lws dashboard --allow-actions` to allow actions")
    FORGED = (403, "the action does not originate from a page of this dashboard; reload the page")

    @property
    def status(self) -> int:
        """Return the status of the response."""
        return self.value[0]

    @property
    def text(self) -> str:
        """Return the message of the response."""
        return self.value[1]


class RequestHead(Struct, frozen=True, kw_only=True):
    """The parts of a request that are checked. If a header is repeated, it has several values."""

    method: str
    path: str
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    sites: Sequence[str] = ()
    cookies: Sequence[str] = ()
    action_tokens: Sequence[str] = ()


@dataclass(slots=True, kw_only=True)
class Secrets:
    """The random secrets of a server. The caller creates them, and `link_token` is empty after its use."""

    path_prefix: str
    link_token: str
    session_token: str
    action_token: str
    is_used: bool = field(default=False, init=False)

    def redeem(self, token: str) -> bool:
        """Return whether this link token opens the session. It can be used only once."""
        is_right = are_equal(token, self.link_token) and not self.is_used
        self.is_used = self.is_used or is_right
        return is_right


class RequestChecks(Struct, frozen=True):
    """The checks of a server that listens on `port` of 127.0.0.1 and serves pages below `/place/`."""

    secrets: Secrets
    port: int
    allows_actions: bool = False

    @property
    def base(self) -> str:
        """Return the common path prefix of all addresses."""
        return f"/{self.secrets.path_prefix}/" if self.secrets.path_prefix else "/"

    @property
    def hosts(self) -> frozenset[str]:
        """Return the values of `Host` that are accepted."""
        return frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})

    def rejection(self, request: RequestHead) -> Rejection | None:
        """Return the reason why a request is rejected, or None if it is accepted.

        `redeem` checks the link token.
        """
        if (refusal := self._common_rejection(request)) is not None or self.is_link(request):
            return refusal
        if not set(request.sites) <= OWN_SITES:
            return Rejection.ORIGIN
        if not self.has_session(request):
            return Rejection.NO_SESSION
        return self._action_rejection(request) if request.method == "POST" else None

    def _common_rejection(self, request: RequestHead) -> Rejection | None:
        """Return the reason why a request is rejected for all browsers, or None if there is no such reason."""
        if len(request.hosts) != 1 or request.hosts[0] not in self.hosts:
            return Rejection.HOST
        if len(request.path) > LONGEST_ADDRESS:
            return Rejection.ADDRESS
        if request.method not in METHODS:
            return Rejection.METHOD
        return Rejection.ORIGIN if any(origin != f"http://{request.hosts[0]}" for origin in request.origins) else None

    def is_link(self, request: RequestHead) -> bool:
        """Return whether a request uses the link that opens the dashboard, from outside the dashboard."""
        return request.method == "GET" and request.path == f"{self.base}open"

    def has_session(self, request: RequestHead) -> bool:
        """Return whether a request contains the session cookie."""
        session = find_session(request.cookies)
        return session is not None and are_equal(session, self.secrets.session_token)

    def _action_rejection(self, request: RequestHead) -> Rejection | None:
        if not self.allows_actions:
            return Rejection.READ_ONLY
        tokens = request.action_tokens
        is_own = bool(request.origins) and len(tokens) == 1 and are_equal(tokens[0], self.secrets.action_token)
        return None if is_own else Rejection.FORGED


def find_session(cookies: Iterable[str]) -> str | None:
    """Return the session in the cookie headers, or None if there is not exactly one session.

    >>> find_session(["theme=dark; lws-dashboard=7"]), find_session(["lws-dashboard=7", "lws-dashboard=8"])
    ('7', None)
    """
    values = [value for header in cookies for value in re.findall(rf"(?:^|;)\s*{COOKIE}=([^;]*)", header)]
    return values[0] if len(values) == 1 else None


def are_equal(left: str, right: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(left.encode(errors="surrogateescape"), right.encode())
