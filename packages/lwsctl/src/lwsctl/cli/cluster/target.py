"""Connects to the cluster of a command, which is selected by kubeconfig or by the name of a local cluster."""

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import lwsctl
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.errors import NotConfiguredError
from lwsctl.cli import suggestions
from lwsctl.cli.cluster import clusterdirectories, keepalive
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.cluster.keepalive import Keepalive
from lwsctl.cli.cluster.reconnectingtransport import ReconnectingTransport
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.views.terminal import print_text
from lwsctl.model.events.scaleups import NODE_PATIENCE

if TYPE_CHECKING:
    from kuberuntime.access.access import Access
    from kuberuntime.client.channels import Channels  # it imports aiohttp, which usage errors do not need
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kuberuntime.client.transport import Request, Response, StreamResponse, Transport

describe_warning: ContextVar[Callable[[str], str]] = ContextVar("describe_warning")
"""Adds the location in the manifest to warnings about the applied object."""

WARNING: Final = re.compile(r'299 \S+ ("(?:[^"\\]|\\.)*")')


class WarningTransport:
    """A transport that reports the warnings in responses."""

    def __init__(self, inner: Transport, say: Callable[[str], None]) -> None:
        self._inner = inner
        self._report = say
        self._reported: set[str] = set()

    async def request(self, request: Request) -> Response:
        """Send a request, report the server's warnings, and return the response."""
        response = await self._inner.request(request)
        describe = describe_warning.get(str)
        for text in map(describe, warnings_of(response.headers)):
            if text not in self._reported:
                self._reported.add(text)
                self._report(f"Warning: {text}")
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send a request, and yield the response as a stream."""
        return self._inner.stream(request)

    async def close(self) -> None:
        """Close the connections of the inner transport."""
        await self._inner.close()


def warnings_of(headers: Mapping[str, str]) -> Iterator[str]:
    r"""Yield the warnings in HTTP headers.

    >>> list(warnings_of({"warning": '299 - "unknown field \\"a\\"", 299 - "deprecated"'}))
    ['unknown field "a"', 'deprecated']
    """
    for quoted in WARNING.findall(headers.get("warning", "")):
        try:
            yield msgspec.json.decode(quoted, type=str)
        except msgspec.DecodeError:  # not a valid JSON escape
            yield quoted[1:-1]


T = TypeVar("T")

OpenChannels: TypeAlias = Callable[[str, Query, str], AbstractAsyncContextManager["Channels"]]


def print_warning(text: str) -> None:
    """Print an API server warning."""
    print_text(text, err=True)


class Session(msgspec.Struct, frozen=True):
    """An open client, the namespace of a command, and the function that opens channels.

    The arguments of the function are a path, a query and a protocol.

    The keepalive reports to waiting commands that the cluster has stopped. `lws` and `kubectl` are the commands in
    hints, with the options that select this cluster. `kubectl` is empty for a local cluster. If `until_done` is set,
    the command or the run waits until all ranks complete. `images` are the images that a local cluster maps to
    directories, or None if unknown. `cluster`, `context` and `user` are names in the kubeconfig, for users. A session
    that outlives its cluster calls the functions in `on_renewal` after it has read a new kubeconfig. `node_patience` is
    the time for which a node that an autoscaler adds counts as progress. A local cluster records failures in `history`.
    """

    client: Client
    namespace: str
    channels: OpenChannels
    keepalive: Keepalive = msgspec.field(default_factory=Keepalive)
    lws: str = "lws"
    kubectl: str = "kubectl"
    until_done: bool = False
    images: tuple[str, ...] | None = None
    cluster: str = ""
    context: str = ""
    user: str = ""
    on_renewal: list[Callable[[], None]] = msgspec.field(default_factory=list)
    node_patience: timedelta = NODE_PATIENCE
    history: Path | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The options that select a cluster. `local` is the name of a local cluster."""

    namespace: str | None = None
    context_name: str | None = None
    kubeconfig: str | None = None
    local: str | None = None
    node_patience: timedelta = NODE_PATIENCE

    @asynccontextmanager
    async def session(self, *, outlives: bool = False) -> AsyncIterator[Session]:
        """Connect to the cluster.

        Configuration errors are raised immediately, and network errors by the first request.

        If the session `outlives` its cluster, it rereads the kubeconfig when the server does not respond or rejects
        the user.
        """
        from kuberuntime import lightaiohttp

        lightaiohttp.load()
        from kuberuntime.access import kubeconfig
        from kuberuntime.client.http import HTTPTransport

        place = self._local_place() if self.local else None
        path = str(place.kubeconfig) if place else self.kubeconfig
        if own := place or clusterdirectories.find_by_kubeconfig(Path(path or os.environ.get("KUBECONFIG", ""))):
            keepalive.require_running(own)
        load = partial(kubeconfig.load, os.environ, kubeconfig=path or "", context=self.context_name or "")
        connect = partial(HTTPTransport, user_agent=f"lws/{lwsctl.__version__}")
        try:
            access = load()
        except NotConfiguredError as error:
            raise CommandError(f"{error}; {_local_cluster_hint()}") from error
        files = partial(kubeconfig.find, os.environ, path or "")
        transport = ReconnectingTransport(files, lambda: connect(load())) if outlives else connect(access)
        client = Client(WarningTransport(transport, print_warning), field_validation="Strict")
        try:
            yield Session(
                client,
                self.namespace or access.namespace,
                transport.channels,
                Keepalive(place),
                *self._commands(place),
                until_done=own is not None and own.until_done.exists(),
                node_patience=self.node_patience,
                images=None if own is None else own.mapped_images(),
                cluster=f"{self.local} (on this machine)" if place else access.cluster or access.server,
                context=access.context,
                user=access.user,
                on_renewal=transport.on_renewal if isinstance(transport, ReconnectingTransport) else [],
                history=None if own is None else own.records,
            )
        finally:
            await client.close()

    def access(self) -> "Access":
        """Return the connection settings of the cluster. Raise an error if the configuration is invalid."""
        from kuberuntime.access import kubeconfig

        path = str(self._local_place().kubeconfig) if self.local else self.kubeconfig
        return kubeconfig.load(os.environ, kubeconfig=path or "", context=self.context_name or "")

    def options(self) -> list[str]:
        """Return the `lws` options that select this cluster."""
        values = {"--kubeconfig": self.kubeconfig, "--context": self.context_name, "--local": self.local}
        return [f"{option}={value}" for option, value in values.items() if value]

    def run(self, run_command: Callable[[Session], Awaitable[T]]) -> T:
        """Connect to the cluster, call a function with the session, and return its result."""

        async def connected() -> T:
            async with self.session() as session:
                return await run_command(session)

        return asyncio.run(connected())

    def cluster_name(self, argument: str | None) -> str:
        """Return the name of the local cluster from the command argument or from --local."""
        if self.kubeconfig or self.context_name or self.namespace:
            raise UsageError("this command supports only local clusters; remove -n, --kubeconfig and --context")
        if argument and self.local and argument != self.local:
            raise UsageError(f"cluster {argument} and --local={self.local} select different clusters; specify only one")
        return argument or self.local or clusterdirectories.DEFAULT

    def _commands(self, place: ClusterDirectory | None) -> tuple[str, str]:
        """Return the lws and kubectl commands for hints, with options that select the same cluster."""
        words = [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        words += [f"--context={self.context_name}"] if self.context_name else []
        if place:
            return f"lws {place.options_text}", ""
        return shlex.join(["lws", *words]), shlex.join(["kubectl", *words])

    def _local_place(self) -> ClusterDirectory:
        if self.kubeconfig or self.context_name:
            raise UsageError("--local selects the cluster; remove --kubeconfig and --context")
        place = clusterdirectories.cluster_directory(self.local or clusterdirectories.DEFAULT)
        if place.pid() is None:
            others = [other.name for other in _running_clusters()]
            hint = f"running: {', '.join(others)}" if others else "no cluster is running"
            if place.has_record and not place.is_cluster:
                words = f"lws {place.options_text} history"
                raise CommandError(f"temporary cluster {place.name} has stopped; use `{words}` to show its failures")
            if meant := suggestions.hint(place.name, others):
                raise CommandError(f"the embedded cluster {place.name} is not running ({hint}){meant}")
            start = keepalive.start_command(place)
            raise CommandError(f"the embedded cluster {place.name} is not running ({hint}); use `{start}` to start it")
        return place


def _running_clusters() -> list[ClusterDirectory]:
    return [place for place in clusterdirectories.all_directories() if place.pid() is not None]


def _local_cluster_hint() -> str:
    """Return the options that select a local cluster, or the command that starts one."""
    addresses = [place.options_text for place in _running_clusters()]
    if not addresses:
        return "or start a local cluster with `lws up`"
    return f"or select {'the cluster' if len(addresses) == 1 else 'a cluster'} on this machine: {', '.join(addresses)}"
