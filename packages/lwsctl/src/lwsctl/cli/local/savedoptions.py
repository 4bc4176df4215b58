"""Stores the options of a cluster for the next `lws up`.

The input is the command-line options. The output is the options to start with, and a note about the saved options.
Options are saved after the cluster has started, so that invalid options are not saved.
"""

from collections.abc import Collection
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace

from lwsctl.cli.cluster.clusterdirectories import OPTIONS, ClusterDirectory
from lwsctl.cli.errors import CommandError
from lwsctl.cli.local.clusteroptions import MISSING, ClusterOptions

SINGLE: Final = ("log_level", "log_format")
"""Options that apply only to a single start. The next start uses their defaults."""


def load(place: ClusterDirectory) -> ClusterOptions | None:
    """Return the options of the previous start, or None if they are not stored."""
    path = place.directory / OPTIONS
    try:
        value: Any = msgspec.json.decode(path.read_bytes())
        if isinstance(value, dict) and isinstance(value.get("stub"), bool):  # the format before --stub had values
            value["stub"] = (MISSING,) if value["stub"] else ()
        # Path is the only option type that JSON does not support.
        return msgspec.convert(value, ClusterOptions, dec_hook=lambda kind, text: kind(text))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise CommandError(f"{path}: {error}; use `lws up {place.name} --defaults` to start without it") from error


def save(place: ClusterDirectory, options: ClusterOptions) -> None:
    """Store the options for the next start."""
    from localkube.cluster import open_private

    content = msgspec.json.encode(
        {name: value for name, value in asdict(options).items() if name not in SINGLE}, enc_hook=str
    )
    path = place.directory / OPTIONS
    fresh = path.with_suffix(".new")
    try:
        with open_private(fresh) as file:
            file.truncate(0)
            file.write(content)
        fresh.replace(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def combine(typed: ClusterOptions, names: Collection[str], previous: ClusterOptions | None) -> ClusterOptions:
    """Return the command-line options, combined with the stored values of all other options."""
    if previous is None:
        return typed
    return replace(previous, **{name: getattr(typed, name) for name in {*names, *SINGLE}})


def difference(options: ClusterOptions, base: ClusterOptions) -> list[str]:
    """Return the command-line arguments for the options that differ from `others`."""
    base_words = set(base.arguments())
    return [word for word in options.arguments() if word not in base_words]
