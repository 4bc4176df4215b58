"""`lws exec`: executes a command in a rank, connects its standard streams, and exits with its exit code."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import click
import msgspec

from kuberuntime.client import channels
from kuberuntime.client.channels import Channels
from kuberuntime.errors import KubeError, NotFoundError
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.copying.transfer import RankContainer
from lwsctl.cli.errors import CommandError
from lwsctl.cli.sharedoptions import container_option, print_selected_container
from lwsctl.cli.shell import completion
from lwsctl.cli.views.terminal import print_text
from lwsctl.views.podcontainers import default_container

PIECE = 32 * 1024

KILLED = 128 + 9
"""The exit code if a command was killed, or if its pod or cluster was stopped."""


@click.command("exec")
@container_option
@click.option("-i", "--stdin", "passes_input", is_flag=True, help="Pass standard input to the container.")
@click.option("-t", "--tty", "terminal", is_flag=True, help="Allocate a terminal (TTY) for the command.")
@click.argument("name", metavar="LWS[/GROUP[/RANK]]", shell_complete=completion.names)
@click.argument("words", nargs=-1, required=True, metavar="[--] COMMAND [ARG]...")
@click.pass_obj
def command(target: Target, /, name: str, words: tuple[str, ...], container: str | None, **flags: bool) -> int:
    """Execute a command in a container of a rank. GROUP defaults to the first group, and RANK to the leader."""
    selection = targets.parse(name)
    has_terminal = flags["terminal"] and sys.stdin.isatty()
    if has_terminal and not hasattr(signal, "SIGWINCH"):
        raise CommandError(f"-t: terminals on {sys.platform} are not supported; remove -t, or use `kubectl exec -it`")

    async def run_command(session: Session) -> int:
        pod = await targets.find_pod(session, selection)
        print_selected_container([pod], container)
        rank = RankContainer(session, pod, container or default_container(pod))
        opened = rank.open_streams(words, with_input=flags["passes_input"], has_terminal=flags["terminal"])
        with raw_terminal() if has_terminal else contextlib.nullcontext():
            code = await copy_streams(opened, passes_input=flags["passes_input"], has_terminal=has_terminal)
        if code == KILLED:
            print_text(
                f"{meta.name(pod)}: the command was killed (exit code {code}){await termination_cause(session, pod)}",
                err=True,
            )
        return code

    return target.run(run_command)


async def termination_cause(session: Session, pod: JSONObject) -> str:
    """Return the reason why a command was killed if its pod or cluster has stopped."""
    try:
        current = await session.client.get(PODS, meta.key(pod))
    except NotFoundError:
        return f": pod {meta.name(pod)} no longer exists"
    except KubeError as error:
        return f": {error}"
    is_over = meta.is_deleting(current) or meta.uid(current) != meta.uid(pod) or podstate.has_ended(current)
    return f": pod {meta.name(pod)} has terminated" if is_over else ""


async def copy_streams(opened: AbstractAsyncContextManager[Channels], *, passes_input: bool, has_terminal: bool) -> int:
    """Copy bytes in both directions until the command exits. Return its exit code."""
    async with opened as streams:
        with resize_with_window(streams) if has_terminal else contextlib.nullcontext():
            if has_terminal:
                await send_terminal_size(streams)  # before the first key, whose effect may depend on it
            sender = asyncio.create_task(send_input(streams)) if passes_input else None
            try:
                return await receive_output(streams)
            finally:
                if sender:
                    sender.cancel()


async def receive_output(streams: Channels) -> int:
    """Print the output of the command, and return its exit code."""
    outputs = {channels.STDOUT: sys.stdout.buffer, channels.STDERR: sys.stderr.buffer}
    while piece := await streams.receive():
        channel, data = piece
        if channel == channels.STATUS:
            return channels.exit_code(data)
        if channel in outputs:
            outputs[channel].write(data)
            outputs[channel].flush()
    raise CommandError("the connection was closed before the command exited")


async def send_input(streams: Channels) -> None:
    """Send stdin to the command until stdin is closed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    except (ValueError, OSError):  # a thread reads regular files, and all input on Windows
        while piece := await asyncio.to_thread(sys.stdin.buffer.read1, PIECE):  # type: ignore[union-attr]
            await streams.send(channels.STDIN, piece)
    else:
        while piece := await reader.read(PIECE):
            await streams.send(channels.STDIN, piece)
    await streams.close_stream(channels.STDIN)


@contextmanager
def raw_terminal() -> Iterator[None]:
    """Send each key to the command. Restore the terminal afterwards."""
    import termios  # neither is available on Windows
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # typed keys are input for the command
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


async def send_terminal_size(streams: Channels) -> None:
    """Send the terminal size to the command on stdin.

    COLUMNS is not used, because it may belong to a different terminal.
    """
    size = os.get_terminal_size(sys.stdin.fileno())
    await streams.send(channels.RESIZE, msgspec.json.encode({"Width": size.columns, "Height": size.lines}))


@contextmanager
def resize_with_window(streams: Channels) -> Iterator[None]:
    """Send the new terminal size to the command whenever the size changes."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def tell() -> None:
        task = loop.create_task(send_terminal_size(streams))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGWINCH, tell)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
