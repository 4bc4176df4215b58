"""`lws rollout status`: watches a rollout until it is complete, or reports the reason why it is stuck."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.requests import select_one
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import DEPLOYMENTS, STATEFULSETS
from leaderworkerset.api import groupname
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli import sharedoptions, targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import TimedOutError, UsageError
from lwsctl.cli.sets.causes import CauseMonitor, StuckError
from lwsctl.cli.shell import completion
from lwsctl.cli.views import output
from lwsctl.cli.views.progress import BETWEEN_LINES, ProgressLine
from lwsctl.cli.views.terminal import print_text
from lwsctl.cli.watchwarnings import following, present
from lwsctl.model.disaggregatedset import leaderworkersets
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.conditionwatch import ChangeSource, DisaggregatedInformers, OneSet, SetInformers
from lwsctl.observation.podlogs import silent_lines
from lwsctl.rollout import rolloutprogress
from lwsctl.views import unmetconditions
from lwsctl.views.wording import format_count

REFRESH = 5.0
"""The interval in seconds between updates of the estimate if there are no changes."""


@click.command("status")
@click.argument("name", metavar="LWS|SET", shell_complete=completion.names)
@click.option(
    "--timeout",
    type=sharedoptions.limit,
    metavar="DURATION",
    help="Maximum time to wait for the rollout to complete. Unlimited by default.",
)
@click.option(
    "--stuck-after",
    type=sharedoptions.limit,
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="If no group changes for this duration, print the reason and exit with code 1.",
)
@sharedoptions.ready_for_option()
@sharedoptions.node_patience_option
@click.option(
    "--watch/--no-watch",
    default=True,
    show_default=True,
    help="Watch the rollout until it is complete. With --no-watch, the status is printed once.",
)
@click.option("-o", "--output", "form", type=click.Choice(["json"]), help="Output format. Implies --no-watch.")
@click.pass_obj
def command(target: Target, /, name: str, *, timeout: float | None, **options: Any) -> None:
    """Show the status of a rollout until the rollout is complete.

    The status includes the number of ready groups and the estimated remaining time. On a terminal, the status line is
    updated in place. If the rollout is stuck, the command prints the cause, as `lws explain` does. If the command fails,
    the error message refers to this cause.

    Exit codes: 0 the rollout is complete, 1 the rollout is stuck or paused, 124 the timeout expired.
    """
    name = targets.set_name(name, "rollout")

    async def run_command(session: Session) -> str:
        resource, _ = await targets.find_set(session, name)
        key = ObjectKey(session.namespace, name)
        kind = RolloutFollower if resource == LEADERWORKERSETS else SetFollower
        follower: RolloutWait = kind(session, key, options["stuck_after"], timedelta(seconds=options["ready_for"]))
        if options["form"]:
            return output.as_json(await follower.document())
        return await follower.follow(timeout) if options["watch"] else await follower.current_progress()

    print_text(target.run(run_command))


@dataclass(slots=True)
class Deadline:
    """Checks whether a value has been unchanged for `seconds`."""

    seconds: float
    clock: Clock
    last_value: object = None
    unchanged_since: float = field(init=False)

    def __post_init__(self) -> None:
        self.unchanged_since = self.clock.monotonic()

    def has_expired(self, standing: object) -> bool:
        """Return whether the value has been unchanged for too long."""
        if standing != self.last_value:
            self.last_value, self.unchanged_since = standing, self.clock.monotonic()
        return self.clock.monotonic() - self.unchanged_since >= self.seconds


class WaitResult(Struct, frozen=True):
    """The result of waiting for a rollout.

    If `is_stuck` is set, nothing changed for too long, and a diagnosis may find the cause.
    """

    text: str
    is_done: bool = True
    is_stuck: bool = False


class RolloutWait(ABC):
    """Waits until a rollout is complete. If the rollout fails, the error contains the cause and its code."""

    progress: str
    """The progress that the timeout error contains."""

    reason = ""
    """The reason on a separate line. An error contains it only if no cause is found."""

    _informers: OneSet
    _leaders: Sequence[Informer] = ()
    """The leader StatefulSet and the leader Deployment, if their revision is compared."""

    def __init__(self, session: Session, key: ObjectKey, stuck_after: float, ready_for: timedelta) -> None:
        self._ready_for = ready_for
        self._session = session
        self._key = key
        self._clock = SystemClock()
        self._deadline = Deadline(stuck_after, self._clock)
        self._progress = ProgressLine(between=BETWEEN_LINES)
        self._causes = CauseMonitor(session, key.name, self._progress.note)

    async def follow(self, timeout: float | None) -> str:
        """Return the message for a completed rollout. Raise an error if the rollout fails."""
        beside = (self._session.keepalive, self._causes)
        try:
            async with timeouts.within(timeout), following(*self.informers, *beside) as objects:
                end = await objects.wait_for(self.check, every=min(REFRESH, self._deadline.seconds or REFRESH))
        except TimeoutError as error:
            raise TimedOutError(
                f"the rollout was not complete after {timeout:g} s ({self.progress}){await self._reason()}"
            ) from error
        finally:
            self._progress.clear()
        if not end.is_done:
            raise StuckError(f"{end.text}{await self._reason() if end.is_stuck else ''}")
        return end.text

    async def _reason(self) -> str:
        """Return the last lines of a failed rank and the cause, on separate lines."""
        texts = await silent_lines(self._session.client, self.views(), 1)
        return "".join(f"\n{text}" for text in texts) + (await self._causes.final_cause() or self.reason)

    def _stuck_result(self) -> WaitResult:
        return WaitResult(
            f"no group changed for {self._deadline.seconds:g} s ({self.progress})", is_done=False, is_stuck=True
        )

    async def current_progress(self) -> str:
        """Return the current progress of the rollout."""
        async with following(*self.informers):
            return self.summary()

    @property
    def informers(self) -> tuple[ChangeSource, ...]:
        """Return the informers."""
        return (*self._informers.all, *self._leaders)

    def views(self) -> list[View]:
        """Return the current views of the LeaderWorkerSets."""
        view = self._informers.view()
        return leaderworkersets([] if view is None else [view])

    @abstractmethod
    def check(self) -> WaitResult | None:
        """Return the result, or None while the rollout continues."""

    @abstractmethod
    def summary(self) -> str:
        """Return the progress of the rollout."""

    @abstractmethod
    async def document(self) -> JSONObject:
        """Return the progress of the rollout as machine-readable data."""


class RolloutFollower(RolloutWait):
    """Watches the rollout of a LeaderWorkerSet."""

    _informers: SetInformers

    def __init__(
        self, session: Session, key: ObjectKey, stuck_after: float, ready_for: timedelta = unmetconditions.READY_FOR
    ) -> None:
        super().__init__(session, key, stuck_after, ready_for)
        self._informers = SetInformers(session.client, key)
        self._leaders = [Informer(session.client, select_one(kind, key)) for kind in (STATEFULSETS, DEPLOYMENTS)]
        self.progress = "no response from the API server"

    async def document(self) -> JSONObject:
        """Return the progress of the rollout as machine-readable data."""
        async with following(*self.informers):
            return rolloutprogress.document(self._measure())

    def _measure(self) -> rolloutprogress.RolloutProgress:
        view = present(self._informers)
        leaders = self._leaders[groupname.uses_random_keys(view.object)].store.get(self._key)
        return rolloutprogress.measure_progress(replace(view, leaders=leaders), self._clock.now())

    def summary(self) -> str:
        """Return the progress of the rollout."""
        progress = self._measure()
        return _conclusion(progress) if progress.is_complete else rolloutprogress.progress_line(progress)

    def check(self) -> WaitResult | None:
        """Return the result, or None while the rollout continues."""
        progress = self._measure()
        progress = replace(progress, remaining=None) if self._causes.is_stuck else progress
        self.progress, self.reason = (
            rolloutprogress.progress_line(progress),
            f"\n  {progress.reason}" if progress.reason else "",
        )
        failed = unmetconditions.missing_for_lasting(
            present(self._informers), self._clock.now(), self._ready_for, kept_back=progress.held_groups
        )
        if progress.is_complete and not failed:
            return WaitResult(_conclusion(progress))
        if progress.is_complete:
            self.progress = f"{rolloutprogress.progress_line(progress)}; {failed}"
            self._progress.show(self.progress)
            return None
        if progress.is_paused:
            resume = f"{self._session.lws} rollout resume {progress.name}"
            return WaitResult(f"{rolloutprogress.progress_line(progress)}; use `{resume}` to continue", is_done=False)
        if self._deadline.has_expired(progress.progress_values):
            return self._stuck_result()
        self._progress.show(
            f"{rolloutprogress.progress_bar(progress)} {rolloutprogress.brief_line(progress)}"
            if self._progress.rewrites
            else self.progress + self.reason
        )
        return None


class SetFollower(RolloutWait):
    """Watches the rollout of a DisaggregatedSet.

    The rollout is complete when all groups of older revisions are deleted.
    """

    _informers: DisaggregatedInformers

    def __init__(
        self, session: Session, key: ObjectKey, stuck_after: float, ready_for: timedelta = unmetconditions.READY_FOR
    ) -> None:
        super().__init__(session, key, stuck_after, ready_for)
        self._informers = DisaggregatedInformers(session.client, key)
        self.progress = f"{key.name}: no response from the API server"

    async def document(self) -> JSONObject:
        """Raise an error, because machine-readable DisaggregatedSets are available only in `lws get`."""
        raise UsageError(
            f"{self._key.name} is a DisaggregatedSet; use `{self._session.lws} get {self._key.name} -o view` to show its rollout"
        )

    def summary(self) -> str:
        """Return the progress of the rollout."""
        return f"{self._key.name}: {unmetconditions.missing_for_ready(self._informers.view()) or 'rollout complete'}"

    def check(self) -> WaitResult | None:
        """Return the result, or None while the rollout continues."""
        view = present(self._informers)
        lacking = unmetconditions.missing_for_ready(view) or ""
        self.progress = f"{self._key.name}: {lacking}"
        if not lacking and (failed := unmetconditions.missing_for_lasting(view, self._clock.now(), self._ready_for)):
            self.progress += failed
            self._progress.show(self.progress)
            return None
        if not lacking:
            return WaitResult(f"{self._key.name}: rollout complete, {format_count(view.ready, 'group')} ready")
        if self._deadline.has_expired((view.ready, view.updated, len(view.parts))):
            return self._stuck_result()
        self._progress.show(self.progress)
        return None


def _conclusion(progress: rolloutprogress.RolloutProgress) -> str:
    note = f"; the partition blocks {format_count(progress.held_groups, 'group')}" if progress.held_groups else ""
    paused = "; paused" if progress.is_paused else ""
    return f"{progress.name}: rollout complete, {format_count(progress.done_groups, 'group')} updated and ready{note}{paused}"
