"""`lws wait`: waits for a condition of LeaderWorkerSets or DisaggregatedSets, and reports unmet conditions."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.conditions import AVAILABLE, COMPLETE, WAIT_WORDS
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli import logging, targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.sets.causes import CauseMonitor, stuck_options
from lwsctl.cli.sharedoptions import node_patience_option, ready_for_option, timeout_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views import formats
from lwsctl.cli.views.progress import BETWEEN_LINES, ProgressLine
from lwsctl.cli.views.terminal import print_text
from lwsctl.model.disaggregatedset import Shown, leaderworkersets
from lwsctl.observation.conditionwatch import WaitTimeoutError, informers_of, wait_for
from lwsctl.observation.podlogs import silent_lines
from lwsctl.views import unmetconditions
from lwsctl.views.unmetconditions import Check
from lwsctl.views.wording import format_count

AT_ONCE: Final = 20
"""The maximum number of objects to watch concurrently. Each object requires several watches."""

AGAIN: Final = 1.0
"""The interval in seconds between checks if there are no changes. A group must remain ready after a failure."""

LAST_LOOK: Final = 2.0
"""The time limit in seconds for reading an object that is processed after the timeout."""


class WaitRequest(Struct, frozen=True, kw_only=True):
    """The condition to wait for, its minimum time after a failure, limits in seconds, and the output format."""

    condition: str
    timeout: float
    ready_for: float
    form: str | None = None
    stuck_after: float | None = None


@click.command("wait")
@click.argument("names", nargs=-1, metavar="[LWS|SET]...", shell_complete=completion.names)
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector to filter objects.")
@click.option(
    "--all", "every", is_flag=True, help="Select all LeaderWorkerSets and DisaggregatedSets in the namespace."
)
@click.option(
    "--for",
    "condition",
    default="ready",
    show_default=True,
    metavar="CONDITION",
    help=f"Condition to wait for: {unmetconditions.USABLE}.",
)
@timeout_option("2m", "the condition")
@ready_for_option("--for ready")
@stuck_options
@node_patience_option
@formats.output_option("Output format. The objects that meet the condition are printed instead of messages.")
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], *, selector: str, every: bool, **options: Any) -> None:
    """Wait until LeaderWorkerSets or DisaggregatedSets meet a condition. If the timeout expires, the exit code is 124.

    If you specify several objects, the timeout applies to all objects together. If an object is stuck, the command prints
    the cause, as `lws explain` does. If the command fails, the error message refers to this cause.
    """
    if options.pop("fail_fast"):
        options["stuck_after"] = 0.0
    request = WaitRequest(**options)
    condition_check(request)
    if request.form and request.condition == "delete":
        raise UsageError("-o cannot be combined with --for delete")
    if [bool(names), bool(selector), every].count(True) != 1:
        raise UsageError("specify either names, -l LABELS or --all")
    set_names = [targets.set_name(name, "wait") for name in dict.fromkeys(names)]

    async def run_command(session: Session) -> None:
        logging.configure_default(session.keepalive.log_level)
        object_names = set_names
        if not object_names:
            object_names = (await targets.list_objects(session, session.namespace, selector)).names
        if not object_names:
            raise CommandError(await targets.nothing_found(session, session.namespace, selector))
        await wait_all(session, object_names, request)

    target.run(run_command)


async def wait_all(session: Session, names: Sequence[str], request: WaitRequest) -> None:
    """Wait for all objects, and print the objects that met the condition. One error describes all other objects."""
    semaphore, loop, progress = (
        asyncio.Semaphore(AT_ONCE),
        asyncio.get_running_loop(),
        ProgressLine(between=BETWEEN_LINES),
    )
    end = loop.time() + request.timeout
    objects: dict[str, JSONObject] = {}

    async def wait(name: str) -> str:
        async with semaphore:
            remaining = max(round(end - loop.time(), 1), min(request.timeout, LAST_LOOK))
            try:
                view = await wait_for_object(session, name, replace(request, timeout=remaining), progress)
            except TimedOutError as error:
                return str(error)
            if view is not None and request.form:
                objects[name] = view.object
            else:
                print_text(f"{name} {describe_condition(request.condition)}")
            return ""

    async with asyncio.TaskGroup() as tasks:
        waits = [tasks.create_task(wait(name)) for name in names]
    if request.form:
        matches = [objects[name] for name in names if name in objects]
        click.echo(formats.render_objects(request.form, matches, is_one=len(names) == len(matches) == 1), nl=False)
    if late := [text for task in waits if (text := task.result())]:
        raise TimedOutError("\n".join(late))


async def wait_for_object(session: Session, name: str, request: WaitRequest, progress: ProgressLine) -> Shown | None:
    """Wait until one object meets the condition. Return its view, or None if it is deleted."""
    resource = await find_resource(session, name, request.condition)
    informers = informers_of(session.client, resource, meta.ObjectKey(session.namespace, name))
    cause_session = replace(session, until_done=session.until_done or WAIT_WORDS.get(request.condition) is COMPLETE)
    causes = CauseMonitor(cause_session, name, progress.note, stuck_after=request.stuck_after)
    beside = (session.keepalive,) if request.condition == "delete" else (session.keepalive, causes)
    try:
        check = condition_check(request)
        return await wait_for(informers, check, request.timeout, report=progress.show, beside=beside, every=AGAIN)
    except WaitTimeoutError as error:
        quoted = await error_quotation(session.client, error.view)
        raise TimedOutError(f"{error}{quoted}{await causes.final_cause()}") from error
    finally:
        progress.clear()


def condition_check(request: WaitRequest) -> Check:
    """Return the function that checks the requested condition."""
    try:
        return unmetconditions.condition_check(
            request.condition, SystemClock().now, timedelta(seconds=request.ready_for)
        )
    except ValueError as error:
        raise UsageError(f"--for={error}") from error


async def find_resource(session: Session, name: str, condition: str) -> Resource:
    """Return the kind of the named object. The object may be missing only if the command waits for its deletion."""
    try:
        return (await targets.find_set(session, name))[0]
    except CommandError:
        if condition == "delete":
            return LEADERWORKERSETS
        raise


async def error_quotation(client: Client, view: Shown | None) -> str:
    """Return the last lines of the first failed rank without a message, on separate lines."""
    texts = await silent_lines(client, () if view is None else leaderworkersets([view]), 1)
    return "".join(f"\n{text}" for text in texts)


def describe_condition(condition: str) -> str:
    """Return a description of the condition that was met.

    >>> describe_condition("ready"), describe_condition("complete"), describe_condition("failed"), describe_condition("replicas=1"), describe_condition("condition=Available")
    ('is ready', 'is complete', 'has condition Failed=True', 'has 1 ready group', 'has condition Available=True')
    """
    word, _, value = condition.partition("=")
    if word == "jsonpath":
        return f"has {value}"
    if word == "replicas":
        return f"has {format_count(decimals.natural(value) or 0, 'ready group')}"
    if word == "condition":
        return f"has condition {value if '=' in value else f'{value}=True'}"
    if word == "delete":
        return "is deleted"
    outcome = WAIT_WORDS[word]
    return {AVAILABLE: "is ready", COMPLETE: "is complete"}.get(outcome, f"has condition {outcome.type}=True")
