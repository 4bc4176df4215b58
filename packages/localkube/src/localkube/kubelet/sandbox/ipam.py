"""Manages free pod addresses, and the block of 127.0.0.0/8 that this cluster uses.

An address is reused as late as possible, because a connection or a name lookup may outlive its pod.
"""

import errno
import ipaddress
import socket

GATEWAY = "10.88.0.1"
WAY_OUT_GATEWAY = "10.88.0.2"
WAY_OUT_NAMESERVER = "10.88.0.3"
POD_NETWORK = ipaddress.IPv4Network("10.88.0.0/16")
LOOPBACK = "127.0.0.1"

_RESERVED = 256  # the first addresses of a block: its own, gateways and name servers
_CLAIM_PORT = 28088
_CLAIM_HOST = 1
_BLOCKS = range(88, 248)


class AddressesExhaustedError(Exception):
    """All addresses in the block are in use."""


class AddressPool:
    """Assigns the addresses in a block in turn."""

    def __init__(self, block: ipaddress.IPv4Network) -> None:
        self._block = block
        self._next = _RESERVED
        self._used: set[str] = set()

    def allocate(self) -> str:
        """Return a free address.

        >>> AddressPool(POD_NETWORK).allocate()
        '10.88.1.0'
        """
        last = self._block.num_addresses - 1
        for _ in range(_RESERVED, last):
            address = str(self._block[self._next])
            self._next = self._next + 1 if self._next + 1 < last else _RESERVED
            if address not in self._used:
                self._used.add(address)
                return address
        raise AddressesExhaustedError(f"all {last - _RESERVED} addresses of {self._block} are in use. Delete some pods")

    def release(self, address: str) -> None:
        """Release an address, so that it can be reassigned."""
        self._used.discard(address)


class LoopbackBlock:
    """A 127.N.0.0/16 block that no other cluster on this machine uses.

    A bound socket reserves it, and a crash releases it.
    """

    def __init__(self) -> None:
        for number in _BLOCKS:
            self.network = ipaddress.IPv4Network((f"127.{number}.0.0", 16))
            self._claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self._claim.bind((str(self.network[_CLAIM_HOST]), _CLAIM_PORT))
            except OSError as error:
                self._claim.close()
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return
        raise AddressesExhaustedError(f"{len(_BLOCKS)} clusters already run on this machine. Stop one of them")

    def release(self) -> None:
        """Release the block for other clusters."""
        self._claim.close()
