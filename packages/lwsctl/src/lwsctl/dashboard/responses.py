"""Builds the responses of the dashboard other than pages, such as files, rejections, and common headers."""

from aiohttp import web

from lwsctl.dashboard import staticfiles
from lwsctl.dashboard.markup import html_document, tag
from lwsctl.dashboard.requestchecks import ACTION_HEADER, HEADERS, Rejection, RequestHead


async def set_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of all responses, including error responses."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def request_head(request: web.Request) -> RequestHead:
    """Return the parts of a request that are checked."""
    headers = request.headers
    return RequestHead(
        method=request.method,
        path=request.path,
        hosts=headers.getall("Host", []),
        origins=headers.getall("Origin", []),
        sites=headers.getall("Sec-Fetch-Site", []),
        cookies=headers.getall("Cookie", []),
        action_tokens=headers.getall(ACTION_HEADER, []),
    )


def html_response(text: str) -> web.Response:
    """Return a page."""
    return web.Response(body=text.encode(errors="replace"), content_type="text/html", charset="utf-8")


def rejection_response(rejection: Rejection) -> web.Response:
    """Return a rejection that contains the reason."""
    return web.Response(status=rejection.status, text=f"{rejection.text}\n")


def not_found() -> web.Response:
    """Return the response for an unknown address."""
    return web.Response(status=404, text="page not found\n")


def not_found_page(base: str) -> web.Response:
    """Return the page for an unknown address, with links to existing pages."""
    links = [
        tag("p", tag("a", words, href=base + path)) for path, words in (("", "Now: all sets"), ("topology", "Topology"))
    ]
    style = tag("link", rel="stylesheet", href=f"{base}{staticfiles.directory()}/style.css")
    body = tag("body", tag("main", tag("h1", "Page not found"), links))
    response = html_response(html_document("Page not found · lws", style, body))
    response.set_status(404)
    return response


def too_many_streams(most: int) -> web.Response:
    """Return the response for a request that exceeds the maximum number of streams."""
    return web.Response(status=503, text=f"{most} pages are open; close some of them\n", headers={"Retry-After": "5"})


def static_file(version: str, name: str) -> web.Response:
    """Return a compressed dashboard file. Browsers may cache it, because its path depends on its content."""
    text = staticfiles.files().get(name)
    if text is None or f"static/{version}" != staticfiles.directory():
        return not_found()
    response = web.Response(text=text, content_type=staticfiles.media_type(name))
    response.headers["Cache-Control"] = "private, max-age=31536000, immutable"
    response.enable_compression()
    return response
