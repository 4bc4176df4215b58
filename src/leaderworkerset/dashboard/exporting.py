"""One page as one file that works without a server: what it showed at one moment, without scripts and links."""

from leaderworkerset.dashboard.address import Address, Form, Subject
from leaderworkerset.dashboard.hub import PAGES
from leaderworkerset.dashboard.markup import Safe
from leaderworkerset.dashboard.pages import cells, htmldocument, setpage
from leaderworkerset.dashboard.pages.page import Facts
from leaderworkerset.dashboard.picture import Picture
from leaderworkerset.dashboard.rendering import region
from leaderworkerset.dashboard.staticfiles import files


def exported(picture: Picture, address: Address, facts: Facts) -> str:
    """Return the document; that of a set has the plain table of its ranks below the grid."""
    page = PAGES[address.subject]
    where = f" of {address.key}" if address.key.name else ""
    note = f"The state{where} at {picture.now:%Y-%m-%d %H:%M:%S} UTC, saved by `lws dashboard`."
    return htmldocument.standalone(
        page, address, page.render(picture, address, facts), files()["style.css"], note, _ranks(picture, address)
    )


def _ranks(picture: Picture, address: Address) -> Safe | None:
    if address.subject is not Subject.SET:
        return None
    table = Address(subject=Subject.SET, key=address.key, form=Form.TABLE)
    rows = {"ranks": setpage.render(picture, table, Facts())["rows"]}
    return cells.table("plain", setpage.HEADER, region("tbody", "ranks", rows), f"All ranks of {address.key.name}")
