"""What a page shows, in pieces with names; and the difference between two states of it, which streams carry. Pure.

A region is an element of the page that holds pieces in order; a piece is one element whose `id` is its key. Keys are
unique on a page.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.dashboard.markup import Attribute, Safe, tag


class Piece(Struct, frozen=True):
    """One element of a region; `says` is read out when it changes: the cause that the piece shows."""

    key: str
    html: Safe
    says: str = ""


Rendering: TypeAlias = Mapping[str, Sequence[Piece]]
"""The pieces of each region, by the region's `id`."""


def region(element: str, key: str, shown: Rendering, **attributes: Attribute) -> Safe:
    """Return the element of a region, with its pieces.

    >>> region("p", "r", {"r": [Piece("a", Safe("<i>1</i>"))]}, class_="x")
    '<p id="r" class="x"><i>1</i></p>'
    """
    return tag(element, [piece.html for piece in shown.get(key, ())], id=key, **attributes)


def difference(old: Rendering, new: Rendering) -> JSONObject | None:
    """Return what changes the old state into the new one; None if nothing does.

    `put` are the pieces to add or to replace, by region; `gone` the keys to remove; `order` the keys of each region
    whose order changed, or that got a piece; `say` the causes that are new.

    >>> a, b = Piece("a", Safe("<i>1</i>")), Piece("b", Safe("<i>2</i>"), "b is stuck")
    >>> difference({"r": [a]}, {"r": [b, a]})
    {'put': [['r', 'b', '<i>2</i>']], 'gone': [], 'order': {'r': ['b', 'a']}, 'say': ['b is stuck']}
    >>> difference({"r": [a, b]}, {"r": [a]})["gone"], difference({"r": [a]}, {"r": [a]})
    (['b'], None)
    """
    before = {piece.key: piece for pieces in old.values() for piece in pieces}
    after = {piece.key for pieces in new.values() for piece in pieces}
    put, order, say = [], {}, []
    for region, pieces in new.items():
        for piece in pieces:
            known = before.get(piece.key)
            if known is None or known.html != piece.html:
                put.append([region, piece.key, str(piece.html)])
            if piece.says and (known is None or known.says != piece.says):
                say.append(piece.says)
        keys = [piece.key for piece in pieces]
        if keys != [piece.key for piece in old.get(region, ()) if piece.key in after]:
            order[region] = keys
    gone = [key for key in before if key not in after]
    return {"put": put, "gone": gone, "order": order, "say": say} if put or gone or order else None


def whole(shown: Rendering) -> JSONObject:
    """Return the whole state, for a page that missed too much."""
    return {"regions": {region: "".join(piece.html for piece in pieces) for region, pieces in shown.items()}}
