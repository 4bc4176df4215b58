"""The arguments of `lws cp`: a path of this machine, or `LWS[/GROUP[/RANK]]:PATH`. Pure."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from leaderworkerset.cli import targets
from leaderworkerset.cli.errors import UsageError
from leaderworkerset.views.selection import Selection

REMOTE: Final = re.compile(r"([a-z0-9][-a-z0-9.]*(?:/[a-z0-9]+){0,2}):(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Remote:
    """A path in the ranks that are selected."""

    chosen: Selection
    path: str

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def parent(self) -> str:
        """Return the directory of the path."""
        return str(PurePosixPath(self.path).parent)


def parse(words: str) -> Remote | str:
    """Read one argument; without an address before a colon it is a path of this machine.

    >>> parse("web/0/1:/tmp/a"), parse("./web:a")
    (Remote(chosen=Selection(name='web', group=0, rank=1), path='/tmp/a'), './web:a')
    """
    match = REMOTE.fullmatch(words)
    return Remote(targets.parse(match[1]), match[2]) if match else words


@dataclass(frozen=True, slots=True)
class Upload:
    """Files of this machine, and their destination in ranks."""

    sources: tuple[str, ...]
    to: Remote


@dataclass(frozen=True, slots=True)
class Download:
    """Paths in ranks, and their destination on this machine."""

    sources: tuple[Remote, ...]
    to: str


def direction(words: tuple[str, ...]) -> Upload | Download:
    """Return what is copied where; exactly one side is in ranks."""
    *sources, to = map(parse, words)
    if not sources:
        raise UsageError("name what to copy, and where to: lws cp FILE... web/0/1:/tmp, or lws cp web/0/1:/tmp/FILE .")
    local = tuple(one for one in sources if isinstance(one, str))
    remote = tuple(one for one in sources if isinstance(one, Remote))
    if isinstance(to, Remote) and not remote:
        return Upload(local, to)
    if isinstance(to, str) and not local:
        if nameless := next((one.path for one in remote if one.name in {"", ".."}), None):
            raise UsageError(f"{nameless!r} has no name that the copy could have: name a file or a directory")
        return Download(remote, to)
    raise UsageError("copy from this machine to ranks (LWS/GROUP/RANK:PATH), or from ranks to this machine; not both")
