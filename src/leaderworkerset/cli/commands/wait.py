"""`lws wait`: wait for a condition of a LeaderWorkerSet, and say what is missing when it does not come."""

import asyncio
from collections.abc import Callable

import click

from kuberuntime import timeouts
from kuberuntime.objects import meta
from leaderworkerset.cli import selection
from leaderworkerset.cli.cluster.target import Target
from leaderworkerset.cli.errors import TimedOutError, UsageError
from leaderworkerset.cli.following import SetInformers, following
from leaderworkerset.cli.views.progress import Progress
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.views.groups import View

Check = Callable[[View | None], str | None]
"""Returns what is still missing, in words; None when there is nothing left to wait for."""


@click.command("wait")
@click.argument("name", metavar="LWS")
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
    """Wait for a condition; exit 124 with what is missing if it does not come in time."""
    check = parse(condition)
    chosen = selection.parse(name)

    async def act() -> None:
        async with target.session() as session:
            if condition != "delete":
                await selection.find(session, chosen.name)
            informers = SetInformers(session.client, meta.ObjectKey(session.namespace, chosen.name))
            missing = "the first answer of the API server"
            progress = Progress()

            def is_done() -> bool | None:
                nonlocal missing
                missing = check(informers.view()) or ""
                if missing:
                    progress.show(f"{chosen.name}: {missing}")
                return True if not missing else None

            try:
                async with timeouts.within(timeout), following(*informers.all) as objects:
                    await objects.until(is_done)
            except TimeoutError as error:
                raise TimedOutError(f"{chosen.name} after {timeout:g} s: {missing}") from error
            finally:
                progress.clear()

    asyncio.run(act())
    say(f"{chosen.name}: {condition} met")


def parse(condition: str) -> Check:
    """Read what to wait for."""
    word, _, value = condition.partition("=")
    if word == "ready" and not value:
        return missing_for_ready
    if word == "delete" and not value:
        return lambda view: None if view is None else "it is still there"
    if word == "replicas" and value.isdecimal():
        return lambda view: missing_for_replicas(view, int(value))
    if word == "condition" and value:
        kind, _, status = value.partition("=")
        return lambda view: missing_for_condition(view, kind, status or "True")
    raise UsageError(f"--for={condition}: use ready, delete, replicas=N, or condition=TYPE[=STATUS]")


def missing_for_ready(view: View | None) -> str | None:
    """Wait until the newest spec is in place and all groups are ready."""
    if view is None:
        return "it is gone"
    if view.is_ready:
        return None
    return f"{view.ready} of {view.desired} groups ready{reasons(view)}"


def missing_for_replicas(view: View | None, count: int) -> str | None:
    """Wait until exactly `count` groups are ready."""
    if view is None:
        return "it is gone"
    return None if view.ready == count else f"{view.ready} groups ready, not {count}{reasons(view)}"


def missing_for_condition(view: View | None, kind: str, status: str) -> str | None:
    """Wait for a condition that speaks of the newest spec (R-STAT-15)."""
    if view is None:
        return "it is gone"
    condition = meta.find_condition(view.object, kind) or {}
    current = condition.get("observedGeneration") == meta.generation(view.object)
    if condition.get("status", "False") == status and (current or status != "True"):
        return None
    return f"condition {kind} is {condition.get('status', 'not there')}{reasons(view)}"


def reasons(view: View) -> str:
    """Name the first rank that says why it is not ready, and how many others are not."""
    waiting = [rank for group in view.groups for rank in group.ranks if not rank.is_ready]
    if not waiting:
        return ""
    first = next((rank for rank in waiting if rank.why and rank.state != "Missing"), waiting[0])
    others = f" (and {len(waiting) - 1} more ranks)" if len(waiting) > 1 else ""
    return f"; {first.pod} is {first.state}{': ' + first.why if first.why else ''}{others}"
