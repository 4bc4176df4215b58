"""Handles the login of a shared dashboard. Requests without a session receive the login page.

Unlike the link of `lws dashboard`, it accepts any host name, because an ingress or a forwarded port has a different
one. Requests must have the same origin. Other sites do not send the cookie (SameSite), and every POST request must
contain the origin. Actions require a second secret of the session.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from kuberuntime.errors import KubeError
from lwsctl.dashboard import staticfiles
from lwsctl.dashboard.loginsessions import LoginRejectedError, LoginSession, LoginSessions
from lwsctl.dashboard.markup import html_document, tag
from lwsctl.dashboard.requestchecks import (
    ACTION_HEADER,
    CONTENT_POLICY,
    COOKIE,
    LONGEST_ADDRESS,
    METHODS,
    OWN_SITES,
    Rejection,
    are_equal,
)

VISITOR: Final = web.RequestKey("visitor", LoginSession)
HEALTH: Final = "/healthz"
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
FILES: Final = tuple(f"/{staticfiles.directory()}/{name}" for name in ("style.css", "icon.svg"))
"""The files that the login page requires."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_POLICY.replace("form-action 'none'", "form-action 'self'"),
    "Referrer-Policy": "same-origin",  # with `no-referrer`, browsers do not send an origin with forms
}
"""Headers of the login page, in addition to the headers that all pages have."""


class LoginPage:
    """Handles logins, and passes other requests to the handler only if the user is logged in."""

    def __init__(self, visitors: LoginSessions, cluster: str = "") -> None:
        self.sessions = visitors
        self._page = partial(page, cluster=cluster)

    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Respond to a request, or pass it to the handler if the user is logged in."""
        if (rejection := rejection_reason(request)) is not None:
            return web.Response(status=rejection.status, text=f"{rejection.text}\n")
        match request.method, request.path:
            case "GET", path if path == HEALTH:
                return web.Response(text="ok\n")
            case "GET", path if path in FILES:
                return await handler(request)
            case "POST", path if path == LOGIN:
                return await self._login(request)
            case "POST", path if path == LOGOUT:
                return self._logout(request)
            case _:
                return await self._handle_session(request, handler)

    async def admits(self, request: web.Request) -> bool:
        """Return whether the user of a stream still has read permission, as for pages."""
        return await self.sessions.find(request.headers.getall("Cookie", [])) is not None

    async def _handle_session(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        visitor = await self.sessions.find(request.headers.getall("Cookie", []))
        is_own = set(request.headers.getall("Sec-Fetch-Site", [])) <= OWN_SITES
        if visitor is None or not is_own:
            return self._page("", status=401)
        if request.path == LOGIN:
            return self._page(f"{visitor.user} is logged in.", logs_out=True)
        tokens = request.headers.getall(ACTION_HEADER, [])
        if request.method == "POST" and not (len(tokens) == 1 and are_equal(tokens[0], visitor.action_token)):
            return web.Response(status=Rejection.FORGED.status, text=f"{Rejection.FORGED.text}\n")
        request[VISITOR] = visitor
        return await handler(request)

    def _logout(self, request: web.Request) -> web.StreamResponse:
        self.sessions.close(request.headers.getall("Cookie", []))
        response = self._page("You are logged out.")
        response.del_cookie(COOKIE, path="/")
        return response

    async def _login(self, request: web.Request) -> web.StreamResponse:
        try:
            token = (await request.post()).get("token")
            session = await self.sessions.open(token.strip() if isinstance(token, str) else "")
        except web.HTTPRequestEntityTooLarge:
            return self._page("The token is too long.", status=422)
        except LoginRejectedError as error:
            return self._page(str(error), status=403)
        except KubeError as error:
            return self._page(f"The API server does not respond: {error}", status=503)
        response = web.Response(status=303, headers={"Location": "/"})
        is_encrypted = request.secure or request.headers.get("X-Forwarded-Proto") == "https"
        response.set_cookie(COOKIE, session, path="/", httponly=True, samesite="Strict", secure=is_encrypted)
        return response


def rejection_reason(request: web.Request) -> Rejection | None:
    """Return the reason why a request is rejected for all users, or None if there is no such reason."""
    hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
    if len(hosts) != 1:
        return Rejection.HOST
    if len(request.path) > LONGEST_ADDRESS:
        return Rejection.ADDRESS
    if request.method not in METHODS:
        return Rejection.METHOD
    is_own = all(
        urlsplit(origin).netloc == hosts[0] and urlsplit(origin).scheme in {"http", "https"} for origin in origins
    )
    if not is_own or (request.method == "POST" and not origins):
        return Rejection.ORIGIN
    return None


def page(note: str, *, status: int = 200, logs_out: bool = False, cluster: str = "") -> web.Response:
    """Return the login page, with a logout button if the browser is logged in."""
    field = tag("input", name="token", type="password", autocomplete="off", required=True, id="token")
    form = tag(
        "form",
        tag("label", "Token ", field),
        tag("button", "Log in", type="submit"),
        method="post",
        action=LOGIN,
        class_="tools",
    )
    logout = tag("form", tag("button", "Log out", type="submit"), method="post", action=LOGOUT, class_="tools")
    needs = "The token requires permission to list LeaderWorkerSets, pods and events, and to read logs. To create a token, for example:"
    main = tag(
        "main",
        tag("p", tag("strong", "lws", class_="brand"), f" {cluster}" if cluster else None),
        tag("h1", f"Log in to {cluster or 'the cluster'}"),
        tag(
            "p",
            "Use a cluster token. The dashboard stores it only in memory, and uses it for your actions.",
        ),
        tag("p", note, role="alert") if note else None,
        logout if logs_out else None,
        form,
        tag("p", needs),
        tag("pre", "kubectl create token SERVICEACCOUNT --namespace NAMESPACE --duration 8h", tabindex=0),
        tag("p", tag("a", "Continue if you are already logged in", href="/")),
        id="main",
        class_="login",
    )
    head = [
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href=FILES[1], type="image/svg+xml"),
        tag("link", rel="stylesheet", href=FILES[0]),
    ]
    html = html_document("Log in · lws", head, tag("body", main))
    return web.Response(text=html, content_type="text/html", charset="utf-8", status=status, headers=HEADERS)
