"""One page as one file that works without a server: its content at one moment, without scripts and links."""

from functools import cache
from importlib import resources
from typing import Final

from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.hub import PAGES
from leaderworkerset.dashboard.markup import Safe
from leaderworkerset.dashboard.pages import htmldocument, ranktable
from leaderworkerset.dashboard.pages.page import PageFacts
from leaderworkerset.dashboard.picture import Picture

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
    return htmldocument.standalone(
        page, address, page.render(picture, address, facts), files()["style.css"], note, _ranks(picture, address)
    )


def _ranks(picture: Picture, address: Address) -> Safe | None:
    view = picture.find(address.key) if address.kind is PageKind.SET else None
    if view is None:
        return None
    return ranktable.frame(view.name, ranktable.render(view, PageFacts(), picture.now))
