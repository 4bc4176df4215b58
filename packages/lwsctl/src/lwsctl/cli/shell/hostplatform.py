"""The embedded cluster needs Linux: on another system, its commands end with the command that works there."""

import shlex
import sys
from collections.abc import Sequence
from typing import Final

from lwsctl import __version__
from lwsctl.cli.errors import CommandError

IMAGE: Final = f"localhost/lws:{__version__}"
"""The image that `make local-image` builds."""

MACHINES: Final = {"darwin": ("macOS", "in Lima", "lima"), "win32": ("Windows", "in WSL2", "wsl")}
"""By the name of a platform: its usual name, its Linux machine, and the command that runs a program in that."""


def refusal(platform: str, words: Sequence[str]) -> str:
    """Return why `lws` with these words cannot run on a platform, with commands that work; empty on Linux.

    >>> refusal("win32", ["run", "-f", "a.yaml"]).rpartition("; ")[2]
    'in WSL2, use `wsl lws run -f a.yaml`'
    """
    if platform == "linux":
        return ""
    name, place, program = MACHINES.get(platform, (platform, "in a virtual machine", "ssh MACHINE"))
    line = shlex.join(words)
    return (
        f"lws {words[0]} requires Linux, and this is {name}; in a container, use `podman run --rm -it -v .:/work {IMAGE} {line}`; {place}, use `{program} lws "
        f"{line}`"
    )


def require_linux(words: Sequence[str]) -> None:
    """Raise a `CommandError` with the command that works unless this is Linux."""
    if text := refusal(sys.platform, words):
        raise CommandError(text)
