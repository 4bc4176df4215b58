"""`lws wait`: wait for a condition of a LeaderWorkerSet or a DisaggregatedSet, and say what is missing when it does not come."""

import asyncio
from collections.abc import Callable

import click

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import CommandError, TimedOutError, UsageError
from leaderworkerset.cli.following import following
from leaderworkerset.cli.views.progress import Progress
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.observation.following import informers_of
from leaderworkerset.observation.logs import silent_lines
from leaderworkerset.views import missing
from leaderworkerset.views.disaggregation import Shown, leaderworkersets
from leaderworkerset.views.wording import counted

Check = Callable[[Shown | None], str | None]
"""Returns what is still missing, in words; None when there is nothing left to wait for."""


@click.command("wait")
@click.argument("name", metavar="NAME")
@click.option(
    "--for",
    "condition",
    default="ready",
    show_default=True,
    metavar="WHAT",
    help="ready, delete, replicas=N (ready groups), or condition=TYPE[=STATUS].",
)
@click.option("--timeout", type=click.FloatRange(min=0), default=120.0, show_default=True, metavar="SECONDS")
@click.pass_obj
def command(target: Target, name: str, condition: str, timeout: float) -> None:
    """Wait for a condition of a LeaderWorkerSet or a DisaggregatedSet; exit 124 with what is missing if it does not come in time."""
    check = parse(condition)
    chosen = targets.parse(name)

    async def act() -> None:
        async with target.session() as session:
            resource = await resource_of(session, chosen.name, condition)
            informers = informers_of(session.client, resource, meta.ObjectKey(session.namespace, chosen.name))
            lacking = "the first answer of the API server"
            progress = Progress()

            def is_done() -> bool | None:
                nonlocal lacking
                lacking = check(informers.view()) or ""
                if lacking:
                    progress.show(f"{chosen.name}: {lacking}")
                return True if not lacking else None

            try:
                async with timeouts.within(timeout), following(*informers.all, session.lifeline) as objects:
                    await objects.until(is_done)
            except TimeoutError as error:
                quoted = await quotation(session.client, informers.view())
                raise TimedOutError(f"{chosen.name} after {timeout:g} s: {lacking}{quoted}") from error
            finally:
                progress.clear()

    asyncio.run(act())
    say(f"{chosen.name} {reached(condition)}")


async def resource_of(session: Session, name: str, condition: str) -> Resource:
    """Return which kind the name is of; what shall be deleted may be gone already."""
    try:
        return (await targets.find_either(session, name))[0]
    except CommandError:
        if condition == "delete":
            return LEADERWORKERSETS
        raise


async def quotation(client: Client, view: Shown | None) -> str:
    """Return the last lines of the first rank that failed without a message, each on a line of its own."""
    texts = await silent_lines(client, () if view is None else leaderworkersets([view]), 1)
    return "".join(f"\n{text}" for text in texts)


def reached(condition: str) -> str:
    """Say in words what was waited for.

    >>> reached("ready"), reached("replicas=1"), reached("condition=Available")
    ('is ready', 'has 1 ready group', 'has condition Available=True')
    """
    word, _, value = condition.partition("=")
    if word == "replicas":
        return f"has {counted(int(value), 'ready group')}"
    if word == "condition":
        return f"has condition {value if '=' in value else f'{value}=True'}"
    return "is deleted" if word == "delete" else "is ready"


def parse(condition: str) -> Check:
    """Read what to wait for."""
    word, _, value = condition.partition("=")
    if word == "ready" and not value:
        return missing.for_ready
    if word == "delete" and not value:
        return missing.for_deletion
    if word == "replicas" and value.isdecimal():
        return lambda view: missing.for_replicas(view, int(value))
    if word == "condition" and value:
        kind, _, status = value.partition("=")
        return lambda view: missing.for_condition(view, kind, status or "True")
    raise UsageError(f"--for={condition}: use ready, delete, replicas=N, or condition=TYPE[=STATUS]")
