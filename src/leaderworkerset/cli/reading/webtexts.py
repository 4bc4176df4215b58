"""Reads manifests from web addresses (`-f https://…`).

`http://` is read as well, as kubectl does. But a redirect from `https://` to `http://` is refused: a request over an
encrypted connection must not be answered over another. Proxies are those of the environment.
"""

from http.client import HTTPException, HTTPMessage
from typing import IO, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import leaderworkerset
from leaderworkerset.cli.errors import CommandError, describe

SCHEMES: Final = ("https://", "http://")

PATIENCE: Final = 30.0
"""The maximum seconds without data from the server."""

LARGEST: Final = 32 * 2**20
"""The maximum bytes of a manifest: more than a large installation has, less than fills the memory."""


def is_address(words: str) -> bool:
    """Return whether an argument is the web address of a manifest.

    >>> is_address("https://example.org/lws.yaml"), is_address("lws.yaml")
    (True, False)
    """
    return words.lower().startswith(SCHEMES)


def fetch(address: str) -> bytes:
    """Return the text at a web address."""
    request = Request(address, headers={"User-Agent": f"lws/{leaderworkerset.__version__}"})  # noqa: S310 - http(s) only
    try:
        with build_opener(_Redirects).open(request, timeout=PATIENCE) as response:
            text: bytes = response.read(LARGEST + 1)
            kind = response.headers.get_content_type()
    except HTTPError as error:
        with error:
            raise CommandError(f"{address}: the server answered {error.code} {error.reason}") from error
    except URLError as error:
        reason = error.reason
        raise CommandError(f"{address}: {describe(reason) if isinstance(reason, OSError) else reason}") from error
    except (OSError, HTTPException, ValueError) as error:  # an invalid host, an incomplete answer
        raise CommandError(f"{address}: {error}") from error
    if len(text) > LARGEST:
        raise CommandError(f"{address}: more than {LARGEST // 2**20} MiB, the limit for manifests")
    if kind == "text/html":
        raise CommandError(
            f"{address}: is a web page: give the address of the file itself (in a repository, its raw form)"
        )
    return text


class _Redirects(HTTPRedirectHandler):
    """Follows redirects, but not from an encrypted connection to an unencrypted one."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request to the new address."""
        if req.type == "https" and not newurl.lower().startswith("https://"):
            raise URLError(f"leads to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
