"""Builds the header of all pages, with the cluster, links, search, connection state, and menu. Pure."""

from typing import Final

from msgspec import Struct

from lwsctl.dashboard.address import Address, PageForm, PageKind
from lwsctl.dashboard.markup import Content, Safe, tag

PAGES: Final = {PageKind.NOW: "Now", PageKind.TOPOLOGY: "Topology"}


class ClusterIdentity(Struct, frozen=True, kw_only=True):
    """The names of a cluster and of the dashboard user. Empty names are omitted.

    `login_name` is the path of the page with the logout button.
    """

    cluster: str = ""
    context: str = ""
    user: str = ""
    login_name: str = ""
    version: str = ""

    @property
    def title(self) -> str:
        """Return the name of the cluster, or of its kubeconfig context."""
        return self.cluster or self.context


def header(about: ClusterIdentity, namespace: str, address: Address, *, allows_actions: bool) -> Safe:
    """Return the header. A script updates the connection state."""
    rights = "actions allowed" if allows_actions else "read-only"
    user = f"{about.user} ({rights})" if about.user else rights
    search = tag(
        "input",
        id="search",
        type="search",
        autocomplete="off",
        placeholder="Search",
        aria_label="Search",
        aria_keyshortcuts="/",
    )
    return tag(
        "header",
        tag("a", "lws", href=".", class_="brand"),
        tag("span", about.title, tag("small", namespace or "all namespaces"), class_="cluster"),
        tag("nav", _page_links(address), class_="pages", aria_label="Pages"),
        tag(
            "div",
            search,
            tag("kbd", "/"),
            tag("ul", id="results", class_="results", aria_label="Search results", hidden=True),
            class_="find",
        ),
        tag(
            "p",
            "◐ Connecting",
            id="pulse",
            class_="pulse",
            title="Whether this page is current, and the time of the last server response",
        ),
        _menu(about, namespace, address, user),
        class_="top",
    )


def _page_links(address: Address) -> list[Safe]:
    return [
        tag("a", word, href=kind.value or ".", aria_current="page" if kind is address.kind else None)
        for kind, word in PAGES.items()
    ]


def _menu(about: ClusterIdentity, namespace: str, address: Address, user: str) -> Safe:
    """Return the elements that are rarely used and, for narrow screens, the links to pages."""
    facts = {
        "cluster": about.cluster,
        "context": "" if about.context == about.cluster else about.context,
        "namespace": namespace or "all",
        "user": tag("a", user, href=about.login_name, title="Log out") if about.login_name else user,
        "version": about.version,
    }
    entries = [tag("div", tag("dt", name.capitalize()), tag("dd", value)) for name, value in facts.items() if value]
    forms: list[Content] = [
        tag("a", "Plain table", href=f"{address.path()}?as=table")
        if address.format is PageForm.PAGE and address.kind in (PageKind.NOW, PageKind.SET, PageKind.TOPOLOGY)
        else None,
        tag("button", "Copy as text", id="copy", type="button"),
        tag("button", "Save as a file", id="save-page", type="button") if address.kind is not PageKind.LOGS else None,
        tag("button", "Keys", id="help-button", type="button", aria_haspopup="dialog"),
    ]
    return tag(
        "details",
        tag("summary", "☰", aria_label="Menu", title="Menu"),
        tag(
            "div",
            tag("nav", _page_links(address), class_="narrow", aria_label="Menu pages"),
            forms,
            tag("dl", entries, class_="where"),
        ),
        id="menu",
        class_="menu",
    )
