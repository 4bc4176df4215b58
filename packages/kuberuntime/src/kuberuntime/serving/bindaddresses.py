"""Parses listen addresses in Go's notation."""

from typing import Final

from msgspec import Struct

from kuberuntime.errors import ConfigError
from kuberuntime.objects import decimals

DISABLED: Final = ("", "0")
"""The addresses that disable a server."""

HIGHEST_PORT: Final = 65535


class Address(Struct, frozen=True):
    """A listen address. An empty host means all addresses."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `host:port`, `:port` or `[host]:port`.

    >>> str(parse_address(":8443")), parse_address("[::1]:80").host
    (':8443', '::1')
    """
    host, colon, port = text.rpartition(":")
    number = decimals.natural(port)
    if not colon or number is None or number > HIGHEST_PORT:
        raise ConfigError(f"address {text!r}: must be host:port, :port, or 0 to disable the server")
    return Address(host.removeprefix("[").removesuffix("]"), number)
