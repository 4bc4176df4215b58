"""Defines page addresses, which contain the kind of page, its object, and its format. Pure.

Relative to the base of the server, the empty path is the first page. `sets/NAMESPACE/NAME` is a LeaderWorkerSet, with
the pages `…/rollout` and `…/logs`. `…/history` contains its recorded failures, and `…/history/GROUP/NUMBER` is one of
them (with `?with=GROUP/NUMBER` for a comparison). `disaggregated/NAMESPACE/NAME` is a DisaggregatedSet with the same
pages for its LeaderWorkerSets. `topology` contains the nodes, and `causes/CODE` explains a cause.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from kuberuntime.objects import decimals
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.groupname import parse_group_name

CODE: Final = re.compile(r"LWS-E[0-9]{3}")
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


NOBODY: Final = ObjectKey("", "")
"""The key of pages without a single object."""


class PageKind(StrEnum):
    """The kinds of pages. The value is part of the address."""

    NOW = ""
    SET = "sets"
    ROLLOUT = "rollout"
    LOGS = "logs"
    HISTORY = "history"
    WHOLE = "disaggregated"
    TOPOLOGY = "topology"
    CAUSE = "causes"


class Arrangement(StrEnum):
    """The objects that are rows in the grid of a set."""

    GROUP = "group"
    NODE = "node"
    RACK = "rack"
    REVISION = "revision"


class StateFilter(StrEnum):
    """The sets that are shown on the first page."""

    ALL = ""
    PROBLEMS = "problems"
    PROGRESSING = "progressing"
    HEALTHY = "healthy"
    COMPLETE = "complete"


class PageForm(StrEnum):
    """The formats of a page.

    These are HTML, a plain table, text to copy, and a file that does not require a server.
    """

    PAGE = "page"
    TABLE = "table"
    TEXT = "text"
    FILE = "file"


class NoSuchPageError(ValueError):
    """Raised if the address does not match a page."""


class Address(Struct, frozen=True, kw_only=True):
    """The address of one page.

    `key` is the set of the page, if any. `episode` is the group and number of a recorded failure, or the code of a
    cause. `other` is a second recorded failure for a comparison, or the set `NAMESPACE/NAME` for the topology. `origin`
    is the kind of set.
    """

    kind: PageKind
    key: ObjectKey = NOBODY
    origin: PageKind = PageKind.SET
    episode: str = ""
    other: str = ""
    arrangement: Arrangement = Arrangement.GROUP
    state: StateFilter = StateFilter.ALL
    format: PageForm = PageForm.PAGE

    @property
    def is_disaggregatedset(self) -> bool:
        """Return whether the page shows a DisaggregatedSet."""
        return PageKind.WHOLE in (self.kind, self.origin)

    def path(self) -> str:
        """Return the path relative to the base path of the server."""
        place = f"{quote(self.key.namespace)}/{quote(self.key.name)}"
        match self.kind:
            case PageKind.NOW | PageKind.TOPOLOGY:
                return self.kind.value
            case PageKind.CAUSE:
                return f"{self.kind.value}/{self.episode}"
            case PageKind.SET | PageKind.WHOLE:
                return f"{self.kind.value}/{place}"
            case PageKind.ROLLOUT | PageKind.LOGS:
                return f"{self.origin.value}/{place}/{self.kind.value}"
            case PageKind.HISTORY:
                episode = f"/{self.episode}" if self.episode else ""
                return f"{self.origin.value}/{place}/{self.kind.value}{episode}"


def parse(path: str, query: Mapping[str, str]) -> Address:
    """Parse an address. Raise `NoSuchPageError` if it does not match a page.

    >>> parse("sets/prod/web", {"by": "node"}).path(), parse("sets/prod/web/logs", {}).kind.value
    ('sets/prod/web', 'logs')
    """
    parts, episode = _split_episode(path.split("/") if path else [])
    try:
        arrangement = Arrangement(query.get("by", Arrangement.GROUP))
        state = StateFilter(query.get("state", StateFilter.ALL))
        form = PageForm(query.get("as", PageForm.PAGE))
    except ValueError as error:
        raise NoSuchPageError(str(error)) from error
    kind, key = _parse_location(parts)
    if kind is PageKind.CAUSE and not episode:
        raise NoSuchPageError(path)
    if kind is PageKind.LOGS and form is PageForm.FILE:
        raise NoSuchPageError(f"{path}: log pages are saved in the browser")
    if kind is PageKind.TOPOLOGY:
        return Address(kind=kind, other=_parse_choice(query.get("set", "")), format=form)
    other = query.get("with", "") if kind is PageKind.HISTORY and episode else ""
    if other and _split_episode(["history", *other.split("/")])[1] != other:
        raise NoSuchPageError(f"{path}: with={other} is not a recorded failure; use GROUP/NUMBER")
    home = PageKind.WHOLE if parts[:1] == ["disaggregated"] and kind is not PageKind.WHOLE else PageKind.SET
    if home is PageKind.WHOLE and episode:
        raise NoSuchPageError(f"{path}: only LeaderWorkerSets have recorded failures")
    return Address(
        kind=kind,
        key=key,
        origin=home,
        episode=episode,
        other=other,
        arrangement=arrangement,
        state=state,
        format=form,
    )


def _split_episode(parts: Sequence[str]) -> tuple[Sequence[str], str]:
    """Split off the group and number of a recorded failure, or the cause code."""
    match list(parts):
        case ["causes", code] if CODE.fullmatch(code):
            return ["causes"], code
        case [*place, "history", group, number] if None not in (parse_group_name(group), decimals.natural(number)):
            return [*place, "history"], f"{group}/{number}"
        case _:
            return parts, ""


def _parse_location(parts: Sequence[str]) -> tuple[PageKind, ObjectKey]:
    match list(parts):
        case []:
            return PageKind.NOW, NOBODY
        case ["causes"]:
            return PageKind.CAUSE, NOBODY
        case ["topology"]:
            return PageKind.TOPOLOGY, NOBODY
        case ["sets", namespace, name]:
            return PageKind.SET, _key(namespace, name)
        case ["sets" | "disaggregated", namespace, name, ("rollout" | "logs" | "history") as word]:
            return PageKind(word), _key(namespace, name)
        case ["disaggregated", namespace, name]:
            return PageKind.WHOLE, _key(namespace, name)
        case _:
            raise NoSuchPageError("/".join(parts))


def _parse_choice(text: str) -> str:
    return str(_key(*text.split("/", 1))) if "/" in text else ""


def _key(namespace: str, name: str) -> ObjectKey:
    if not NAME.fullmatch(namespace) or not NAME.fullmatch(name):
        raise NoSuchPageError(f"{namespace}/{name}")
    return ObjectKey(namespace, name)
