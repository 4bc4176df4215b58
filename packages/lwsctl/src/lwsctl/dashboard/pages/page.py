"""Defines the page type of the server, with a title, frame, fragments, text, and required lists. Pure."""

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
from lwsctl.dashboard.snapshot import Snapshot

BETWEEN_READINGS: Final = 2.0
"""The time in seconds for which the lists of a page are reused before they are reread."""


class PageFacts(Struct, frozen=True):
    """The lists of a page by kind. A kind that could not be read is absent. `is_read` is set after the first read.

    `episodes` are the recorded failures of the set, or None if they are not recorded or could not be read. `before`
    is the previous state of the page, whose pieces are reused if their source did not change.
    """

    objects: Mapping[Resource, Sequence[JSONObject]] = field(default_factory=dict)
    episodes: Sequence[Episode] | None = None
    before: Rendering = field(default_factory=dict)
    is_read: bool = True

    def is_read_kind(self, resource: Resource) -> bool:
        """Return whether this kind was read."""
        return resource in self.objects

    def get(self, resource: Resource) -> Sequence[JSONObject]:
        """Return the objects of this kind that were read."""
        return self.objects.get(resource, ())


class Page(Struct, frozen=True, kw_only=True):
    """A kind of page. `reads` returns the lists that it requires in addition to the snapshot.

    It is reread every `reads_every` seconds. If `shows_first` is set, it is shown before the lists are read.
    """

    title: Callable[[Address], str]
    frame: Callable[[Address, Rendering], Safe]
    render: Callable[[Snapshot, Address, PageFacts], Rendering]
    text: Callable[[Snapshot, Address, PageFacts], Iterator[str]]
    reads: Callable[[Address], Sequence[Query]] = lambda _: ()
    reads_episodes: bool = False
    reads_every: float = BETWEEN_READINGS
    shows_first: Callable[[Address], bool] = lambda _: False
