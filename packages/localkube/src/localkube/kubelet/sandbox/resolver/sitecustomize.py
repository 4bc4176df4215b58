"""Resolves pod names in Python processes that run without namespaces, and therefore without a separate hosts file.

Python imports this module automatically at the start of every program of such a pod (`plainnames.py` sets PYTHONPATH),
in whatever version the program uses: only the standard library, and syntax of Python 3.7. Without the variable `HOSTS`
it does nothing. A `sitecustomize` that the program would have had otherwise is imported afterwards.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import socket
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTS = "LOCALKUBE_HOSTS"
"""The variable with the path of the hosts file, which is replaced when pods change."""

HOSTNAME = "LOCALKUBE_HOSTNAME"
"""The variable with the host name of the pod."""

HOST_FIRST = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr")
"""The functions of `socket` whose first argument is a name."""

ADDRESS_LAST = ("bind", "connect", "connect_ex", "sendto")
"""The socket methods whose last argument is an address (name, port)."""


class HostsFile:
    """The addresses in a hosts file, which is reread after it is replaced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version: tuple[int, int] | None = None
        self._addresses: dict[str, str] = {}

    def address(self, name: Any) -> Any:
        """Return the address of a name. Return other strings unchanged."""
        text = name.decode("ascii", "replace") if isinstance(name, (bytes, bytearray)) else name
        if not isinstance(text, str):
            return name
        self._refresh()
        return self._addresses.get(text.rstrip(".").lower(), name)

    def _refresh(self) -> None:
        try:
            status = os.stat(self._path)
            version = (status.st_ino, status.st_mtime_ns)
            if version != self._version:
                with open(self._path, encoding="utf-8") as file:
                    self._addresses = _read(file.read())
                self._version = version
        except OSError:  # the pod is being removed, so the last read values still apply
            return


def _read(text: str) -> dict[str, str]:
    addresses: dict[str, str] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in names:
            addresses.setdefault(name.lower(), address)
    return addresses


def install(hosts: HostsFile, hostname: str) -> None:
    """Enable name resolution in this process, and return the pod's host name as its host name."""
    for function in HOST_FIRST:
        setattr(socket, function, _resolving(getattr(socket, function), hosts))
    for method in ADDRESS_LAST:
        setattr(socket.socket, method, _addressing(getattr(socket.socket, method), hosts))
    if hostname:
        socket.gethostname = lambda: hostname


def _resolving(function: Callable[..., Any], hosts: HostsFile) -> Callable[..., Any]:
    @functools.wraps(function)
    def resolve(host: Any, *rest: Any, **options: Any) -> Any:
        return function(hosts.address(host), *rest, **options)

    return resolve


def _addressing(method: Callable[..., Any], hosts: HostsFile) -> Callable[..., Any]:
    @functools.wraps(method)
    def send(self: socket.socket, *arguments: Any) -> Any:
        *rest, address = arguments or (None,)
        if self.family == socket.AF_INET and isinstance(address, tuple) and address:
            arguments = (*rest, (hosts.address(address[0]), *address[1:]))
        return method(self, *arguments)

    return send


def import_hidden() -> None:
    """Import the `sitecustomize` that this module hides."""
    own = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if os.path.abspath(entry) != own])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get(HOSTS) and __name__ == "sitecustomize":
    install(HostsFile(os.environ[HOSTS]), os.environ.get(HOSTNAME, ""))
    import_hidden()
