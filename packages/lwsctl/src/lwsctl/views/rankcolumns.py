"""Defines additional columns for a table of ranks, with one cell for each pod. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from lwsctl.model.groups import Rank


class RankColumns(Struct, frozen=True):
    """The column titles, and the cells for each pod."""

    titles: Sequence[str] = ()
    cells: Mapping[ObjectKey, Sequence[str]] = field(default_factory=dict)

    def of(self, rank: Rank) -> Sequence[str]:
        """Return the cells of a rank. If there is no data for its pod, each cell is `-`."""
        lacking = ["-"] * len(self.titles)
        return lacking if rank.object is None else self.cells.get(meta.key(rank.object), lacking)


NO_COLUMNS: Final = RankColumns()
