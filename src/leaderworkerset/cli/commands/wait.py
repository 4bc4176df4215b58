"""`lws wait`: wait for a condition of a LeaderWorkerSet or a DisaggregatedSet, and report what is missing on timeout."""

import asyncio

import click

from kuberuntime.client.client import Client
from kuberuntime.objects import decimals, meta
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli import durations, logging, targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.commands.causes import Causes, stuck_options
from leaderworkerset.cli.errors import CommandError, TimedOutError, UsageError
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views.progress import ProgressLine
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.observation.following import informers_of
from leaderworkerset.observation.podlogs import silent_lines
from leaderworkerset.observation.waiting import WaitTimeoutError, wait_for
from leaderworkerset.views import missing
from leaderworkerset.views.disaggregation import Shown, leaderworkersets
from leaderworkerset.views.missing import Check
from leaderworkerset.views.wording import counted


@click.command("wait")
@click.argument("name", metavar="NAME", shell_complete=completing.names)
@click.option(
    "--for",
    "condition",
    default="ready",
    show_default=True,
    metavar="WHAT",
    help="ready, delete, replicas=N (ready groups), or condition=TYPE[=STATUS].",
)
@click.option("--timeout", type=durations.limit, default=120.0, show_default=True, metavar="DURATION")
@stuck_options
@click.pass_obj
def command(
    target: Target, /, name: str, condition: str, timeout: float, *, stuck_after: float | None, fail_fast: bool
) -> None:
    """Wait for a condition of a LeaderWorkerSet or a DisaggregatedSet; on timeout, exit 124 with what is missing.

    The cause that it is stuck for is printed as by `lws explain`: once while it waits, and in the error that ends it.
    """
    check = parse(condition)
    name = targets.whole(name, "wait")

    async def act() -> None:
        async with target.session() as session:
            resource = await resource_of(session, name, condition)
            informers = informers_of(session.client, resource, meta.ObjectKey(session.namespace, name))
            logging.configure_default(session.lifeline.log_level)
            progress = ProgressLine()
            causes = Causes(session, name, progress.note, stuck_after=0.0 if fail_fast else stuck_after)
            beside = (session.lifeline,) if condition == "delete" else (session.lifeline, causes)
            try:
                await wait_for(informers, check, timeout, report=progress.show, beside=beside)
            except WaitTimeoutError as error:
                quoted = await quotation(session.client, error.view)
                raise TimedOutError(f"{error}{quoted}{await causes.conclude()}") from error
            finally:
                progress.clear()

    asyncio.run(act())
    say(f"{name} {reached(condition)}")


async def resource_of(session: Session, name: str, condition: str) -> Resource:
    """Return the kind of the name; for a deletion the object may be absent already."""
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
    """Return the reached condition as text.

    >>> reached("ready"), reached("replicas=1"), reached("condition=Available")
    ('is ready', 'has 1 ready group', 'has condition Available=True')
    """
    word, _, value = condition.partition("=")
    if word == "replicas":
        return f"has {counted(decimals.natural(value) or 0, 'ready group')}"
    if word == "condition":
        return f"has condition {value if '=' in value else f'{value}=True'}"
    return "is deleted" if word == "delete" else "is ready"


def parse(condition: str) -> Check:
    """Read the condition to wait for."""
    try:
        return missing.parse(condition)
    except ValueError as error:
        raise UsageError(f"--for={error}") from error
