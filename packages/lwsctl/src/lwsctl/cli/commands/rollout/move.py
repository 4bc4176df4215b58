"""`lws move`: moves a group from all of its nodes, or from one node.

Its leader is annotated, and its nodes do not accept new pods until the group is scheduled on other nodes.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import click
from msgspec import Struct, field

from kuberuntime import timeouts
from kuberuntime.errors import ConflictError, InvalidError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.decisions.nodemaintenance import must_be_moved
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.rollouts import clustercapacity, nodewrites, rollouttargets, setchange
from lwsctl.cli.sharedoptions import dry_run_option, timeout_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views.progress import ProgressLine
from lwsctl.cli.views.terminal import print_text
from lwsctl.cli.watchwarnings import following, present
from lwsctl.diagnosis import groupmoves
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.conditionwatch import SetInformers
from lwsctl.rollout.relocation import Relocation, relocate
from lwsctl.views.reasons import reasons
from lwsctl.views.selection import Selection

UNKNOWN: Final = "the new nodes are unknown, because you are not permitted to list all nodes and pods"


class GroupMove(Struct):
    """The group to move, its leader, and the nodes from which it must be moved."""

    session: Session
    selection: Selection
    leader: Rank
    nodes: frozenset[str]
    excluded_node: str = ""
    """The only node from which the group must be moved, or an empty string for all nodes."""
    outlook: Relocation | None = None
    """The nodes on which the group would fit, or None if they are unknown."""
    _progress: ProgressLine = field(default_factory=ProgressLine)

    @classmethod
    async def find(cls, session: Session, selection: Selection, node: str, *, is_forced: bool = False) -> "GroupMove":
        """Find the group and its current nodes.

        Reject a group that cannot be moved, or that could be scheduled on the same node.

        Unless the move is forced, also reject a group that does not fit on other nodes.
        """
        view = await targets.read_view(session, await rollouttargets.read(session, selection.name))
        targets.require_existing(view, selection)
        group = next(group for group in view.groups if group.name == selection.group)
        leader = group.ranks[0]
        if leader.object is None or leader.index or group.is_over:
            raise CommandError(f"{selection} was not moved, because its leader cannot be replaced")
        if why := groupmoves.move_obstacle(view.object):
            raise CommandError(
                f"{selection} cannot be moved: {why}; use `{session.lws} restart {selection}` to recreate it"
            )
        nodes = frozenset(rank.node for rank in group.ranks if rank.node and node in ("", rank.node))
        for rank in _tolerating_ranks(group, nodes):
            raise CommandError(
                f"{selection} was not moved, because pod {rank.pod} tolerates taint {labels.MOVING}; remove the toleration from the template"
            )
        cluster = await clustercapacity.read(session, [group]) if nodes else None
        outlook = relocate(view.object, group, nodes, cluster) if cluster else None
        if outlook and outlook.obstacle and not is_forced:
            raise CommandError(f"{selection} was not moved, because {outlook}; use `--force` to move it anyway")
        return cls(session, selection, leader, nodes, node, outlook)

    @property
    def _target_description(self) -> str:
        where = f"pod on {self.excluded_node}" if self.excluded_node else "node yet"
        return f"{self.selection} was not moved, because it has no {where}"

    def preview(self) -> str:
        """Return the current nodes of the group, and the nodes on which it would fit."""
        if not self.nodes:
            return self._target_description
        where = f"; {self.outlook or UNKNOWN}"
        return f"{self.selection}: pod {self.leader.pod} and its workers would be moved from {self._group_name}{where}\n{setchange.DRY}"

    async def run(self, timeout: float) -> str:
        """Annotate the leader, and wait until the recreated group is ready."""
        if not self.nodes:
            return self._target_description
        informers = SetInformers(self.session.client, ObjectKey(self.session.namespace, self.selection.name))
        try:
            async with timeouts.within(timeout), following(*informers.all, self.session.keepalive) as objects:
                async with nodewrites.taint_nodes(self.session, self.nodes), self._with_annotation():
                    latest = asyncio.get_running_loop().time() + nodewrites.PATIENCE
                    is_placed = await objects.wait_for(
                        lambda: self._is_scheduled(present(informers), latest), every=1.0
                    )
                if is_placed:
                    await objects.wait_for(lambda: self._is_ready(present(informers)))
        except TimeoutError as error:
            view = informers.view()
            raise TimedOutError(
                f"{self.selection} is not ready on other nodes after {timeout:g} s{reasons(view) if view else ''}; the taint and the annotation were removed"
            ) from error
        finally:
            self._progress.clear()
        if not is_placed:
            raise CommandError(
                f"the manager does not move {self.selection}; enable `maintenance` in its configuration, or use `{self.session.lws} restart {self.selection}`"
            )
        return f"{self.selection} moved from {self._group_name}"

    @asynccontextmanager
    async def _with_annotation(self) -> AsyncIterator[None]:
        """Annotate the leader while the context is active. Then remove the annotation if the leader still exists."""
        await self._annotate("true")
        try:
            yield
        finally:
            with suppress(
                NotFoundError, ConflictError, InvalidError
            ):  # it was moved, and another group may have its name
                await self._annotate(None)

    async def _annotate(self, value: str | None) -> None:
        patch = {"metadata": {"uid": self.leader.uid, "annotations": {labels.MOVE_GROUP: value}}}
        key = ObjectKey(self.session.namespace, self.leader.pod)
        await self.session.client.patch(PODS, key, patch, kind="merge", manager=rollouttargets.MANAGER)

    def _is_scheduled(self, view: View, latest: float) -> bool | None:
        """Return whether the group is assigned to nodes again, or the manager does not move it.

        Return None while the command must wait.
        """
        old = next((rank for rank in view.ranks if rank.uid == self.leader.uid), None)
        if old is not None:
            is_going = meta.is_deleting(old.object or {})
            if not is_going and not groupmoves.is_moving(view) and asyncio.get_running_loop().time() > latest:
                return False
            self._progress.show(
                f"{self.selection}: {'terminating' if is_going else 'waiting to be moved'}{reasons(view)}"
            )
            return None
        self._progress.show(f"{self.selection}: pods are waiting for nodes{reasons(view)}")
        groups = list(self._successors(view))
        return True if groups and not view.more and all(rank.node for group in groups for rank in group.ranks) else None

    def _is_ready(self, view: View) -> bool | None:
        self._progress.show(f"{self.selection}: starting{reasons(view)}")
        return all(group.is_ready for group in self._successors(view)) or None

    def _successors(self, view: View) -> Iterator[Group]:
        """Yield the group with the same index. With random keys, yield all groups, because the new key is unknown."""
        for group in view.groups:
            if group.index < view.desired and (group.key or group.name == self.selection.group):
                yield group

    @property
    def _group_name(self) -> str:
        return ", ".join(sorted(self.nodes))


def _tolerating_ranks(group: Group, nodes: frozenset[str]) -> Iterator[Rank]:
    for rank in group.ranks:
        is_there = rank.object is not None and rank.node in nodes and not meta.is_deleting(rank.object)
        if is_there and not must_be_moved(rank.object or {}, (nodewrites.TAINT,)):
            yield rank


@click.command("move")
@click.argument("name", metavar="LWS/GROUP", shell_complete=completion.names)
@click.option(
    "--off",
    "node",
    default="",
    metavar="NODE",
    help="Move the group off this node only. The group can be recreated on its other nodes. If none of its pods runs on this node, the group is not moved.",
)
@click.option("--force", "is_forced", is_flag=True, help="Move the group even if it does not fit on other nodes.")
@dry_run_option("Show the current and the new nodes of the group, without persisting changes.")
@timeout_option("10m", "the group to be ready on other nodes")
@click.pass_obj
def command(target: Target, name: str, *, node: str, is_forced: bool, is_trial: bool, timeout: float) -> None:
    """Move a group to other nodes. The manager recreates the group within the limits of maxUnavailable and maxSurge.

    Maintenance must be enabled in the manager configuration. The previous nodes are tainted until all pods of the group are
    scheduled on other nodes.

    If the group does not fit on other nodes, it is not moved. To move the group anyway, for example because an autoscaler
    adds nodes, use --force.

    If the manager does not report within 10 seconds that it is moving the group, the command exits with code 1.
    """
    selection = targets.parse(name)
    if selection.group is None or selection.rank is not None:
        raise UsageError("specify one group, such as web/3")

    async def run_command(session: Session) -> str:
        move = await GroupMove.find(session, selection, node.removeprefix("node/"), is_forced=is_forced)
        return move.preview() if is_trial else await move.run(timeout)

    print_text(target.run(run_command))
