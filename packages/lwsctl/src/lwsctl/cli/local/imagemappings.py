"""Manages the images that a local cluster maps to directories. `lws up --image` can add mappings while it is running.

The mappings are saved options of the cluster (`savedoptions`). The cluster process rereads them after the file
changes, so that new containers use the new mapping.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lwsctl.cli.cluster.clusterdirectories import OPTIONS, ClusterDirectory
from lwsctl.cli.errors import CommandError
from lwsctl.cli.local import savedoptions
from lwsctl.cli.local.clusteroptions import ClusterOptions


class ImageMappings(Mapping[str, Path]):
    """The image mappings of a cluster, including mappings that were added after its start."""

    def __init__(self, place: ClusterDirectory, options: ClusterOptions) -> None:
        self._place = place
        self._images = dict(options.images)
        self._changed = self._modification_time()

    def __getitem__(self, name: str) -> Path:
        return self._current()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._current())

    def __len__(self) -> int:
        return len(self._current())

    def _current(self) -> Mapping[str, Path]:
        if (time := self._modification_time()) != self._changed:
            self._changed = time
            with suppress(CommandError):  # unreadable, so keep the previous mappings
                options = savedoptions.load(self._place)
                self._images = dict(options.images) if options is not None else self._images
        return self._images

    def _modification_time(self) -> int:
        try:
            return (self._place.directory / OPTIONS).stat().st_mtime_ns
        except OSError:
            return 0


def merge_mappings(options: ClusterOptions, typed: ClusterOptions) -> tuple[tuple[str, Path], ...]:
    """Return the mappings of the cluster, combined with the mappings of a command.

    The mappings of the command take precedence.
    """
    return tuple((dict(options.images) | dict(typed.images)).items())
