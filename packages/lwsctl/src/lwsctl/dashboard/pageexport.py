"""Exports a page as one file without scripts and links, which does not require a server. Pure."""

from functools import partial

from msgspec.structs import replace

from kuberuntime.objects import untrustedtext
from kuberuntime.texts import errorboundary
from lwsctl.dashboard import staticfiles
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Rendering
from lwsctl.dashboard.markup import Safe
from lwsctl.dashboard.pages import cells, htmldocument, ranktable
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.dashboard.subscriptions import page_of


def render_document(snapshot: Snapshot, address: Address, facts: PageFacts) -> str:
    """Return the document. For a set, it contains the plain table of ranks below the grid."""
    page = page_of(address)
    where = f" of {address.key}" if address.key.name else ""
    note = f"The state{where} at {snapshot.now:%Y-%m-%d %H:%M:%S} UTC, saved by `lws dashboard`."
    rendering = errorboundary.attempt(
        partial(page.render, snapshot, address, facts), partial(_error_rendering, snapshot)
    )
    ranks = errorboundary.attempt(partial(_ranks, snapshot, address), lambda _: None)
    return htmldocument.standalone(page, address, rendering, staticfiles.files()["style.css"], note, ranks)


def text(snapshot: Snapshot, address: Address, facts: PageFacts) -> str:
    """Return the lines of a page as text in which control characters are visible."""
    page = page_of(address)
    lines = errorboundary.attempt(lambda: [*page.text(snapshot, address, facts)], lambda error: [f"this page {error}"])
    return "".join(f"{untrustedtext.visible_lines(line)}\n" for line in lines)


def _error_rendering(snapshot: Snapshot, error: str) -> Rendering:
    return {"trouble": cells.outdated_notes(replace(snapshot, connection_error=f"this page {error}"))}


def _ranks(snapshot: Snapshot, address: Address) -> Safe | None:
    view = snapshot.find(address.key) if address.kind is PageKind.SET else None
    if view is None:
        return None
    return ranktable.frame(view.name, ranktable.render(view, PageFacts(), snapshot.now))
