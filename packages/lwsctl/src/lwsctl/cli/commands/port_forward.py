"""`lws port-forward`: listens on a local port and forwards connections to a port of a rank."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import click

from kuberuntime.client import channels
from kuberuntime.client.channels import Channels
from kuberuntime.client.client import Client
from kuberuntime.errors import APIError, ConnectionFailedError, KubeError, NotFoundError
from kuberuntime.objects import decimals, meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.serving.bindaddresses import HIGHEST_PORT
from kuberuntime.serving.signals import stop_event
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.shell import completion
from lwsctl.cli.views.terminal import print_text

PIECE = 64 * 1024
BETWEEN_CHECKS: Final = 1.0
"""The interval in seconds between checks whether the pod exists."""

PATIENCE: Final = 3
"""The number of consecutive failed checks after which the cluster is considered stopped."""

DATA, ERROR = 0, 1
"""The two streams of a connection, which forwards only one port."""


@click.command("port-forward")
@click.argument("name", metavar="LWS[/GROUP[/RANK]]", shell_complete=completion.names)
@click.argument("ports", nargs=-1, required=True, metavar="[LOCAL:]REMOTE...")
@click.option(
    "--address", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Local address to listen on."
)
@click.pass_obj
def command(target: Target, name: str, ports: tuple[str, ...], address: str) -> None:
    """Forward one or more local ports to a rank.

    The rank defaults to the leader. If LOCAL is omitted, it is the same as REMOTE. If LOCAL is 0, a random port is used.
    """
    selection = targets.parse(name)
    pairs = [parse(words) for words in ports]

    async def run_command(session: Session) -> None:
        async with stop_event() as stopped, AsyncExitStack() as servers:
            pod = await targets.find_pod(session, selection)
            require_scheduled(pod)
            for local, remote in pairs:
                server = await servers.enter_async_context(listen(session, pod, (address, local), remote))
                bound = server.sockets[0].getsockname()
                print_text(f"{bound[0]}:{bound[1]} -> {meta.name(pod)}:{remote}")
            await wait_for_end(session, pod, stopped)

    target.run(run_command)


def require_scheduled(pod: JSONObject) -> None:
    """Raise an error if a pod is not scheduled or is already terminated."""
    if not meta.spec(pod).get("nodeName") or podstate.has_ended(pod):
        raise CommandError(f"pod {meta.name(pod)} is not running: {podstate.state(pod)}")


async def wait_for_end(session: Session, pod: JSONObject, stopped: asyncio.Event) -> None:
    """Wait for a stop request. Raise an error if the pod or cluster stops."""
    lost, stop = asyncio.ensure_future(wait_until_lost(session.client, pod)), asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({lost, stop}, return_when=asyncio.FIRST_COMPLETED)
        if lost.done() and not stop.done():
            raise CommandError(f"port-forward stopped: {lost.result()}")
    finally:
        lost.cancel()
        stop.cancel()


async def wait_until_lost(client: Client, pod: JSONObject) -> str:
    """Wait until the pod is no longer reachable, and return the reason."""
    name, failures = meta.name(pod), 0
    while True:
        await asyncio.sleep(BETWEEN_CHECKS)
        try:
            current = await client.get(PODS, meta.key(pod))
        except NotFoundError:
            return f"pod {name} no longer exists"
        except ConnectionFailedError as error:
            failures += 1
            if failures == PATIENCE:
                return f"the cluster no longer responds: {error}"
            continue
        except APIError:
            continue  # the server responds, so its error may be temporary
        failures = 0
        if meta.uid(current) != meta.uid(pod):
            return f"pod {name} was replaced by a new pod"
        if podstate.has_ended(current):
            return f"pod {name} has terminated"


def parse(argument: str) -> tuple[int, int]:
    """Parse [LOCAL:]REMOTE. If LOCAL is omitted, both ports are the same.

    >>> parse("8080"), parse("9000:80"), parse(":80")
    ((8080, 8080), (9000, 80), (0, 80))
    """
    local, separator, remote = argument.rpartition(":")
    here, there = decimals.natural(local or ("0" if separator else remote)), decimals.natural(remote)
    if here is None or there is None or here > HIGHEST_PORT or not 0 < there <= HIGHEST_PORT:
        raise UsageError(f"{argument!r}: use [LOCAL:]REMOTE with port numbers from 1 to 65535")
    return here, there


@asynccontextmanager
async def listen(
    session: Session, pod: JSONObject, address: tuple[str, int], remote: int
) -> AsyncIterator[asyncio.Server]:
    """Listen on a local port while the context is active. Every connection uses a separate WebSocket.

    On exit, the context does not wait for open connections, unlike `asyncio.Server` in Python 3.12.1 and later.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = PODS.path(meta.namespace(pod), meta.name(pod), "portforward")
        try:
            async with session.channels(path, (("ports", str(remote)),), channels.PORTS_PROTOCOL) as streams:
                await copy_bytes(streams, reader, writer)
        except (KubeError, CommandError, OSError) as error:
            print_text(f"{meta.name(pod)}:{remote}: {error}", err=True)
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = tasks.create_task(serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    connections: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as tasks:
        server = await _listen(accept, address)
        try:
            yield server
        finally:
            server.close()
            for connection in connections:
                connection.cancel()


async def _listen(
    accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None], address: tuple[str, int]
) -> asyncio.Server:
    try:
        return await asyncio.start_server(accept, *address)
    except OSError as error:
        raise CommandError(f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from error


async def copy_bytes(streams: Channels, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes in both directions until one side closes the connection."""

    async def upwards() -> None:
        while piece := await reader.read(PIECE):
            await streams.send(DATA, piece)

    sending = asyncio.create_task(upwards())
    greeted: set[int] = set()
    try:
        while piece := await streams.receive():
            channel, data = piece
            if channel not in greeted:
                greeted.add(channel)  # the first chunk of each stream repeats the port in little-endian
                data = data[struct.calcsize("<H") :]
            if channel == ERROR and data:
                raise CommandError(data.decode(errors="replace"))
            writer.write(data)
            await writer.drain()
    finally:
        sending.cancel()
