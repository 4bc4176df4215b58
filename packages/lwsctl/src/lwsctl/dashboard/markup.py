"""Builds HTML from strings, which are escaped unless they are marked as HTML. Pure.

Direction marks and other control characters are made visible, so that data from a cluster cannot reverse the text of
the page.
"""

from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias

from kuberuntime.objects import untrustedtext

VOID: Final = frozenset({"base", "br", "input", "link", "meta"})
"""Elements that have no content and no closing tag."""


class Safe(str):
    """A string that is already HTML. Only `tag` and `join` create such strings."""

    __slots__ = ()


Content: TypeAlias = str | int | Iterable["Content"] | None
Attribute: TypeAlias = str | int | bool | None


def tag(name: str, /, *content: Content, **attributes: Attribute) -> Safe:
    """Return an element. `_` in attribute names becomes `-`, and a trailing `_` avoids Python keywords.

    >>> tag("p", "a < b", tag("br"), class_="x", data_at='"1"', hidden=True, title=None)
    '<p class="x" data-at="&quot;1&quot;" hidden>a &lt; b<br></p>'
    """
    texts = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in VOID:
        return Safe(f"<{name}{texts}>")
    return Safe(f"<{name}{texts}>{join(*content)}</{name}>")


def join(*content: Content) -> Safe:
    """Return the concatenated content without None values.

    >>> join("&", None, 1, [tag("b", "x")])
    '&amp;1<b>x</b>'
    """
    return Safe("".join(map(_escape_content, content)))


def html_document(title: str, head: Content, body: Safe) -> Safe:
    """Return an HTML document with a title, other elements of its head, and its body."""
    viewport = tag("meta", name="viewport", content="width=device-width, initial-scale=1")
    head_element = tag("head", tag("meta", charset="utf-8"), viewport, tag("title", title), head)
    return join(Safe("<!doctype html>"), tag("html", head_element, body, lang="en"))


def _escape_content(content: Content) -> str:
    match content:
        case None:
            return ""
        case Safe():
            return content
        case str():
            return escape(untrustedtext.visible_lines(content))
        case int():
            return str(content)
        case _:
            return "".join(map(_escape_content, content))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(untrustedtext.visible_lines(str(value)))}"'
