"""Restarts some groups of a LeaderWorkerSet, or one rank, a few groups at a time.

A group is recreated as after a failure. Its leader is deleted in the foreground, workers first.
"""

from contextlib import suppress

from msgspec import Struct, field

from kuberuntime import timeouts
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import leaderworkerset
from leaderworkerset.api.groupname import GroupName
from leaderworkerset.decisions.rolloutsteps import read_rollout_budget
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.rollouts import rollouttargets, setchange
from lwsctl.cli.views.progress import ProgressLine
from lwsctl.cli.watchwarnings import following, present
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.conditionwatch import SetInformers
from lwsctl.rollout import restarts
from lwsctl.rollout.restarts import RestartStep
from lwsctl.views.reasons import reasons
from lwsctl.views.selection import Selection
from lwsctl.views.wording import format_count, places

NO_BUDGET = 2**31


class RestartRequest(Struct, frozen=True):
    """The targets of a restart, which are a LeaderWorkerSet, some of its groups, or one rank of a group."""

    name: str
    groups: tuple[GroupName, ...] = ()
    rank: int | None = None

    @classmethod
    def parse(cls, arguments: tuple[str, ...]) -> "RestartRequest":
        """Parse the names, all of which must belong to one LeaderWorkerSet."""
        selections = [targets.parse(word) for word in arguments]
        if len({selection.name for selection in selections}) > 1:
            raise UsageError("all groups must belong to the same LeaderWorkerSet")
        if len(selections) > 1 and any(
            selection.group is None or selection.rank is not None for selection in selections
        ):
            raise UsageError("specify one LeaderWorkerSet, some of its groups, or one rank")
        first: Selection = selections[0]
        groups = sorted(
            {selection.group for selection in selections if selection.group is not None},
            key=lambda name: (str(type(name)), name),
        )
        return cls(first.name, tuple(groups), first.rank)

    def __str__(self) -> str:
        where = f"group {self.groups[0]}" if len(self.groups) == 1 else f"groups {places(self.groups)}"
        return where if self.rank is None else f"rank {self.groups[0]}/{self.rank}"


class Restart(Struct):
    """The restart of some groups, a few at a time."""

    session: Session
    request: RestartRequest
    force: bool = False
    _old: dict[GroupName, str] = field(default_factory=dict)
    _progress: ProgressLine = field(default_factory=ProgressLine)

    async def run(self, timeout: float) -> str:
        """Delete the pods in batches, and wait until all groups are ready."""
        await rollouttargets.read(self.session, self.request.name)
        informers = SetInformers(self.session.client, ObjectKey(self.session.namespace, self.request.name))
        try:
            async with timeouts.within(timeout), following(*informers.all, self.session.keepalive) as objects:
                self._old = self._pods_to_delete(present(informers))
                while (batch := await objects.wait_for(lambda: self._next_batch(present(informers)))).unready_groups:
                    for rank in batch.ranks:
                        await self._delete(rank.pod, rank.uid)
        except TimeoutError as error:
            view = informers.view()
            raise TimedOutError(
                f"{self.request.name} {self.request} was not restarted after {timeout:g} s{reasons(view) if view else ''}"
            ) from error
        finally:
            self._progress.clear()
        return f"{self.request.name} {self.request} restarted"

    async def preview(self) -> str:
        """Return the pods that would be deleted, and the number of groups per batch."""
        obj = await rollouttargets.read(self.session, self.request.name)
        view = await targets.read_view(self.session, obj)
        uids = self._pods_to_delete(view)
        pace = (
            "all at the same time"
            if self.force
            else f"at most {format_count(self._budget(view), 'group')} unavailable at a time"
        )
        lines = [f"{self.request.name} {self.request} would be recreated, {pace}, in this order:"]
        ordered = sorted(view.groups, key=lambda group: group.index, reverse=True)
        groups = [group for group in ordered if group.name in uids]
        lines += [f"  {self._describe(group)}" for group in groups]
        lws = leaderworkerset.decode(obj)
        if self.request.rank and restarts.recreates_group(lws, groups[0]):
            policy = lws.spec.leader_worker_template.restart_policy
            lines.append(f"with the restart policy {policy}, all ranks of the group are recreated")
        return "\n".join([*lines, setchange.DRY])

    def _describe(self, group: Group) -> str:
        if self.request.rank:
            return f"rank {group.name}/{self.request.rank}: pod {group.ranks[self.request.rank].pod}"
        workers = sum(rank.object is not None for rank in group.ranks[1:])
        return f"group {group.name}: pod {group.ranks[0].pod} and {format_count(workers, 'worker')}"

    def _pods_to_delete(self, view: View) -> dict[GroupName, str]:
        if over := [group for group in view.groups if group.is_over and group.name in self.request.groups]:
            place = f"{self.request.name}/{over[0].name}"
            why = "is exhausted, and its pods are kept for diagnosis" if over[0].is_exhausted else "is complete"
            raise CommandError(
                f"no groups were restarted, because group {place} {why}; use `{self.session.lws} recover {place}` to recover it"
            )
        uids = restarts.pods_to_delete(view, self.request.groups, self.request.rank)
        lacking = [index for index in self.request.groups if index not in uids]
        if lacking:
            raise CommandError(
                f"no groups were restarted, because {self.request.name} has no pod for {RestartRequest(self.request.name, tuple(lacking), self.request.rank)}; "
                f"{self.request.name} has {format_count(len(view.groups) + view.more, 'group')}"
            )
        return uids

    def _next_batch(self, view: View) -> RestartStep | None:
        """Return the next batch of groups, or a result if all are done. Return None if the command must wait."""
        batch = restarts.next_batch(view, self._old, self._budget(view), rank=self.request.rank)
        done = max(0, len(self._old) - len(batch.unready_groups))  # also wait for groups that replace one of them
        self._progress.show(
            f"{self.request.name}: {done} of {format_count(len(self._old), 'group')} restarted{reasons(view)}"
        )
        return batch if batch.ranks or not batch.unready_groups else None

    def _budget(self, view: View) -> int:
        if self.force:
            return NO_BUDGET
        return max(read_rollout_budget(leaderworkerset.decode(view.object).spec).unavailable, 1)

    async def _delete(self, pod: str, uid: str) -> None:
        key = ObjectKey(self.session.namespace, pod)
        propagation = None if self.request.rank else "Foreground"
        with suppress(NotFoundError, ConflictError):  # another client deleted the pod with this UID
            await self.session.client.delete(PODS, key, propagation=propagation, uid=uid)  # type: ignore[arg-type]  # a literal
