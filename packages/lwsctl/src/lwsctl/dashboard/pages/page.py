"""The type by which the server knows a page: its title, its frame, its pieces, its text, and what it reads. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.episode import Episode
from lwsctl.dashboard.address import Address
from lwsctl.dashboard.fragments import Rendering
from lwsctl.dashboard.markup import Safe
from lwsctl.dashboard.picture import Picture

BETWEEN_READINGS: Final = 2.0
"""Seconds for which the lists of a page are used again."""


class PageFacts(Struct, frozen=True):
    """The lists of a page by kind; a kind is absent if it could not be read, and all are until `is_read`.

    `episodes` are the recorded failures of the set; None if nothing records them, or they could not be read. `before` is the
    previous state of the page: pieces whose source did not change can be used again.
    """

    objects: Mapping[Resource, Sequence[JSONObject]] = field(default_factory=dict)
    episodes: Sequence[Episode] | None = None
    before: Rendering = field(default_factory=dict)
    is_read: bool = True

    def knows(self, resource: Resource) -> bool:
        """Return whether the kind was read."""
        return resource in self.objects

    def get(self, resource: Resource) -> Sequence[JSONObject]:
        """Return the objects of a kind that were read."""
        return self.objects.get(resource, ())


class Page(Struct, frozen=True, kw_only=True):
    """One kind of page. `reads` returns the lists that it needs in addition to the picture; some need recorded failures.

    It reads again after `reads_every` seconds. If it `shows_first`, it is shown before the lists are read.
    """

    title: Callable[[Address], str]
    frame: Callable[[Address, Rendering], Safe]
    render: Callable[[Picture, Address, PageFacts], Rendering]
    text: Callable[[Picture, Address, PageFacts], Iterator[str]]
    reads: Callable[[Address], Sequence[Query]] = lambda _: ()
    reads_episodes: bool = False
    reads_every: float = BETWEEN_READINGS
    shows_first: Callable[[Address], bool] = lambda _: False
