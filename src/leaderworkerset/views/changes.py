"""Changes between two views of LeaderWorkerSets, one line each: what `lws get --watch` prints. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from leaderworkerset.views.groups import Rank, View


def lines(before: Sequence[View], after: Sequence[View]) -> list[str]:
    """Return a line for every LeaderWorkerSet and every rank that another line would describe now."""
    old, new = facts(before), facts(after)
    changed = [f"{name}: {text}" for name, text in new.items() if old.get(name) != text]
    return changed + [f"{name}: gone" for name in old if name not in new]


def facts(views: Sequence[View]) -> Mapping[str, str]:
    """Describe each LeaderWorkerSet and each of its ranks by its name."""
    return dict(fact for view in views for fact in _facts(view))


def _facts(view: View) -> Iterator[tuple[str, str]]:
    yield view.name, f"READY {view.ready}, DESIRED {view.desired}, UP-TO-DATE {view.up_to_date}"
    for rank in (rank for group in view.groups for rank in group.ranks):
        yield f"{view.name}/{rank.place}", describe(rank)


def describe(rank: Rank) -> str:
    """Describe a rank as its row in the table does, without its age."""
    stub = " (stub)" if rank.is_stub else ""
    ready = ", ready" if rank.is_ready else ""
    restarts = f", {rank.restarts} restarts" if rank.restarts else ""
    return f"{rank.state}{stub}{ready}{restarts}{f': {rank.why}' if rank.why else ''}"
