"""`lws cp`: copies files and directories to or from ranks."""

import asyncio
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

import click
from msgspec import Struct

from kuberuntime.objects import meta
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.copying import archive, transfer
from lwsctl.cli.copying.transfer import RankContainer
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.sharedoptions import container_option
from lwsctl.cli.views.terminal import print_text
from lwsctl.views.podcontainers import default_container
from lwsctl.views.selection import Selection
from lwsctl.views.wording import format_count

REMOTE: Final = re.compile(r"([a-z0-9][-a-z0-9.]*(?:/[a-z0-9]+){0,2}):(.+)", re.DOTALL)


class RankPath(Struct, frozen=True):
    """A path in the selected ranks."""

    selection: Selection
    path: str

    @property
    def name(self) -> str:
        """Return the last component of the path."""
        return PurePosixPath(self.path).name

    @property
    def parent(self) -> str:
        """Return the directory of the path."""
        return str(PurePosixPath(self.path).parent)


def parse(argument: str) -> RankPath | str:
    """Parse an argument. A path without a rank and a colon is a local path.

    >>> parse("web/0/1:/tmp/a"), parse("./web:a")
    (RankPath(selection=Selection(name='web', group=0, rank=1), path='/tmp/a'), './web:a')
    """
    match = REMOTE.fullmatch(argument)
    return RankPath(targets.parse(match[1]), match[2]) if match else argument


class Upload(Struct, frozen=True):
    """Local files and the destination in ranks."""

    sources: tuple[str, ...]
    destination: RankPath


class Download(Struct, frozen=True):
    """Paths in ranks and the local destination."""

    sources: tuple[RankPath, ...]
    destination: str


def direction(words: tuple[str, ...]) -> Upload | Download:
    """Return the direction of the copy. Either the sources or the destination must be in ranks, but not both."""
    *sources, to = map(parse, words)
    if not sources:
        raise UsageError(
            "specify a source and a destination, such as `lws cp FILE... web/0/1:/tmp` or `lws cp web/0/1:/tmp/FILE .`"
        )
    local = tuple(source for source in sources if isinstance(source, str))
    remote = tuple(source for source in sources if isinstance(source, RankPath))
    if isinstance(to, RankPath) and not remote:
        return Upload(local, to)
    if isinstance(to, str) and not local:
        if nameless := next((source.path for source in remote if source.name in {"", ".."}), None):
            raise UsageError(f"{nameless!r} has no file name; specify a file or a directory")
        return Download(remote, to)
    raise UsageError("specify ranks (LWS/GROUP/RANK:PATH) either as the sources or as the destination, but not as both")


AT_ONCE: Final = 8
"""The number of ranks to which files are copied concurrently."""


@click.command("cp")
@container_option
@click.argument("words", nargs=-1, required=True, metavar="SOURCE... DESTINATION")
@click.pass_obj
def command(target: Target, words: tuple[str, ...], container: str | None) -> None:
    """Copy files and directories from this machine to ranks (LWS[/GROUP[/RANK]]:PATH), or from ranks to this machine.

    If you omit the rank, files are copied to or from all ranks in the group. If you also omit the group, files are copied
    to or from all ranks. Files that are copied from several ranks are stored in one directory for each pod. The container
    image must contain the `tar` executable.
    """
    copy = direction(words)
    for source in copy.sources if isinstance(copy, Upload) else ():
        if not Path(source).exists():
            raise CommandError(f"{source}: no such file or directory")

    async def run_command(session: Session) -> None:
        if isinstance(copy, Upload):
            await upload(session, copy, container)
        else:
            await download(session, copy, container)

    target.run(run_command)


async def ranks_of(session: Session, remote: RankPath, container: str | None) -> list[RankContainer]:
    """Return the selected containers."""
    pods = await targets.list_pods(session, remote.selection)
    return [RankContainer(session, pod, container or default_container(pod)) for pod in pods]


async def upload(session: Session, copy: Upload, container: str | None) -> None:
    """Copy all sources to all ranks, with limited concurrency. Errors are reported after all copies are attempted."""
    ranks = await ranks_of(session, copy.destination, container)
    gate = asyncio.Semaphore(AT_ONCE)

    async def copy_to(rank: RankContainer) -> None:
        async with gate:
            await upload_to_rank(rank, copy)

    results = await asyncio.gather(*map(copy_to, ranks), return_exceptions=True)
    failed = [error for error in results if error is not None]
    for error in failed:
        if not isinstance(error, CommandError) or len(failed) == len(ranks) == 1:
            raise error
        print_text(f"error: {error}", err=True)
    if failed:
        raise CommandError(f"the files were not copied to {len(failed)} of {format_count(len(ranks), 'rank')}")
    print_text(f"copied to {format_count(len(ranks), 'rank')}")


async def upload_to_rank(rank: RankContainer, copy: Upload) -> None:
    """Copy the sources to one rank. If the path is a directory, copy into it. Otherwise, use the name of the path."""
    path = copy.destination.path
    is_directory = path.endswith("/") or len(copy.sources) > 1 or await transfer.run(rank, ("test", "-d", path)) == 0
    for source in map(Path, copy.sources):
        name = source.resolve().name if is_directory else copy.destination.name
        directory = path if is_directory else copy.destination.parent
        await transfer.upload(
            rank, ("tar", "xf", "-", "-C", directory), partial(archive.pack, source=source, name=name)
        )


async def download(session: Session, copy: Download, container: str | None) -> None:
    """Copy each path from all ranks in which it exists."""
    pairs = [(remote, rank) for remote in copy.sources for rank in await ranks_of(session, remote, container)]
    several = {remote: sum(other == remote for other, _ in pairs) > 1 for remote in copy.sources}
    count = 0
    for remote, rank in pairs:
        directory, name = destination_path(
            copy.destination, remote, meta.name(rank.pod) if several[remote] else "", copy.sources
        )
        directory.mkdir(parents=True, exist_ok=True)
        words = ("tar", "cf", "-", "-C", remote.parent, f"./{remote.name}")
        count += await transfer.download(rank, words, partial(archive.unpack, destination=directory, name=name))
    print_text(
        f"copied {format_count(count, 'file')} from {format_count(len({str(rank) for _, rank in pairs}), 'rank')}"
    )


def destination_path(to: str, remote: RankPath, pod: str, sources: Sequence[RankPath]) -> tuple[Path, str]:
    """Return the directory and name of a copied path, as `cp` does, below the pod name if specified."""
    path = Path(to)
    if pod:
        return path / pod, remote.name
    if path.is_dir() or to.endswith("/") or len(sources) > 1:
        return path, remote.name
    return path.parent, path.name
