"""Implements the HTTP server of the dashboard. Each request is checked, and the number of streams is limited.

Paths relative to the base: `open` (the link), pages (`address.py`), `stream` for changes and logs
(`browserstreams.py`), `stream/NUMBER/KEY` for its subscriptions, `pane/NAMESPACE/NAME/GROUP/RANK`,
`first-error/sets/NAMESPACE/NAME`, `search`, `static/VERSION/FILE`, and `act` for actions.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final
from urllib.parse import parse_qs

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.objects import decimals
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.serving.bindaddresses import Address as BindAddress
from kuberuntime.serving.limitlistener import connection_limits
from kuberuntime.serving.serving import Listener
from leaderworkerset.api.groupname import parse_group_name
from lwsctl.dashboard import (
    actions,
    address,
    availableactions,
    firsterror,
    logstream,
    pageexport,
    pagesearch,
    rankdetails,
    responses,
    staticfiles,
)
from lwsctl.dashboard.actions import ActionError, Runner
from lwsctl.dashboard.address import PageForm, PageKind
from lwsctl.dashboard.browserstreams import KEY, MOST_TOPICS, BrowserStreams, Topic, Write, line_writer, write_changes
from lwsctl.dashboard.livemodel import LiveModel, run_model
from lwsctl.dashboard.loginpage import LOGIN, VISITOR, LoginPage
from lwsctl.dashboard.loginsessions import LONGEST_TOKEN, Host, LoginSessions
from lwsctl.dashboard.logstream import LogRequest
from lwsctl.dashboard.markup import html_document, tag
from lwsctl.dashboard.pages import htmldocument
from lwsctl.dashboard.pages.header import ClusterIdentity
from lwsctl.dashboard.pages.htmldocument import Serving
from lwsctl.dashboard.requestchecks import COOKIE, Rejection, RequestChecks, Secrets
from lwsctl.dashboard.subscriptions import Subscriptions, page_of
from lwsctl.diagnosis.catalogue import BY_CODE
from lwsctl.observation.conditionwatch import ChangeSource
from lwsctl.views.selection import Selection

LOOPBACK: Final = "127.0.0.1"
CONNECTIONS: Final = 128
MOST_BODY: Final = 4096
"""The maximum size of an action request in bytes."""

PATIENCE: Final = 30.0
"""The timeout of a dry run in seconds."""

LONGEST_ACTION: Final = 660.0
"""The timeout of an action in seconds. It exceeds the time that `lws restart` waits for groups."""

NOBODY: Final = ClusterIdentity()
"""The identity of a dashboard that shows no names."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def new_secrets(place: str | None = None) -> Secrets:
    """Create the secrets of a server. By default, the path prefix of its addresses is random."""
    return Secrets(
        path_prefix=secrets.token_hex(8) if place is None else place,
        link_token=secrets.token_urlsafe(32),
        session_token=secrets.token_urlsafe(32),
        action_token=secrets.token_urlsafe(32),
    )


class UserPermissions(msgspec.Struct, frozen=True):
    """The permissions of a user, which are the secret of the user's pages and the command runner, if any."""

    user: str
    action_token: str
    runner: Runner | None


class Dashboard(msgspec.Struct):
    """The web application of a server. `port` is known once it listens. `runner` runs the commands of actions."""

    model: LiveModel
    subscriptions: Subscriptions
    runner: Runner | None = None
    secrets: Secrets = msgspec.field(default_factory=new_secrets)
    port: int = 0
    about: ClusterIdentity = ClusterIdentity()
    login_page: LoginPage | None = None
    """The login of a shared dashboard. If None, only the browser that opened the link has access."""
    host: str = LOOPBACK
    streams: BrowserStreams = msgspec.field(default_factory=BrowserStreams)
    _listener: Listener | None = None

    async def listen(self, port: int) -> None:
        """Listen on this port, or a free port for 0. Only a shared dashboard serves other machines."""
        limits = connection_limits(CONNECTIONS)
        self._listener = Listener(self.application(), BindAddress(self.host, port), name="dashboard", limits=limits)
        await self._listener.__aenter__()
        self.port = self._listener.port

    async def close(self) -> None:
        """Stop listening, and close all connections. Streams are cancelled, because they never complete."""
        self.streams.close()
        if self._listener is not None:
            await self._listener.__aexit__(None, None, None)
            self._listener = None

    @property
    def request_checks(self) -> RequestChecks:
        """Return the checks for requests."""
        return RequestChecks(self.secrets, self.port, allows_actions=self.runner is not None)

    @property
    def link(self) -> str:
        """Return the link that opens the dashboard. It can be used once."""
        return f"http://{LOOPBACK}:{self.port}{self.request_checks.base}open?token={self.secrets.link_token}"

    def application(self) -> web.Application:
        """Build the web application."""
        most = MOST_BODY if self.login_page is None else MOST_BODY + LONGEST_TOKEN
        application = web.Application(middlewares=[self._guard], client_max_size=most)
        application.router.add_route("*", "/{rest:.*}", self._respond)
        application.on_response_prepare.append(responses.set_headers)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject a request that fails the checks or has no login before any data is read."""
        if self.login_page is not None:
            return await self.login_page.guard(request, handler)
        rejection = self.request_checks.rejection(responses.request_head(request))
        return responses.rejection_response(rejection) if rejection is not None else await handler(request)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        base = self.request_checks.base
        if not request.path.startswith(base):
            return responses.not_found()
        first, *rest = request.path.removeprefix(base).split("/")
        if request.method == "POST":
            return await self._run_action(request) if (first, rest) == ("act", []) else responses.not_found()
        return await self._read(request, first, rest)

    async def _read(self, request: web.Request, first: str, rest: list[str]) -> web.StreamResponse:
        match first, rest:
            case "pane", [namespace, name, group, rank]:
                return await self._pane(ObjectKey(namespace, name), group, rank)
            case "first-error", [("sets" | "disaggregated") as kind, namespace, name]:
                return await self._first_error(request, kind, ObjectKey(namespace, name))
            case "stream", []:
                return await self._stream(request)
            case "stream", [ident, key]:
                return self._change(request, ident, key)
            case _:
                return self._respond_without_cluster(request, first, rest) or await self._page(
                    request, "/".join([first, *rest])
                )

    def _permissions(self, request: web.Request) -> UserPermissions:
        """Return the permissions of the user of a request."""
        if self.login_page is None:
            return UserPermissions(self.about.user, self.secrets.action_token, self.runner)
        visitor = request[VISITOR]
        return UserPermissions(visitor.user, visitor.action_token, self.login_page.sessions.host.runner(visitor.token))

    def _respond_without_cluster(self, request: web.Request, first: str, rest: list[str]) -> web.StreamResponse | None:
        """Return responses that do not require the API server, or None if the address is different."""
        match first, rest:
            case "open", [] if self.login_page is None:
                return self._open_session(request)
            case "static", [version, name]:
                return responses.static_file(version, name)
            case "search", []:
                return responses.html_response(pagesearch.results_html(self.model.snapshot, request.query.get("q", "")))
            case _:
                return None

    def _open_session(self, request: web.Request) -> web.StreamResponse:
        """Exchange the link token for the session cookie. The response redirects the browser."""
        if not self.secrets.redeem(request.query.get("token", "")):
            return responses.rejection_response(Rejection.USED)
        base = self.request_checks.base
        onward = tag("meta", http_equiv="refresh", content=f"0; url={base}")
        icon = tag(
            "link", rel="icon", href=f"{base}{staticfiles.directory()}/icon.svg"
        )  # otherwise, browsers request it from a different path
        response = responses.html_response(html_document("lws", [onward, icon], tag("body")))
        response.set_cookie(COOKIE, self.secrets.session_token, path=base, httponly=True, samesite="Strict")
        return response

    async def _page(self, request: web.Request, path: str) -> web.StreamResponse:
        try:
            page_address = address.parse(path, request.query)
        except address.NoSuchPageError:
            return responses.not_found_page(self.request_checks.base)
        if page_address.format in (PageForm.PAGE, PageForm.TABLE):
            return await self._respond_with_page(request, page_address)
        exported = (self.model.snapshot, page_address, await self.subscriptions.facts(page_address))
        if page_address.format is PageForm.TEXT:
            return web.Response(text=pageexport.text(*exported))
        saved = responses.html_response(pageexport.render_document(*exported))
        saved.headers["Content-Disposition"] = "attachment"
        return saved

    async def _respond_with_page(self, request: web.Request, page_address: address.Address) -> web.StreamResponse:
        channel = await self.subscriptions.channel(page_address)
        rights = self._permissions(request)
        serving = Serving(
            base=self.request_checks.base,
            action=rights.action_token if rights.runner else "",
            about=replace(self.about, user=rights.user, login_name=LOGIN if self.login_page else ""),
            namespace=self.model.namespace,
        )
        response = responses.html_response(
            htmldocument.document(page_of(page_address), page_address, channel.shown, channel.ident, serving)
        )
        if not serving.action:
            response.enable_compression()  # the length of a compressed page could reveal its secret
        if not self._exists(page_address):
            response.set_status(404)
        return response

    def _exists(self, page_address: address.Address) -> bool:
        """Return whether the object of a page exists. Recorded failures may exist after their set is deleted."""
        match page_address.kind:
            case PageKind.SET | PageKind.WHOLE | PageKind.ROLLOUT | PageKind.LOGS:
                snapshot = self.model.snapshot
                find = snapshot.find_disaggregatedset if page_address.is_disaggregatedset else snapshot.find
                return find(page_address.key) is not None
            case PageKind.CAUSE:
                return page_address.episode in BY_CODE
            case _:
                return True

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Send the page changes and log lines that a browser subscribes to."""
        user, first = self._user(request), None
        if "of" in request.query:
            key = request.query.get("key", "")
            if (topic := self._topic(key, request.query)) is None:
                return responses.not_found()
            first = (key, topic)
        if most := self.streams.exceeded_limit(user, is_shared=self.login_page is not None):
            return responses.too_many_streams(most)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})

        async def admits() -> bool:
            return self.login_page is None or await self.login_page.admits(request)

        try:
            await response.prepare(request)
            await self.streams.serve(user, response.write, first, admits)
        except* (ConnectionError, TimeoutError):  # the browser has disconnected, or does not read
            pass
        return response

    def _change(self, request: web.Request, ident: str, key: str) -> web.StreamResponse:
        """Add a subscription to an open stream, or remove it from the stream."""
        user = self._user(request)
        stream = self.streams.find(ident, user)
        if stream is None:
            return web.Response(status=410, text="this stream is closed\n")
        if "of" not in request.query:
            stream.remove(key)
            return web.Response(status=204)
        if (topic := self._topic(key, request.query)) is None:
            return responses.not_found()
        if self.streams.is_full(user):
            return responses.too_many_streams(MOST_TOPICS)
        stream.add(key, topic)
        return web.Response(status=204)

    def _topic(self, key: str, query: Mapping[str, str]) -> Topic | None:
        """Return the subscription of a query.

        It is a page since a given state, or `logs/KIND/NAMESPACE/NAME?rank=PLACE`.
        """
        if not KEY.fullmatch(key):
            return None
        path, _, text = query["of"].partition("?")
        own = parse_qs(text)
        match path.split("/"):
            case ["logs", ("sets" | "disaggregated") as kind, namespace, name]:
                ranks, tail = logstream.parse(own.get("rank", [])), decimals.natural(own.get("tail", [""])[-1])
                if ranks is None:
                    return None
                log_request = LogRequest(
                    key=ObjectKey(namespace, name),
                    is_disaggregatedset=kind == "disaggregated",
                    ranks=ranks if ranks.choices else logstream.LEADERS,
                    tail=min(tail or logstream.TAIL, logstream.MOST_TAIL),
                )
                return lambda write: logstream.send(self.model, log_request, line_writer(write))
            case _:
                with suppress(address.NoSuchPageError):
                    page_address = address.parse(path, {name: values[-1] for name, values in own.items()})
                    return partial(self._follow, page_address, query.get("from", ""))
                return None

    async def _follow(self, page_address: address.Address, last: str, write: Write) -> None:
        async with self.subscriptions.subscribe(page_address) as channel:
            await write_changes(channel, last, write)

    def _user(self, request: web.Request) -> str:
        return self.about.user if self.login_page is None else request[VISITOR].user

    async def _first_error(self, request: web.Request, kind: str, key: ObjectKey) -> web.StreamResponse:
        owners = self.model.snapshot.members(key, is_disaggregatedset=kind == "disaggregated")
        ranks = logstream.parse(request.query.getall("rank", []))
        if not owners or ranks is None:
            return responses.not_found()
        first = await firsterror.find_first_error(self.model.client, firsterror.ranks_to_search(owners, ranks))
        return web.json_response(None if first is None else msgspec.to_builtins(first))

    async def _pane(self, key: ObjectKey, group: str, rank: str) -> web.StreamResponse:
        view, number = self.model.snapshot.find(key), decimals.natural(rank)
        if view is None or number is None:
            return responses.not_found()
        panel = await rankdetails.rank_panel(self.model, view, Selection(view.name, parse_group_name(group), number))
        return responses.not_found() if panel is None else responses.html_response(panel)

    async def _run_action(self, request: web.Request) -> web.StreamResponse:
        """Run the command of an action. Unless the user has confirmed it, run it as a dry run."""
        rights = self._permissions(request)
        if rights.runner is None:  # the checks have rejected it, unless the dashboard is shared
            return responses.rejection_response(Rejection.READ_ONLY)
        try:
            action = msgspec.json.decode(await request.read(), type=dict[str, object])
            words = actions.command_arguments(action)
        except web.HTTPRequestEntityTooLarge:
            return responses.rejection_response(Rejection.ADDRESS)
        except (msgspec.DecodeError, ActionError, RecursionError) as error:  # JSON that is nested too deeply
            return web.json_response({"error": str(error)}, status=422)
        is_trial = action.get("confirmed") is not True
        limit = PATIENCE if is_trial else LONGEST_ACTION
        try:
            async with timeouts.within(limit):
                is_done, text = await rights.runner([*words, "--dry-run"] if is_trial else words)
        except TimeoutError:
            is_done, text = False, f"not complete after {limit:g} s"
        log.info("action", user=rights.user, command=" ".join(words), trial=is_trial, done=is_done)
        command = " ".join([self.model.commands.lws if self.login_page is None else "lws", *words])
        response = {
            "command": command,
            "done": is_done,
            "text": text,
            "ends": availableactions.describe_stopped_groups(action, self.model.snapshot),
        }
        return web.json_response(response)


@asynccontextmanager
async def serve_local(
    model: LiveModel, runner: Runner | None, port: int, *beside: ChangeSource, about: ClusterIdentity = NOBODY
) -> AsyncIterator[Dashboard]:
    """Serve a dashboard while the context is active. `beside` can stop it with an error."""
    async with _serve(Dashboard(model, Subscriptions(model), runner, about=about), port, *beside) as dashboard:
        yield dashboard


@asynccontextmanager
async def serve_shared(
    model: LiveModel, host: Host, where: BindAddress, about: ClusterIdentity = NOBODY
) -> AsyncIterator[Dashboard]:
    """Serve a dashboard on this address for all users with an accepted token."""
    door = LoginPage(LoginSessions(host, model.clock, lambda: secrets.token_urlsafe(32)), about.title)
    async with _serve(
        Dashboard(
            model, Subscriptions(model), about=about, login_page=door, host=where.host, secrets=new_secrets(place="")
        ),
        where.port,
    ) as dashboard:
        yield dashboard


@asynccontextmanager
async def _serve(dashboard: Dashboard, port: int, *beside: ChangeSource) -> AsyncIterator[Dashboard]:
    async with run_model(dashboard.model, *beside), asyncio.TaskGroup() as tasks:
        await dashboard.listen(port)
        showing = tasks.create_task(dashboard.subscriptions.run())
        try:
            yield dashboard
        finally:
            showing.cancel()
            await dashboard.close()
