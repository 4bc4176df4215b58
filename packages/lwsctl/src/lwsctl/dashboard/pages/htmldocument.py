"""Builds the HTML document of a page with its head, navigation, live region, help, and regions. Pure."""

import re
from typing import Final

from msgspec import Struct

from lwsctl.dashboard import markup, staticfiles
from lwsctl.dashboard.actions import MOST_GROUPS, Verb
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Rendering, region
from lwsctl.dashboard.markup import Content, Safe, join, tag
from lwsctl.dashboard.pages.header import ClusterIdentity, header
from lwsctl.dashboard.pages.page import Page

FILES: Final = staticfiles.directory()
KEYS: Final = (
    ("/", "search sets, groups, ranks, nodes and causes; select with arrow keys"),
    ("?", "this help"),
    ("arrow keys, Home, End", "move in the grid"),
    ("Enter", "show the rank in the grid"),
    ("Escape", "close the open panel"),
    ("n", "Now: all sets"),
)


class Serving(Struct, frozen=True, kw_only=True):
    """The server properties in a document, which are the base address and the secret for actions, if any."""

    base: str
    action: str = ""
    about: ClusterIdentity = ClusterIdentity()
    namespace: str = ""


def document(page: Page, address: Address, rendering: Rendering, ident: str, serving: Serving) -> str:
    """Return the complete document. `ident` is the number of its state, after which its stream continues."""
    body = tag(
        "body",
        tag("a", "Skip to the content", href=f"{address.path()}#main", class_="skip"),
        header(serving.about, serving.namespace, address, allows_actions=bool(serving.action)),
        region("div", "trouble", rendering, role="alert", class_="trouble"),
        tag(
            "main",
            _action_buttons(address, rendering) if serving.action else None,
            page.frame(address, rendering),
            id="main",
            tabindex=-1,
        ),
        tag("div", id="live", role="status", aria_live="polite", class_="heard"),
        _help_dialog(),
        data_ident=ident,
        data_action=serving.action or None,
    )
    head = [
        tag("meta", name="color-scheme", content="light dark"),
        tag("base", href=serving.base),
        tag("link", rel="icon", href=f"{FILES}/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href=f"{FILES}/style.css"),
        tag("script", src=f"{FILES}/main.js", type="module"),
    ]
    return markup.html_document(f"{page.title(address)} · lws", head, body)


def standalone(
    page: Page, address: Address, rendering: Rendering, style: str, note: str, below: Safe | None = None
) -> str:
    """Return the document as one file with the style, without scripts and links. It does not require a server."""
    body = tag(
        "body",
        tag(
            "main",
            tag("p", note),
            region("div", "trouble", rendering, class_="trouble"),
            page.frame(address, rendering),
            below,
            id="main",
        ),
        class_="saved",
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = [tag("meta", http_equiv="Content-Security-Policy", content=policy), tag("style", Safe(style))]
    return markup.html_document(f"{page.title(address)} · lws", head, _without_links(body))


def _without_links(html: Safe) -> Safe:
    """Return HTML without navigation, in which text replaces links."""
    return Safe(
        re.sub(r"<a [^>]*>(.*?)</a>", r"\1", re.sub(r"<nav .*?</nav>", "", html, flags=re.DOTALL), flags=re.DOTALL)
    )


def _action_buttons(address: Address, rendering: Rendering) -> Safe | None:
    """Return the buttons for all actions on a set. A script shows the buttons that apply."""

    def button(verb: Verb, text: str) -> Safe:
        about = {"data_verb": verb.value, "data_namespace": address.key.namespace, "data_name": address.key.name}
        return tag("button", text, type="button", **about)

    number = tag("input", id="scale-groups", type="number", min=0, max=MOST_GROUPS, step=1, value=0)
    groups = tag("label", "Groups ", number, data_for=f"{Verb.SCALE} {Verb.SCALE_ROLE}")
    steering = [
        button(Verb.UNDO, "Undo …"),
        button(Verb.PAUSE, "Pause …"),
        button(Verb.RESUME, "Resume …"),
    ]
    match address.kind:
        case PageKind.SET:
            scale = button(Verb.SCALE, "Scale …")
            offered: list[Content] = [groups, scale, button(Verb.RESTART, "Restart all …"), *steering]
        case PageKind.ROLLOUT if not address.is_disaggregatedset:
            offered = [*steering]
        case PageKind.WHOLE:
            offered = [
                tag("label", "Role ", region("select", "scale-role", rendering), data_for=Verb.SCALE_ROLE.value),
                groups,
                button(Verb.SCALE_ROLE, "Scale …"),
            ]
        case _:
            return None
    return tag("section", offered, id="actions", class_="tools actions", aria_label="Actions", hidden=True)


def _help_dialog() -> Safe:
    rows = [join(tag("dt", tag("kbd", key)), tag("dd", what)) for key, what in KEYS]
    close = tag("button", "Close", id="help-close", type="button")
    return tag("dialog", tag("h2", "Keys"), tag("dl", rows), close, id="help", aria_label="Help")
