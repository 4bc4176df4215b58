"""Large answers: written piece by piece, in bounded time, and only so many bytes of them at once.

An answer is in memory until its reader has taken it, and once more encrypted where it is written as a whole. Fifty
readers of a long list that stop reading would hold gigabytes. So an answer follows its reader, one who is too slow is
dropped, and where too much is under way already, the next reader is asked to come again.
"""

from typing import Final

from aiohttp import web

from kuberuntime import timeouts
from kuberuntime.client.transport import Response
from kuberuntime.serving import listening
from localkube.apiserver.model.refusal import RefusalError

LARGE: Final = 2**20
"""Bytes from which on an answer is one of these."""

MOST: Final = 128 * 2**20
"""Bytes of all that are being written; a list of 2,000 pods has about 12 MiB."""

PIECE: Final = 2**16
SECONDS: Final = 60.0
"""In which an answer has to be taken."""

RETRY_AFTER: Final = 1


class LargeAnswers:
    """Writes large answers; what would be too much together is refused."""

    def __init__(self, *, most: int = MOST, seconds: float = SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._writing = 0

    def refuse(self, answer: Response) -> RefusalError | None:
        """Return why the answer cannot be written now, None where it can; one alone always can."""
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
