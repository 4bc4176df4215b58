"""Resolves pod names for plain processes, which have neither a separate host name nor a separate /etc/hosts.

Python programs resolve names by `resolver/sitecustomize.py`, which they import automatically. Other programs resolve
them if the library nss_wrapper is installed (Debian's package libnss-wrapper), which replaces the C library's resolver.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from localkube.kubelet.sandbox.resolver.sitecustomize import HOSTNAME, HOSTS

WRAPPERS: Final = ("libnss_wrapper.so", "libnss_wrapper.so.0")
"""The names of the library. Distributions install one or both of them."""

LONGEST: Final = 10.0
"""The maximum number of seconds until a process without work exits."""

RESOLVER: Final = Path(__file__).parent / "resolver"

ONLY_PYTHON: Final = "host names and pod names in non-Python processes: libnss_wrapper is not installed"
"""The limitations if the library is not installed."""


def find_wrapper(candidates: Sequence[str] = WRAPPERS) -> str | None:
    """Return the name of the nss_wrapper library, or None if none works. Each candidate is tested in a process."""
    return next((name for name in candidates if _can_be_preloaded(name)), None)


def _can_be_preloaded(library: str) -> bool:
    """Return whether the loader accepts a library. If not, it starts the process but prints a warning."""
    try:
        tried = subprocess.run(
            ["true"],
            env={**os.environ, "LD_PRELOAD": library},
            capture_output=True,
            check=False,
            timeout=LONGEST,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0 and not tried.stderr


def with_names(env: Mapping[str, str], hosts: Path, hostname: str, wrapper: str | None) -> dict[str, str]:
    """Return the variables of a container, including the variables with which its processes use a hosts file.

    >>> found = with_names({"PYTHONPATH": "/app"}, Path("/run/hosts"), "web-0", "libnss_wrapper.so.0")
    >>> found["PYTHONPATH"] == f"{RESOLVER}:/app"
    True
    >>> found["LD_PRELOAD"], found["NSS_WRAPPER_HOSTS"], found["NSS_WRAPPER_HOSTNAME"]
    ('libnss_wrapper.so.0', '/run/hosts', 'web-0')
    """
    path = _join_paths(str(RESOLVER), env.get("PYTHONPATH"))
    added = {HOSTS: str(hosts), HOSTNAME: hostname, "PYTHONPATH": path}
    if wrapper is not None:
        added["LD_PRELOAD"] = _join_paths(wrapper, env.get("LD_PRELOAD"))
        added |= {"NSS_WRAPPER_HOSTS": str(hosts), "NSS_WRAPPER_HOSTNAME": hostname}
    return {**env, **added}


def _join_paths(first: str, rest: str | None) -> str:
    """Join a list of paths. Omit an empty rest, because an empty entry would be the working directory."""
    return f"{first}:{rest}" if rest else first
