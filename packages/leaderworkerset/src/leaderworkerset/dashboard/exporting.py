"""One page as one file that works without a server: its content at one moment, without scripts and links."""

from functools import cache, partial
from importlib import resources
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import foreigntext
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.hub import PAGES
from leaderworkerset.dashboard.markup import Safe
from leaderworkerset.dashboard.pages import cells, htmldocument, ranktable
from leaderworkerset.dashboard.pages.page import PageFacts
from leaderworkerset.dashboard.picture import Picture
from leaderworkerset.dashboard.pieces import Rendering
from leaderworkerset.views import edge

TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    folder = resources.files("leaderworkerset.dashboard") / "static"
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if kind_of(file.name)}


def kind_of(name: str) -> str:
    """Return the media type of a file; empty for a file that is not served.

    >>> kind_of("main.js"), kind_of("main.py")
    ('text/javascript', '')
    """
    return TYPES.get(name.rpartition(".")[2], "")


def exported(picture: Picture, address: Address, facts: PageFacts) -> str:
    """Return the document; for a set, with the plain table of its ranks below the grid."""
    page = PAGES[address.kind]
    where = f" of {address.key}" if address.key.name else ""
    note = f"The state{where} at {picture.now:%Y-%m-%d %H:%M:%S} UTC, saved by `lws dashboard`."
    rendering = edge.attempt(partial(page.render, picture, address, facts), partial(_failed, picture))
    ranks = edge.attempt(partial(_ranks, picture, address), lambda _: None)
    return htmldocument.standalone(page, address, rendering, files()["style.css"], note, ranks)


def text(picture: Picture, address: Address, facts: PageFacts) -> str:
    """Return the lines of a page as text, with control characters visible."""
    page = PAGES[address.kind]
    lines = edge.attempt(lambda: [*page.text(picture, address, facts)], lambda error: [f"this page {error}"])
    return "".join(f"{foreigntext.visible_lines(line)}\n" for line in lines)


def _failed(picture: Picture, error: str) -> Rendering:
    return {"trouble": cells.trouble(replace(picture, trouble=f"this page {error}"))}


def _ranks(picture: Picture, address: Address) -> Safe | None:
    view = picture.find(address.key) if address.kind is PageKind.SET else None
    if view is None:
        return None
    return ranktable.frame(view.name, ranktable.render(view, PageFacts(), picture.now))
