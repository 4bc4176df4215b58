"""Defines a change to a LeaderWorkerSet, which is written, or validated by the API server and previewed."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from kuberuntime.client.requests import PatchKind
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.views import diffs
from lwsctl.rollout import applyforecast

DRY: str = "no changes were made (dry run)"


class Change(Struct, frozen=True, kw_only=True):
    """The patch of a LeaderWorkerSet, or None if there are no changes. `done` describes the patch."""

    lws: JSONObject
    done: str
    patch: JSON = None
    kind: PatchKind = "merge"

    @property
    def name(self) -> str:
        """Return the name of the LeaderWorkerSet."""
        return meta.name(self.lws)


async def apply_change(session: Session, find: Callable[[], Awaitable[Change]], *, is_trial: bool) -> str:
    """Write or validate the change that `find` returns. After a conflict, call `find` again."""

    async def attempt() -> str:
        return await (_preview if is_trial else _perform)(session, await find())

    return await rollouttargets.retry_conflicts(attempt)


async def _perform(session: Session, change: Change) -> str:
    if change.patch is not None:
        await session.client.patch(
            LEADERWORKERSETS, meta.key(change.lws), change.patch, kind=change.kind, manager=rollouttargets.MANAGER
        )
    return change.done


async def _preview(session: Session, change: Change) -> str:
    """Validate the change on the API server. Return the differences, and the groups of each rollout step."""
    if change.patch is None:
        return f"{change.done}: {DRY}"
    after = await session.client.try_patch(
        LEADERWORKERSETS, meta.key(change.lws), change.patch, kind=change.kind, manager=rollouttargets.MANAGER
    )
    try:
        foreseen = applyforecast.forecast_apply(await rollouttargets.read_view(session, change.lws), after)
    except ValueError as error:
        raise CommandError(f"{change.name}: {error}") from error
    titles = (f"{change.name}, now", f"{change.name}, then")
    differences = diffs.unified_diff(diffs.comparable(change.lws), diffs.comparable(after), titles)
    return "\n".join([*differences, "", *applyforecast.lines(foreseen), DRY])
