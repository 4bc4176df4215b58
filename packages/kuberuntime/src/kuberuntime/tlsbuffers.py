"""Reduces the read buffers of TLS connections for processes with many connections.

asyncio allocates 256 KiB for each end of a TLS connection and fills it with zeros, so that the memory is resident.
For example, 64 idle connections require 16 MiB. A TLS record contains at most 16 KiB. If the buffer is full, asyncio
reads the rest in the next iteration.
"""

from asyncio.sslproto import SSLProtocol
from typing import Final

SIZE: Final = 17 * 1024
"""The read size in bytes. It fits a complete TLS record with its header, because records are decrypted one by one."""


def reduce_buffer_size() -> None:
    """Use buffers of `SIZE` for all new connections of this process.

    asyncio has no option for this. If a later Python version reads the size from a different attribute, this has no
    effect.
    """
    SSLProtocol.max_size = SIZE
