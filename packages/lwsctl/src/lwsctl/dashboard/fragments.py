"""Splits pages into named fragments, and computes the differences that are sent to event streams. Pure.

A region is an element of the page that contains pieces in order. A piece is an element whose `id` is its key, as are
its parts. If only parts of a piece change, only these parts are sent. Keys are unique on a page.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from lwsctl.dashboard.markup import Attribute, Safe, tag


class Fragment(Struct, frozen=True):
    """A page element in a region or in another fragment. Screen readers announce `announcement` when it changes.

    `parts` are nested elements that are updated separately, in the order in which `html` contains them. `source`
    contains all inputs of the piece, if the page compares them to reuse the piece.
    """

    key: str
    html: Safe
    announcement: str = ""
    parts: tuple["Fragment", ...] = ()
    source: object = None

    @property
    def frame(self) -> list[str]:
        """Return the HTML between the parts, and the keys of the parts."""
        frame, at = [part.key for part in self.parts], 0
        for part in self.parts:
            start = self.html.index(part.html, at)
            frame.append(self.html[at:start])
            at = start + len(part.html)
        return [*frame, self.html[at:]]


Rendering: TypeAlias = Mapping[str, Sequence[Fragment]]
"""The fragments of each region, by the `id` of the region."""


def region(element: str, key: str, rendering: Rendering, **attributes: Attribute) -> Safe:
    """Return the element of a region with its fragments.

    >>> region("p", "r", {"r": [Fragment("a", Safe("<i>1</i>"))]}, class_="x")
    '<p id="r" class="x"><i>1</i></p>'
    """
    return tag(element, [piece.html for piece in rendering.get(key, ())], id=key, **attributes)


def difference(old: Rendering, new: Rendering) -> JSONObject | None:
    """Return the difference between two states, or None if the states are equal.

    `put` contains pieces to add or replace by region, and parts to replace. `gone` contains keys to remove. `order`
    contains the keys of each region whose pieces or order changed. `say` contains new causes. Empty entries are
    omitted.

    >>> a, b = Fragment("a", Safe("<i>1</i>")), Fragment("b", Safe("<i>2</i>"), "b is stuck")
    >>> difference({"r": [a]}, {"r": [b, a]})
    {'put': [['r', 'b', '<i>2</i>']], 'order': {'r': ['b', 'a']}, 'say': ['b is stuck']}
    >>> difference({"r": [a, b]}, {"r": [a]}), difference({"r": [a]}, {"r": [a]})
    ({'gone': ['b']}, None)
    """
    before = {piece.key: piece for pieces in old.values() for piece in pieces}
    after = {piece.key for pieces in new.values() for piece in pieces}
    put: list[list[str]] = []
    order, say = {}, []
    for region, pieces in new.items():
        for piece in pieces:
            old_piece = before.get(piece.key)
            put += _update_fragment(region, old_piece, piece)
            if piece.announcement and (old_piece is None or old_piece.announcement != piece.announcement):
                say.append(piece.announcement)
        keys = [piece.key for piece in pieces]
        if keys != [piece.key for piece in old.get(region, ()) if piece.key in after]:
            order[region] = keys
    gone = [key for key in before if key not in after]
    change = {"put": put, "gone": gone, "order": order, "say": say}
    return {name: value for name, value in change.items() if value} if put or gone or order else None


def _update_fragment(home: str, old: Fragment | None, new: Fragment) -> list[list[str]]:
    """Return the update of one fragment, which is empty, its changed parts, or the complete fragment."""
    if old is new or (old is not None and old.html == new.html):
        return []
    if old is None or not new.parts or old.frame != new.frame:
        return [[home, new.key, str(new.html)]]
    return [
        entry
        for before, after in zip(old.parts, new.parts, strict=True)
        for entry in _update_fragment("", before, after)
    ]


def full_state(rendering: Rendering) -> JSONObject:
    """Return the complete state, for pages whose last state is too old."""
    return {"regions": {region: "".join(piece.html for piece in pieces) for region, pieces in rendering.items()}}
