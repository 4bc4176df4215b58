"""`lws rollout status`: follow a rollout until it is done, or say why it does not get on."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import click

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.requests import only
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import STATEFULSETS, Resource
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.commands.rollout import subjects
from leaderworkerset.cli.errors import CommandError, TimedOutError, UsageError
from leaderworkerset.cli.following import following
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import output
from leaderworkerset.cli.views.progress import Progress
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.observation.following import DisaggregatedInformers, SetInformers
from leaderworkerset.observation.logs import silent_lines
from leaderworkerset.steering import pace
from leaderworkerset.views import missing
from leaderworkerset.views.wording import counted

REFRESH = 5.0
"""Seconds after which the estimate is computed again where nothing changes."""


@click.command("status")
@click.argument("name", metavar="LWS|SET", shell_complete=completing.names)
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Exit 124 when it is not done by then."
)
@click.option(
    "--stuck-after",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Exit 1 with the reason when no group changed for so long.",
)
@click.option("--watch/--no-watch", default=True, show_default=True, help="Follow it, or say once how far it is.")
@click.option("-o", "--output", "form", type=click.Choice(["json"]), help="Say once how far it is, for programs.")
@click.pass_obj
def command(target: Target, /, name: str, *, timeout: float | None, stuck_after: float, **options: Any) -> None:
    """Follow a rollout until it is done: groups updated and ready, and the time left at the pace so far.

    Exit 0 when it is done, 1 when it is stuck or paused, 124 when it is not done in time. On a terminal the line rewrites itself.

    \b
    lws rollout status web
    lws rollout status web --timeout 600
    lws rollout status web --no-watch
    """  # noqa: D301 - click reads the \b
    name = subjects.named(name)

    async def act() -> str:
        async with target.session() as session:
            resource, _ = await targets.find_either(session, name)
            key = ObjectKey(session.namespace, name)
            follower = follower_of(session, resource, key, stuck_after)
            if options["form"]:
                return output.as_json(await follower.document())
            return await follower.follow(timeout) if options["watch"] else await follower.once()

    say(asyncio.run(act()))


@dataclass(slots=True)
class Deadline:
    """Notices when what moves has not moved for `seconds`."""

    seconds: float
    clock: Clock
    standing: object = None
    since: float = field(init=False)

    def __post_init__(self) -> None:
        self.since = self.clock.monotonic()

    def is_over(self, standing: object) -> bool:
        """Return whether the standing has been the same for too long."""
        if standing != self.standing:
            self.standing, self.since = standing, self.clock.monotonic()
        return self.clock.monotonic() - self.since >= self.seconds


class StuckError(CommandError):
    """A rollout does not get on; the text says why."""


class Follower:
    """Follows the rollout of a LeaderWorkerSet."""

    def __init__(self, session: Session, key: ObjectKey, stuck_after: float) -> None:
        self._session = session
        self._key = key
        self._informers = SetInformers(session.client, key)
        self._statefulset = Informer(session.client, only(STATEFULSETS, key))
        self._clock = SystemClock()
        self._deadline = Deadline(stuck_after, self._clock)
        self._progress = Progress()
        self._line = "the first answer of the API server"

    async def follow(self, timeout: float | None) -> str:
        """Return what to say once the rollout is done; raise otherwise."""
        followed = (*self._informers.all, self._statefulset, self._session.lifeline)
        try:
            async with timeouts.within(timeout), following(*followed) as objects:
                return await objects.until(self._check, every=min(REFRESH, self._deadline.seconds or REFRESH))
        except TimeoutError as error:
            raise TimedOutError(f"not done after {timeout:g} s: {self._line}{await self._quotation()}") from error
        finally:
            self._progress.clear()

    async def once(self) -> str:
        """Return how far the rollout is now."""
        async with following(*self._informers.all, self._statefulset):
            found = self._measure()
            self._line = pace.line(found)
            return _conclusion(found) if found.is_complete else self._line

    async def document(self) -> JSONObject:
        """Return how far the rollout is now, for programs."""
        async with following(*self._informers.all, self._statefulset):
            return pace.document(self._measure())

    def _measure(self) -> pace.Progress:
        view = self._informers.view()
        if view is None:
            raise CommandError(f"{self._key.name} is gone")
        return pace.progress(view, self._statefulset.store.get(self._key), self._clock.now())

    def _check(self) -> str | None:
        found = self._measure()
        self._line = pace.line(found) + (f"; {found.why}" if found.why else "")
        if found.is_complete:
            return _conclusion(found)
        if found.is_paused:
            raise StuckError(f"{pace.line(found)}; go on with `{self._session.lws} rollout resume {found.name}`")
        if self._deadline.is_over(found.standing):
            raise StuckError(f"no group changed for {self._deadline.seconds:g} s: {self._line}")
        self._progress.show(f"{pace.bar(found)} {self._line}" if self._progress.rewrites else self._line)
        return None

    async def _quotation(self) -> str:
        view = self._informers.view()
        texts = await silent_lines(self._session.client, [] if view is None else [view], 1)
        return "".join(f"\n{text}" for text in texts)


class SetFollower:
    """Follows the rollout of a DisaggregatedSet, which is done when nothing of older revisions is left."""

    def __init__(self, session: Session, key: ObjectKey, stuck_after: float) -> None:
        self._session = session
        self._key = key
        self._informers = DisaggregatedInformers(session.client, key)
        self._deadline = Deadline(stuck_after, SystemClock())
        self._progress = Progress()
        self._lacking = "the first answer of the API server"

    async def follow(self, timeout: float | None) -> str:
        """Return what to say once the rollout is done; raise otherwise."""
        try:
            async with timeouts.within(timeout), following(*self._informers.all, self._session.lifeline) as objects:
                return await objects.until(self._check, every=min(REFRESH, self._deadline.seconds or REFRESH))
        except TimeoutError as error:
            raise TimedOutError(f"not done after {timeout:g} s: {self._key.name}: {self._lacking}") from error
        finally:
            self._progress.clear()

    async def once(self) -> str:
        """Return how far the rollout is now."""
        async with following(*self._informers.all):
            return f"{self._key.name}: {missing.for_ready(self._informers.view()) or 'the rollout is done'}"

    async def document(self) -> JSONObject:
        """Refuse: what programs read of a DisaggregatedSet is what `lws get` prints."""
        raise UsageError(
            f"{self._key.name} is a DisaggregatedSet: `{self._session.lws} get {self._key.name} -o json` has its rollout"
        )

    def _check(self) -> str | None:
        view = self._informers.view()
        if view is None:
            raise CommandError(f"{self._key.name} is gone")
        self._lacking = missing.for_ready(view) or ""
        if not self._lacking:
            return f"{self._key.name}: the rollout is done; {counted(view.ready, 'group')} ready"
        if self._deadline.is_over((view.ready, view.updated, len(view.parts))):
            raise StuckError(f"no group changed for {self._deadline.seconds:g} s: {self._key.name}: {self._lacking}")
        self._progress.show(f"{self._key.name}: {self._lacking}")
        return None


def follower_of(session: Session, resource: Resource, key: ObjectKey, stuck_after: float) -> Follower | SetFollower:
    """Return what follows the rollout of whatever the name stands for."""
    kind = Follower if resource == LEADERWORKERSETS else SetFollower
    return kind(session, key, stuck_after)


def _conclusion(found: pace.Progress) -> str:
    held = f"; the partition holds {counted(found.held, 'group')}" if found.held else ""
    paused = "; paused" if found.is_paused else ""
    return f"{found.name}: the rollout is done: {counted(found.done, 'group')} updated and ready{held}{paused}"
