"""Checks the operating system.

The embedded cluster requires Linux, so on other systems an error suggests a command.
"""

import shlex
import sys
from collections.abc import Sequence
from typing import Final

from lwsctl import __version__
from lwsctl.cli.errors import CommandError

IMAGE: Final = f"localhost/lws:{__version__}"
"""The image that `make local-image` builds."""

MACHINES: Final = {"darwin": ("macOS", "in Lima", "lima"), "win32": ("Windows", "in WSL2", "wsl")}
"""The name, the Linux environment and the command prefix of each platform."""


def unsupported_reason(platform: str, arguments: Sequence[str]) -> str:
    """Return the reason why `lws` cannot run with these arguments on a platform, with alternatives.

    On Linux, it is empty.

    >>> unsupported_reason("win32", ["run", "-f", "a.yaml"]).rpartition("; ")[2]
    'in WSL2, use `wsl lws run -f a.yaml`'
    """
    if platform == "linux":
        return ""
    name, place, program = MACHINES.get(platform, (platform, "in a virtual machine", "ssh MACHINE"))
    line = shlex.join(arguments)
    return (
        f"lws {arguments[0]} requires Linux, and this is {name}; in a container, use `podman run --rm -it -v .:/work {IMAGE} {line}`; {place}, use `{program} lws "
        f"{line}`"
    )


def require_linux(arguments: Sequence[str]) -> None:
    """Raise a `CommandError` that suggests an alternative command, unless this system is Linux."""
    if text := unsupported_reason(sys.platform, arguments):
        raise CommandError(text)
