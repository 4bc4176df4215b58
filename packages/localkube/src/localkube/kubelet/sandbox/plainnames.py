"""Names of pods for plain processes: without namespaces, a pod has neither its own host name nor its own /etc/hosts.

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
"""The library's names: distributions install either or both."""

LONGEST: Final = 10.0
"""The maximum seconds until a program without work ends."""

RESOLVER: Final = Path(__file__).parent / "resolver"

ONLY_PYTHON: Final = (
    "host names and names of pods in programs other than Python: libnss_wrapper, which resolves them, is not installed"
)
"""The limits without the library."""


def find_wrapper(candidates: Sequence[str] = WRAPPERS) -> str | None:
    """Return the name of the library nss_wrapper; None if the loader finds none. Starts a program for each candidate."""
    return next((name for name in candidates if _can_be_preloaded(name)), None)


def _can_be_preloaded(library: str) -> bool:
    """Return whether the loader accepts a library: if not, it starts the program but prints a complaint."""
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
    """Return a container's variables, with the variables by which its programs resolve the names in a hosts file.

    >>> found = with_names({"PYTHONPATH": "/app"}, Path("/run/hosts"), "web-0", "libnss_wrapper.so.0")
    >>> found["PYTHONPATH"] == f"{RESOLVER}:/app"
    True
    >>> found["LD_PRELOAD"], found["NSS_WRAPPER_HOSTS"], found["NSS_WRAPPER_HOSTNAME"]
    ('libnss_wrapper.so.0', '/run/hosts', 'web-0')
    """
    path = _joined(str(RESOLVER), env.get("PYTHONPATH"))
    added = {HOSTS: str(hosts), HOSTNAME: hostname, "PYTHONPATH": path}
    if wrapper is not None:
        added["LD_PRELOAD"] = _joined(wrapper, env.get("LD_PRELOAD"))
        added |= {"NSS_WRAPPER_HOSTS": str(hosts), "NSS_WRAPPER_HOSTNAME": hostname}
    return {**env, **added}


def _joined(first: str, rest: str | None) -> str:
    """Return a list of paths; an empty rest adds nothing, as an empty entry would be the working directory."""
    return f"{first}:{rest}" if rest else first
