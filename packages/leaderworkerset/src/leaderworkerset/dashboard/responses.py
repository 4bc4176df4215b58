"""The answers of the dashboard besides pages: files, refusals, and the headers of every answer."""

from aiohttp import web

from leaderworkerset.dashboard import exporting
from leaderworkerset.dashboard.gatekeeper import ACTION_HEADER, HEADERS, Asked, Refusal


async def protect(_: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every response, also of errors."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def asked(request: web.Request) -> Asked:
    """Return the parts of a request that the gate checks."""
    headers = request.headers
    return Asked(
        method=request.method,
        path=request.path,
        hosts=headers.getall("Host", []),
        origins=headers.getall("Origin", []),
        sites=headers.getall("Sec-Fetch-Site", []),
        cookies=headers.getall("Cookie", []),
        action_tokens=headers.getall(ACTION_HEADER, []),
    )


def html(text: str) -> web.Response:
    """Return a page."""
    return web.Response(body=text.encode(errors="replace"), content_type="text/html", charset="utf-8")


def refused(refusal: Refusal) -> web.Response:
    """Return a refusal with its reason."""
    return web.Response(status=refusal.status, text=f"{refusal.text}\n")


def missing() -> web.Response:
    """Return the response for an address without a page."""
    return web.Response(status=404, text="there is no such page\n")


def busy(most: int) -> web.Response:
    """Return the response when too many streams are open."""
    return web.Response(status=503, text=f"{most} pages are open: close some\n", headers={"Retry-After": "5"})


def static(name: str) -> web.Response:
    """Return a file of the dashboard."""
    text = exporting.files().get(name)
    if text is None:
        return missing()
    return web.Response(text=text, content_type=exporting.kind_of(name))
