"""One page as one file that works without a server: what it showed at one moment, without scripts and links."""

from functools import cache
from importlib import resources
from typing import Final

from leaderworkerset.dashboard.address import Address, PageForm, PageKind
from leaderworkerset.dashboard.hub import PAGES
from leaderworkerset.dashboard.markup import Safe
from leaderworkerset.dashboard.pages import cells, htmldocument, setpage
from leaderworkerset.dashboard.pages.page import PageFacts
from leaderworkerset.dashboard.picture import Picture
from leaderworkerset.dashboard.pieces import region

TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    folder = resources.files("leaderworkerset.dashboard") / "static"
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if kind_of(one.name)}


def kind_of(name: str) -> str:
    """Return the media type of a file, empty for one that is not served.

    >>> kind_of("main.js"), kind_of("main.py")
    ('text/javascript', '')
    """
    return TYPES.get(name.rpartition(".")[2], "")


def exported(picture: Picture, address: Address, facts: PageFacts) -> str:
    """Return the document; that of a set has the plain table of its ranks below the grid."""
    page = PAGES[address.kind]
    where = f" of {address.key}" if address.key.name else ""
    note = f"The state{where} at {picture.now:%Y-%m-%d %H:%M:%S} UTC, saved by `lws dashboard`."
    return htmldocument.standalone(
        page, address, page.render(picture, address, facts), files()["style.css"], note, _ranks(picture, address)
    )


def _ranks(picture: Picture, address: Address) -> Safe | None:
    if address.kind is not PageKind.SET:
        return None
    table = Address(kind=PageKind.SET, key=address.key, form=PageForm.TABLE)
    rows = {"all-ranks": setpage.render(picture, table, PageFacts())["rows"]}
    return cells.table("plain", setpage.HEADER, region("tbody", "all-ranks", rows), f"All ranks of {address.key.name}")
