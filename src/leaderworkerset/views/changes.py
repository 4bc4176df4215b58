"""Changes between two views of LeaderWorkerSets, one line each: what `lws get --watch` prints. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from leaderworkerset.views import wording
from leaderworkerset.views.groups import Rank, View


def lines(before: Sequence[View], after: Sequence[View], *, with_namespace: bool = False) -> list[str]:
    """Return a line for every LeaderWorkerSet and every rank that another line would describe now."""
    old, new = facts(before, with_namespace=with_namespace), facts(after, with_namespace=with_namespace)
    changed = [f"{name}: {text}" for name, text in new.items() if old.get(name) != text]
    return changed + [f"{name}: gone" for name in old if name not in new]


def facts(views: Sequence[View], *, with_namespace: bool = False) -> Mapping[str, str]:
    """Describe each LeaderWorkerSet and each of its ranks by its name."""
    return dict(
        fact
        for view in views
        for fact in _facts(view, f"{view.namespace}/{view.name}" if with_namespace else view.name)
    )


def _facts(view: View, name: str) -> Iterator[tuple[str, str]]:
    yield name, f"READY {view.ready}, DESIRED {view.desired}, UP-TO-DATE {view.up_to_date}"
    for rank in (rank for group in view.groups for rank in group.ranks):
        yield f"{name}/{rank.place}", describe(rank)


def describe(rank: Rank) -> str:
    """Describe a rank as its row in the table does, without its age."""
    ready = ", ready" if rank.is_ready else ""
    restarts = f", {wording.counted(rank.restarts, 'restart')}" if rank.restarts else ""
    why = wording.reason(rank)
    return f"{wording.state(rank)}{ready}{restarts}{f': {why}' if why else ''}"
