"""The read buffers of TLS connections: smaller than those of asyncio, for processes with many connections.

asyncio allocates 256 KiB for each end of a TLS connection and writes zeros into it, so all of it is resident; 64 idle
connections take 16 MiB. A TLS record holds at most 16 KiB; asyncio reads what a full buffer leaves in the next turn.
"""

from asyncio.sslproto import SSLProtocol
from typing import Final

SIZE: Final = 17 * 1024
"""Bytes read at once: a whole record with its TLS header. More is decrypted record by record anyway."""


def shrink() -> None:
    """Use buffers of `SIZE` for all new connections of this process.

    asyncio has no option for it; where a later Python reads the size from elsewhere, this does nothing.
    """
    SSLProtocol.max_size = SIZE
