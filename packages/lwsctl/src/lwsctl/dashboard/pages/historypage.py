"""Shows the recorded failures of a set, a single failure, or a comparison of two failures. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.episode import Episode
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells, setheader
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.disaggregatedset import Owners, rank_path
from lwsctl.views import episodewording
from lwsctl.views.wording import format_count

FAILURES: Final = ("Failure", "Last", "Outcome", "First rank", "Records", "Compare")
RANKS: Final = ("Rank", "Pod", "Node", "Container", "Restarts", "Ends")
EVENTS: Final = ("Time", "Type", "Reason", "Object", "Count", "Message")

SHOWN: Final = 200
"""The maximum number of episodes in the list. The latest episodes are shown."""

CHOICES: Final = 12
"""The maximum number of comparison links for an episode."""

LINKED: Final = 8
"""The maximum number of links to records of equal failures. The latest records have links."""

NUMBER: Final = re.compile(r"\d+")
SAME: Final = "Only differences are shown."

NOBODY_RECORDS: Final = "Failures of this cluster are not recorded, or the records could not be read."


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    if not address.episode:
        caption = f"Recorded failures of {address.key.name}"
        table = cells.table("plain", FAILURES, region("tbody", "rows", rendering), caption)
        return join(setheader.frame(address, rendering), region("div", "circumstances", rendering), table)
    if address.other:
        return join(
            setheader.frame(address, rendering),
            tag("p", SAME, class_="hint"),
            region("div", "pair", rendering, class_="pair"),
        )
    return join(
        setheader.frame(address, rendering),
        region("div", "circumstances", rendering),
        cells.table("ranks-of-episode", RANKS, region("tbody", "rows", rendering), "Ranks and exit codes"),
        region("div", "episode-logs", rendering),
        cells.table("events-of-episode", EVENTS, region("tbody", "episode-events", rendering), "Events"),
    )


def render(snapshot: Snapshot, address: Address, facts: PageFacts) -> Rendering:
    """Return the fragments, or a message if the episode no longer exists."""
    rendering: dict[str, list[Fragment]] = {
        "trouble": cells.outdated_notes(snapshot),
        "head": [_header_fragment(address)],
        "rows": [],
    }
    if not address.episode:
        note = [] if facts.episodes else [_note_fragment(_no_episodes_text(facts))]
        names = {
            view.key: own
            for view, own in snapshot.members(address.key, is_disaggregatedset=address.is_disaggregatedset)
        }
        return rendering | {
            "circumstances": note,
            "rows": [_failure_row(record, names) for record in _group_by_failure(_latest_episodes(facts))],
        }
    if address.other:
        return rendering | {"pair": list(_compared_episodes(snapshot, address, facts))}
    record = _find(address.episode, facts)
    if record is None:
        missing = [_note_fragment(_missing_episode_text(address, facts))]
        return rendering | {"circumstances": missing, "episode-logs": [], "episode-events": []}
    words = [*_words(snapshot, record), _choices(record, facts)]
    logs = (
        _log(number, title, lines)
        for number, (title, lines) in enumerate(episodewording.log_blocks(_first_rank_first(record)))
    )
    return rendering | {
        "circumstances": [cells.update_part("circumstances-text", "div", words)],
        "rows": list(_ranks(_first_rank_first(record))),
        "episode-logs": list(logs),
        "episode-events": list(_events(record)),
    }


def text(snapshot: Snapshot, address: Address, facts: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    if not address.episode:
        records = _latest_episodes(facts)
        yield from (f"{record.label}: {episodewording.sentence(record, snapshot.now)}" for record in records)
        yield from [] if records else [_no_episodes_text(facts)]
        return
    for episode in filter(None, (address.episode, address.other)):
        record = _find(episode, facts)
        yield from [_missing_episode_text(address, facts, episode)] if record is None else _lines(snapshot, record)


def _lines(snapshot: Snapshot, record: Episode) -> Iterator[str]:
    yield f"{record.label}: {episodewording.sentence(record, snapshot.now)}"
    yield from episodewording.circumstance_lines(record)
    for title, lines in episodewording.log_blocks(record):
        yield from ("", title, *(f"  {line}" for line in lines))


def _latest_episodes(facts: PageFacts) -> list[Episode]:
    return sorted(facts.episodes or (), key=lambda record: (record.time, record.number), reverse=True)[:SHOWN]


def _find(episode: str, facts: PageFacts) -> Episode | None:
    return next((record for record in facts.episodes or () if f"{record.group}/{record.number}" == episode), None)


def _words(snapshot: Snapshot, record: Episode) -> list[Safe]:
    return [
        tag("p", cells.sentence(episodewording.sentence(record, snapshot.now))),
        tag("pre", "\n".join(episodewording.circumstance_lines(record))),
    ]


def _first_rank_first(record: Episode) -> Episode:
    """Return a record in which the rank that failed first is at the start."""
    return replace(record, ranks=tuple(sorted(record.ranks, key=lambda rank: rank.rank != record.first_rank)))


def _group_by_failure(records: Iterable[Episode]) -> list[list[Episode]]:
    """Return the records by failure. Failures are equal if they differ only in numbers."""
    joined_records: dict[str, list[Episode]] = {}
    for record in records:
        joined_records.setdefault(_without_numbers(record.failure) or record.outcome, []).append(record)
    return list(joined_records.values())


def _without_numbers(line: str) -> str:
    """Return a line without numbers.

    >>> _without_numbers("step 17: 81.2 GiB"), _without_numbers("KeyError")
    ('step #: #.# GiB', 'KeyError')
    """
    return NUMBER.sub("#", line)


def _compared_episodes(snapshot: Snapshot, address: Address, facts: PageFacts) -> Iterator[Fragment]:
    """Yield the differences between two episodes, in two columns."""
    left, right = _find(address.episode, facts), _find(address.other, facts)
    for side, episode, record, other in (("left", address.episode, left, right), ("right", address.other, right, left)):
        title, key = tag("h2", _episode_number(episode)), f"pair/{side}"
        content = (
            [tag("p", _missing_episode_text(address, facts, episode))]
            if record is None
            else _differences(snapshot, record, other)
        )
        yield Fragment(key, tag("section", title, content, id=key))


def _differences(snapshot: Snapshot, record: Episode, other: Episode | None) -> list[Safe]:
    known = set(episodewording.circumstance_lines(other)) | set(_terminations(other)) if other else set()
    lines = [line for line in (*episodewording.circumstance_lines(record), *_terminations(record)) if line not in known]
    content = [
        tag("p", cells.sentence(episodewording.sentence(record, snapshot.now))),
        tag("ul", [tag("li", line) for line in lines]),
    ]
    others = {} if other is None else {key: set(map(_without_numbers, run)) for key, _, run in _logs(other)}
    for key, title, run in _logs(record):
        own = [line for line in run if _without_numbers(line) not in others.get(key, ())]
        if own:
            content.append(join(tag("h3", title), tag("pre", "\n".join(own), tabindex=0)))
    return content


def _terminations(record: Episode) -> Iterator[str]:
    for rank in record.ranks:
        yield from (
            f"rank {rank.rank} {own.name}: {episodewording.describe_terminations(own.ends)}" for own in rank.containers
        )


def _logs(record: Episode) -> Iterator[tuple[object, str, Sequence[str]]]:
    """Yield the rank, container and run of each log, with the title and the lines."""
    keys = (
        (rank.rank, own.name, run) for rank in record.ranks for own in rank.containers for run in range(len(own.logs))
    )
    for key, (title, lines) in zip(keys, episodewording.log_blocks(record), strict=True):
        yield key, title, lines


def _choices(record: Episode, facts: PageFacts) -> Safe | None:
    """Return links that compare this episode with each of the other episodes."""
    others = [other for other in _latest_episodes(facts) if other is not record][:CHOICES]
    links = [join(_compare(record, other, other.label.partition("/")[2]), " ") for other in others]
    return tag("p", "Compare with: ", links) if links else None


def _compare(record: Episode, other: Episode, text: str) -> Safe:
    return tag("a", text, href=f"{_address(record).path()}?with={other.group}/{other.number}")


def _address(record: Episode) -> Address:
    key = ObjectKey(record.namespace, record.lws)
    return Address(kind=PageKind.HISTORY, key=key, episode=f"{record.group}/{record.number}")


def _episode_number(episode: str) -> str:
    """Convert `GROUP/N` in an address to `GROUP#N`. `GROUP/N` could be mistaken for a rank."""
    return episode.replace("/", "#")


def _no_episodes_text(facts: PageFacts) -> str:
    return NOBODY_RECORDS if facts.episodes is None else "No failures are recorded."


def _missing_episode_text(address: Address, facts: PageFacts, episode: str = "") -> str:
    if facts.episodes is None:
        return NOBODY_RECORDS
    return f"{address.key.name}/{_episode_number(episode or address.episode)} does not exist. It might have been replaced by newer failures."


def _note_fragment(text: str) -> Fragment:
    return cells.update_part("circumstances-text", "p", text)


def _header_fragment(address: Address) -> Fragment:
    """Return the page header without the state of the set. Records may exist longer than the set."""
    episodes = " next to ".join(map(_episode_number, filter(None, (address.episode, address.other))))
    words = f"{address.key.namespace}{f' · failure {episodes}' if episodes else ''}"
    return Fragment("title", tag("div", tag("h1", address.key.name, " ", tag("small", words)), id="title"))


def _failure_row(records: Sequence[Episode], owners: Owners) -> Fragment:
    """Return the row for equal failures, starting with the latest."""
    record = records[0]
    times = f"{len(records)} × " if len(records) > 1 else ""  # noqa: RUF001
    ranks = sorted({own.first_rank for own in records if own.first_rank is not None})
    before = next((own for own in records[1:] if own.lws == record.lws), None)
    words = [_group_path(own, owners) for own in (record, before) if own is not None]
    compare = "" if before is None else _compare(record, before, " with ".join(words))
    more = f" and {format_count(len(records) - LINKED, 'more')}" if len(records) > LINKED else None
    links = join(
        *(join(tag("a", _group_path(own, owners), href=_address(own).path()), " ") for own in records[:LINKED]), more
    )
    return cells.plain_row(
        f"e/{_group_path(record, owners).replace('#', '/')}",
        tag("strong", times, record.failure or record.outcome.description),
        cells.timestamp_html(record.time, class_="since"),
        record.outcome.description.capitalize(),
        ", ".join(map(str, ranks)),
        links,
        compare,
        find=record.failure,
    )


def _group_path(record: Episode, owners: Owners) -> str:
    return rank_path(f"{record.group}#{record.number}", owners.get(ObjectKey(record.namespace, record.lws), ()))


def _ranks(record: Episode) -> Iterator[Fragment]:
    for rank in record.ranks:
        for container in rank.containers:
            is_first = rank.rank == record.first_rank
            yield cells.plain_row(
                f"k/{rank.rank}/{container.name}",
                f"{rank.rank}, failed first" if is_first else str(rank.rank),
                rank.pod,
                rank.node,
                container.name,
                container.restarts,
                episodewording.describe_terminations(container.ends),
            )


def _log(number: int, title: str, lines: Sequence[str]) -> Fragment:
    key = f"l/{number}"
    return Fragment(
        key, tag("section", tag("h2", title), tag("pre", "\n".join(lines) or "no lines", tabindex=0), id=key)
    )


def _events(record: Episode) -> Iterator[Fragment]:
    for number, event in enumerate(record.events):
        kind = "⚠ Warning" if event.is_warning else "Normal"
        yield cells.plain_row(
            f"v/{number}",
            cells.timestamp_html(event.time, class_="since"),
            kind,
            event.reason,
            event.object,
            event.count,
            event.message,
            find=event.reason,
        )


PAGE: Final = Page(
    title=lambda address: f"History of {address.key.name}", frame=frame, render=render, text=text, reads_episodes=True
)
