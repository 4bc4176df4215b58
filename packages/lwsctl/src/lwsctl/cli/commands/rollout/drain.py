"""`lws drain`: cordons nodes, and waits until the manager has moved their groups to other nodes."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

import click
from msgspec import Struct, field

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta, placement
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from leaderworkerset.api.groupname import GroupName, group_and_rank, lws_key
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.nodemaintenance import MOVES_ON, must_be_moved
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.rollouts import clustercapacity, nodewrites, setchange
from lwsctl.cli.sharedoptions import dry_run_option, timeout_option
from lwsctl.cli.views.progress import BETWEEN_LINES, ProgressLine
from lwsctl.cli.views.terminal import print_text
from lwsctl.cli.watchwarnings import following
from lwsctl.diagnosis import groupmoves
from lwsctl.model.leaderworkerset import View
from lwsctl.rollout import drainforecast
from lwsctl.rollout.relocation import unplaceable_groups
from lwsctl.views.wording import duration, format_count, format_groups

GroupsBySet: TypeAlias = Mapping[ObjectKey, frozenset[GroupName]]
"""The groups by LeaderWorkerSet that have pods on the nodes, or whose pods cannot be scheduled."""


class Drain(Struct):
    """The nodes to drain, and the progress of the drain."""

    session: Session
    nodes: Sequence[JSONObject]
    _progress: ProgressLine = field(default_factory=lambda: ProgressLine(between=BETWEEN_LINES))
    _idle: dict[ObjectKey, float] = field(default_factory=dict)
    _observed: set[tuple[ObjectKey, GroupName]] = field(default_factory=set)

    @classmethod
    async def read(cls, session: Session, names: Iterable[str]) -> "Drain":
        """Read the current state of the nodes."""
        keys = dict.fromkeys(ObjectKey("", name.removeprefix("node/")) for name in names)
        return cls(session, [await session.client.get(NODES, key) for key in keys])

    async def preview(self) -> str:
        """Return the groups that would move, in their order, and the groups that would remain."""
        listings = [await self.session.client.list(PODS, field_selector=_node_condition(node)) for node in self.nodes]
        pods = [pod for listing in listings for pod in listing.items]
        by_set = _groups_by_set(pods)
        groups_by_view = [
            (view, [group for group in view.groups if group.name in by_set[view.key]])
            for view in await self._views(by_set)
        ]
        sets = [
            drainforecast.forecast_moves(view, groups, _rejection_reason(view.object))
            for view, groups in groups_by_view
        ]
        cluster = await clustercapacity.read(self.session, [group for _, groups in groups_by_view for group in groups])
        moving = {(leaving.set_path, group) for leaving in sets if not leaving.obstacle for group in leaving.groups}
        others = [pod for pod in pods if (str(lws_key(pod)), _group_of(pod)) not in moving]
        count = sum(len(leaving.groups) for leaving in sets)
        lines = [f"{self._node_names}: {format_count(count, 'group')} of {format_count(len(sets), 'LeaderWorkerSet')}"]
        lines += drainforecast.lines(sets)
        if cluster is not None:
            closed = {meta.name(node) for node in self.nodes}
            lines += [
                line for view, groups in groups_by_view for line in unplaceable_groups(view, groups, closed, cluster)
            ]
        lines += [f"remaining pods: {rest}"] if (rest := drainforecast.describe_other_pods(others)) else []
        return "\n".join([*lines, setchange.DRY])

    async def cancel(self) -> str:
        """Uncordon the nodes. Return a description of the consequences."""
        opened = [
            meta.name(node) for node in self.nodes if await nodewrites.set_cordoned(self.session, node, is_closed=False)
        ]
        if not opened:
            return f"{self._node_names} not cordoned; no changes were made"
        return f"{', '.join(opened)} uncordoned; moved groups do not return automatically"

    async def run(self, timeout: float) -> str:
        """Cordon the nodes, and wait until no group remains. Raise an error if groups will not be moved."""
        async with asyncio.TaskGroup() as tasks:  # concurrently, so that groups move only once
            for node in self.nodes:
                tasks.create_task(self._cordon(node))
        client, loop = self.session.client, asyncio.get_running_loop()
        pods = [
            Informer(client, Selection(PODS, label_selector=labels.NAME, field_selector=_node_condition(node)))
            for node in self.nodes
        ]
        sets = Informer(client, Selection(LEADERWORKERSETS))
        began = loop.time()
        try:
            async with timeouts.within(timeout), following(*pods, sets, self.session.keepalive) as objects:
                by_set = await objects.wait_for(lambda: self._step(_pods(pods), sets, loop.time()), every=1.0)
        except TimeoutError as error:
            remaining = _describe_groups(_groups_by_set(_pods(pods)))
            raise TimedOutError(
                f"groups remain on {self._node_names} after {timeout:g} s: {remaining}; {self._remaining_groups_text}"
            ) from error
        except asyncio.CancelledError:
            self._progress.clear()
            print_text(f"groups remain on {self._node_names}; {self._remaining_groups_text}", err=True)
            raise
        finally:
            self._progress.clear()
        if by_set:
            raise CommandError(
                "\n".join(
                    [
                        f"groups remain on {self._node_names}; {self._remaining_groups_text}",
                        *await self._reasons(by_set),
                    ]
                )
            )
        took = duration(timedelta(seconds=loop.time() - began))
        rest = f"`{self.session.kubectl or 'kubectl'} drain {self._group_count} --ignore-daemonsets` to evict the other pods"
        return f"all groups were moved from {self._node_names} ({format_count(len(self._observed), 'group')} in {took}); use {rest}"

    async def _cordon(self, node: JSONObject) -> None:
        if await nodewrites.set_cordoned(self.session, node, is_closed=True):
            print_text(f"{meta.name(node)} cordoned")

    def _step(self, pods: Sequence[JSONObject], sets: Informer, now: float) -> GroupsBySet | None:
        """Return the remaining groups, or an empty mapping if all groups have moved.

        Return None while groups may still move.
        """
        by_set = _groups_by_set(pods)
        self._observed.update((key, group) for key, groups in by_set.items() for group in groups)
        ending = {lws_key(pod) for pod in pods if meta.is_deleting(pod)}
        idle = {key for key in by_set.keys() - ending if not _is_moving(sets.store.get(key))}
        self._idle = {key: self._idle.get(key, now) for key in idle}
        if all(now - self._idle.get(key, now) >= nodewrites.PATIENCE for key in by_set):
            return by_set
        self._progress.show(f"{self._node_names}: {_describe_groups(by_set)} remaining")
        return None

    async def _views(self, by_set: GroupsBySet) -> list[View]:
        """Return the views of LeaderWorkerSets that have groups on the nodes."""
        read = [await self.session.client.find(LEADERWORKERSETS, key) for key in sorted(by_set)]
        sets = [obj for obj in read if obj is not None]
        return await targets.read_views(self.session, sets) if sets else []

    async def _reasons(self, by_set: GroupsBySet) -> list[str]:
        """Return a line about the remaining groups for each LeaderWorkerSet."""
        return [
            f"  {_describe_groups({view.key: by_set[view.key]})}: {_blocking_reason(view, by_set)}"
            for view in await self._views(by_set)
        ]

    @property
    def _node_names(self) -> str:
        return ", ".join(map(meta.name, self.nodes))

    @property
    def _group_count(self) -> str:
        return " ".join(map(meta.name, self.nodes))

    @property
    def _remaining_groups_text(self) -> str:
        lws = self.session.lws
        return f"use `{lws} drain {self._group_count}` to continue, or `{lws} drain {self._group_count} --cancel` to uncordon"


def _node_condition(node: JSONObject) -> str:
    return f"spec.nodeName={meta.name(node)}"


def _pods(informers: Iterable[Informer]) -> list[JSONObject]:
    return [pod for informer in informers for pod in informer.store.list()]


def _group_of(pod: JSONObject) -> GroupName | None:
    place = group_and_rank(pod)
    return place[0] if place else None


def _groups_by_set(pods: Iterable[JSONObject]) -> GroupsBySet:
    names_by_set: dict[ObjectKey, set[GroupName]] = {}
    for pod in pods:
        group, key = _group_of(pod), lws_key(pod)
        if key.name and group is not None and (meta.is_deleting(pod) or must_be_moved(pod, (placement.CORDONED,))):
            names_by_set.setdefault(key, set()).add(group)
    return {key: frozenset(groups) for key, groups in names_by_set.items()}


def _is_moving(lws: JSONObject | None) -> bool:
    """Return whether the manager reports that it moves groups, and whether the rollout budget permits it."""
    return lws is not None and meta.is_condition_true(lws, MOVE_IN_PROGRESS.type) and not groupmoves.rejection(lws)


def _describe_groups(by_set: GroupsBySet) -> str:
    return ", ".join(f"{format_groups(sorted(groups, key=str))} of {key}" for key, groups in sorted(by_set.items()))


def _rejection_reason(lws: JSONObject) -> str:
    setting = meta.annotations(lws).get(labels.MOVE_OFF_CLOSED_NODES)
    unless = (
        ""
        if setting == MOVES_ON
        else f"groups are moved only if the annotation {labels.MOVE_OFF_CLOSED_NODES} is {MOVES_ON}, or if the manager moves groups by default"
    )
    return groupmoves.rejection(lws) or unless


def _blocking_reason(view: View, by_set: GroupsBySet) -> str:
    """Return the reason why the groups of a LeaderWorkerSet remain on the nodes."""
    over = [group.name for group in view.groups if group.is_over and group.name in by_set[view.key]]
    if over:
        return f"exhausted and complete groups are not moved; to continue, recover or delete {format_groups(over)}"
    if why := groupmoves.rejection(view.object):
        return why
    if meta.annotations(view.object).get(labels.MOVE_OFF_CLOSED_NODES) == MOVES_ON:
        return "the manager does not move groups; check that it is running with `maintenance: {enable: true}`"
    return (
        f"the manager does not move these groups; set the annotation {labels.MOVE_OFF_CLOSED_NODES}={MOVES_ON}, and `maintenance: {{enable: true}}` in its "
        "configuration"
    )


@click.command("drain")
@click.argument("names", nargs=-1, required=True, metavar="NODE...")
@click.option("--cancel", is_flag=True, help="Cancel the drain, and mark the nodes as schedulable.")
@dry_run_option("Show the groups that would be moved and the pods that would remain, without persisting changes.")
@timeout_option("30m", "all groups to be moved")
@click.pass_obj
def command(target: Target, names: tuple[str, ...], *, cancel: bool, is_trial: bool, timeout: float) -> None:
    """Cordon nodes and wait until all of their groups have been moved to other nodes.

    If maintenance is enabled in the manager configuration, the manager moves each group as a whole, within the limits of
    its rollout strategy. Pods that do not belong to a group are not evicted. To evict these pods, use `kubectl drain`. If the
    command exits early, the nodes remain cordoned, and the manager continues to move groups.

    If the manager does not report within 10 seconds that it is moving the remaining groups, the command fails. It prints
    the reasons, and exits with code 1.
    """
    if cancel and is_trial:
        raise UsageError("--cancel cannot be combined with --dry-run")

    async def run_command(session: Session) -> str:
        drain = await Drain.read(session, names)
        if cancel:
            return await drain.cancel()
        return await (drain.preview() if is_trial else drain.run(timeout))

    print_text(target.run(run_command))
