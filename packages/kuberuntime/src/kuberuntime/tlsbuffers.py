"""Reduces the read buffers of TLS connections for processes with many connections.

asyncio allocates 256 KiB for each end of a TLS connection and writes zeros into it, so all of it is resident; 64 idle
connections take 16 MiB. A TLS record holds at most 16 KiB; if the buffer is full, asyncio reads the rest in the next
iteration.
"""

from asyncio.sslproto import SSLProtocol
from typing import Final

SIZE: Final = 17 * 1024
"""The read size in bytes. It fits a complete TLS record with its header, because records are decrypted one by one."""


def shrink() -> None:
    """Use buffers of `SIZE` for all new connections of this process.

    asyncio has no option for it. If a later Python reads the size from elsewhere, this does nothing.
    """
    SSLProtocol.max_size = SIZE
