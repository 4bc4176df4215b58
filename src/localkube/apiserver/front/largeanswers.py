"""Writes large responses in parts, within a time limit, and with a bound on their total size.

A response is in memory until the client has read it, and a second time in encrypted form if it is written at once.
Fifty clients that stop reading a long list would hold gigabytes. So a response is written as the client reads it, and a
client that is too slow is disconnected. Beyond the total size, further requests are refused (429).
"""

from typing import Final

from aiohttp import web

from kuberuntime import timeouts
from kuberuntime.client.transport import Response
from kuberuntime.serving import listening
from localkube.apiserver.model.refusal import RefusalError

LARGE: Final = 2**20
"""Bytes from which a response is large."""

MOST: Final = 128 * 2**20
"""Bytes of all large responses that are being written; a list of 2,000 pods has about 12 MiB."""

PIECE: Final = 2**16
SECONDS: Final = 60.0
"""Seconds within which a client has to read a response."""

RETRY_AFTER: Final = 1


class LargeAnswers:
    """Writes large responses; refuses those that exceed the total size."""

    def __init__(self, *, most: int = MOST, seconds: float = SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._writing = 0

    def refuse(self, answer: Response) -> RefusalError | None:
        """Return the refusal of a response that cannot be written now, None if it can; a single one always can."""
        if not self._writing or self._writing + len(answer.body) <= self._most:
            return None
        text = "too many large answers are being read: try again, or ask for pages (limit)"
        return RefusalError(429, "TooManyRequests", text, {"retryAfterSeconds": RETRY_AFTER})

    async def write(self, request: web.BaseRequest, answer: Response) -> web.StreamResponse:
        """Write the response as fast as it is read; close the connection of a client that reads too slowly."""
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        response.content_length = len(answer.body)
        self._writing += len(answer.body)
        try:
            async with timeouts.within(self._seconds):
                await response.prepare(request)
                for start in range(0, len(answer.body), PIECE):
                    await response.write(answer.body[start : start + PIECE])
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                listening.abort(request.transport)
        except ConnectionResetError:
            pass  # the client left
        finally:
            self._writing -= len(answer.body)
        return response
