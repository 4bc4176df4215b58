"""History: the recorded failures of a set, one in full with the logs of its ranks, or two side by side. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from leaderworkerset.api.episode import Episode
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pages import cells
from leaderworkerset.dashboard.pages.page import Page, PageFacts
from leaderworkerset.dashboard.picture import Picture
from leaderworkerset.dashboard.pieces import Piece, Rendering, region
from leaderworkerset.views import episodewording

EPISODES: Final = ("episode", "time", "outcome", "first rank", "failure", "compare")
RANKS: Final = ("rank", "pod", "node", "container", "restarts", "ends")
EVENTS: Final = ("time", "type", "reason", "object", "count", "message")

SHOWN: Final = 200
"""The maximum of episodes in the list, the newest."""

CHOICES: Final = 12
"""The maximum of other episodes that an episode links to, for a view side by side."""

NOBODY_RECORDS: Final = "Failures of this cluster are not recorded, or the records could not be read."


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    if not address.episode:
        caption = f"Recorded failures of {address.key.name}"
        table = cells.table("plain", EPISODES, region("tbody", "rows", rendering), caption)
        return joined(region("header", "head", rendering), table)
    if address.other:
        return joined(region("header", "head", rendering), region("div", "pair", rendering, class_="pair"))
    return joined(
        region("header", "head", rendering),
        cells.table("ranks-of-episode", RANKS, region("tbody", "rows", rendering), "The ranks, and how they ended"),
        region("div", "episode-logs", rendering),
        cells.table("events-of-episode", EVENTS, region("tbody", "episode-events", rendering), "Events"),
    )


def render(picture: Picture, address: Address, facts: PageFacts) -> Rendering:
    """Return the pieces; for an episode that is not kept a sentence that says so."""
    rendering: dict[str, list[Piece]] = {"trouble": cells.trouble(picture), "rows": []}
    if not address.episode:
        records = _newest(facts)
        return rendering | {
            "head": [_title(address, None if facts.episodes else tag("p", _none(facts)))],
            "rows": [_row(address, record, before) for record, before in pairwise([*records, None]) if record],
        }
    if address.other:
        return rendering | {"head": [_title(address)], "pair": list(_pair(picture, address, facts))}
    record = _find(address.episode, facts)
    if record is None:
        return rendering | {
            "head": [_title(address, tag("p", _absent(address, facts)))],
            "episode-logs": [],
            "episode-events": [],
        }
    words = [*_words(picture, record), _choices(address, record, facts)]
    logs = (_log(number, title, lines) for number, (title, lines) in enumerate(episodewording.logs(record)))
    return rendering | {
        "head": [_title(address, *words)],
        "rows": list(_ranks(record)),
        "episode-logs": list(logs),
        "episode-events": list(_events(record)),
    }


def text(picture: Picture, address: Address, facts: PageFacts) -> Iterator[str]:
    """Yield the lines of the page as text."""
    if not address.episode:
        records = _newest(facts)
        yield from (f"{record.place}: {episodewording.sentence(record, picture.now)}" for record in records)
        yield from [] if records else [_none(facts)]
        return
    for episode in filter(None, (address.episode, address.other)):
        record = _find(episode, facts)
        yield from [_absent(address, facts, episode)] if record is None else _lines(picture, record)


def _lines(picture: Picture, record: Episode) -> Iterator[str]:
    yield f"{record.place}: {episodewording.sentence(record, picture.now)}"
    yield from episodewording.circumstances(record)
    for title, lines in episodewording.logs(record):
        yield from ("", title, *(f"  {line}" for line in lines))


def _newest(facts: PageFacts) -> list[Episode]:
    return sorted(facts.episodes or (), key=lambda record: (record.time, record.number), reverse=True)[:SHOWN]


def _find(episode: str, facts: PageFacts) -> Episode | None:
    return next((record for record in facts.episodes or () if f"{record.group}/{record.number}" == episode), None)


def _words(picture: Picture, record: Episode) -> list[Safe]:
    return [
        tag("p", episodewording.sentence(record, picture.now)),
        tag("pre", "\n".join(episodewording.circumstances(record))),
    ]


def _pair(picture: Picture, address: Address, facts: PageFacts) -> Iterator[Piece]:
    """Yield both episodes in full, each in a column."""
    for side, episode in (("left", address.episode), ("right", address.other)):
        record, key = _find(episode, facts), f"pair/{side}"
        title = tag("h2", _shown(episode))
        if record is None:
            yield Piece(key, tag("section", title, tag("p", _absent(address, facts, episode)), id=key))
            continue
        ends = [
            f"rank {rank.rank} {container.name}: {episodewording.ends(container.ends)}"
            for rank in record.ranks
            for container in rank.containers
        ]
        logs = [
            joined(tag("h3", name), tag("pre", "\n".join(lines), tabindex=0))
            for name, lines in episodewording.logs(record)
        ]
        yield Piece(
            key,
            tag("section", title, _words(picture, record), tag("ul", [tag("li", end) for end in ends]), logs, id=key),
        )


def _choices(address: Address, record: Episode, facts: PageFacts) -> Safe | None:
    """Return links to this episode next to each other one."""
    others = [other for other in _newest(facts) if other is not record][:CHOICES]
    links = [joined(_compare(address, record, other, other.place.partition("/")[2]), " ") for other in others]
    return tag("p", "Next to: ", links) if links else None


def _compare(address: Address, record: Episode, other: Episode, words: str) -> Safe:
    place = f"{record.group}/{record.number}"
    path = Address(kind=PageKind.HISTORY, key=address.key, episode=place).path()
    return tag("a", words, href=f"{path}?with={other.group}/{other.number}")


def _shown(episode: str) -> str:
    """Return `GROUP#N` of the `GROUP/N` in an address: `GROUP/N` would look like a rank."""
    return episode.replace("/", "#")


def _none(facts: PageFacts) -> str:
    return NOBODY_RECORDS if facts.episodes is None else "No failures are recorded."


def _absent(address: Address, facts: PageFacts, episode: str = "") -> str:
    if facts.episodes is None:
        return NOBODY_RECORDS
    return f"{address.key.name}/{_shown(episode or address.episode)} is not kept: it was removed for newer ones, or never existed."


def _title(address: Address, *below: Safe | None) -> Piece:
    """Return the head of the page, with the tabs of the set's pages."""
    episodes = " next to ".join(map(_shown, filter(None, (address.episode, address.other))))
    words = f"{address.key.namespace} · {f'failure {episodes}' if episodes else 'history'}"
    heading = tag("h1", address.key.name, " ", tag("small", words))
    return Piece("title", tag("div", heading, cells.tabs(address.key, PageKind.HISTORY), list(below), id="title"))


def _row(address: Address, record: Episode, before: Episode | None) -> Piece:
    place = f"{record.group}/{record.number}"
    href = Address(kind=PageKind.HISTORY, key=address.key, episode=place).path()
    first = "" if record.first_rank is None else record.first_rank
    link = tag("a", _shown(place), href=href)
    compare = (
        "" if before is None else _compare(address, record, before, f"with {_shown(f'{before.group}/{before.number}')}")
    )
    outcome = record.outcome.words
    return cells.row(f"e/{place}", link, record.time, outcome, first, record.failure, compare, find=record.failure)


def _ranks(record: Episode) -> Iterator[Piece]:
    for rank in record.ranks:
        for container in rank.containers:
            is_first = rank.rank == record.first_rank
            yield cells.row(
                f"k/{rank.rank}/{container.name}",
                f"{rank.rank}, failed first" if is_first else str(rank.rank),
                rank.pod,
                rank.node,
                container.name,
                container.restarts,
                episodewording.ends(container.ends),
            )


def _log(number: int, title: str, lines: Sequence[str]) -> Piece:
    key = f"l/{number}"
    return Piece(key, tag("section", tag("h2", title), tag("pre", "\n".join(lines) or "no lines", tabindex=0), id=key))


def _events(record: Episode) -> Iterator[Piece]:
    for number, event in enumerate(record.events):
        kind = "⚠ Warning" if event.is_warning else "Normal"
        yield cells.row(
            f"v/{number}", event.time, kind, event.reason, event.object, event.count, event.message, find=event.reason
        )


PAGE: Final = Page(
    title=lambda address: f"History of {address.key.name}", frame=frame, render=render, text=text, reads_episodes=True
)
