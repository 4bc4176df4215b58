"""Authenticates HTTP requests. Requests need the token, and requests from web pages are rejected.

In: the headers of a request. Out: an error, or None. There are three checks, in this order:

```
Host             a loopback name with our port     a page whose name was rebound to 127.0.0.1 sends its own name: 403
Origin           absent                            every script of a page sends one: 403
Authorization    the bearer token                  other users of this machine do not know it: 401
```

Responses never have CORS headers, so a browser does not pass a response to a web page.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from localkube.apiserver.model import apierrors
from localkube.apiserver.model.apierrors import StatusError


@dataclass(frozen=True, slots=True)
class Authenticator:
    """The checks of a server on one port."""

    port: int
    token: str = field(repr=False)

    def check(self, headers: Mapping[str, str]) -> StatusError | None:
        """Return the error for a request with these headers, or None if the request is accepted."""
        hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}")
        if headers.get("host", "").lower() not in hosts:
            return _forbidden("the Host header does not match this server")
        if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
            return _forbidden("requests from web pages are not allowed")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(_bytes(token.strip()), _bytes(self.token)):
            return apierrors.unauthorized()
        return None


def _bytes(text: str) -> bytes:
    """Return the original bytes of a header. aiohttp decodes bytes that are not UTF-8 as surrogates."""
    return text.encode(errors="surrogateescape")


def _forbidden(why: str) -> StatusError:
    return StatusError(403, "Forbidden", f"forbidden: {why}")
