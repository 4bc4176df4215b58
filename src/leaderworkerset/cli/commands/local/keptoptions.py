"""The options of a cluster, kept beside its objects for the next `lws up`.

In: what was typed now, and which of it. Out: the options to start with, and the words that say what came from before.
They are written once a cluster is up, so that options with which none starts are not kept.
"""

from collections.abc import Collection
from dataclasses import asdict, replace
from typing import Any, Final

import msgspec

from leaderworkerset.cli.cluster.places import Place
from leaderworkerset.cli.commands.local.clusteroptions import ClusterOptions
from leaderworkerset.cli.errors import CommandError

FILE: Final = "options.json"

SINGLE: Final = ("log_level", "log_format")
"""Options of one start: the next one begins with their defaults."""


def load(place: Place) -> ClusterOptions | None:
    """Return the options of the last start, None where none are kept."""
    path = place.directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterOptions, dec_hook=_decode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise CommandError(f"{path}: {error}; `lws up {place.name} --defaults` begins without it") from error


def save(place: Place, options: ClusterOptions) -> None:
    """Keep the options for the next start."""
    from localkube.cluster import open_private

    content = msgspec.json.encode(
        {name: value for name, value in asdict(options).items() if name not in SINGLE}, enc_hook=str
    )
    path = place.directory / FILE
    fresh = path.with_suffix(".new")
    try:
        with open_private(fresh) as file:
            file.truncate(0)
            file.write(content)
        fresh.replace(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def combined(typed: ClusterOptions, given: Collection[str], kept: ClusterOptions | None) -> ClusterOptions:
    """Return what was typed now, and for the rest what was kept."""
    if kept is None:
        return typed
    return replace(kept, **{name: getattr(typed, name) for name in {*given, *SINGLE}})


def difference(options: ClusterOptions, base: ClusterOptions) -> list[str]:
    """Return the words of the command line in which options differ from others."""
    known = set(base.words())
    return [word for word in options.words() if word not in known]


def _decode(kind: Any, text: Any) -> Any:
    """Make a path of what was written of it, the one type of an option that JSON does not have."""
    return kind(text)
