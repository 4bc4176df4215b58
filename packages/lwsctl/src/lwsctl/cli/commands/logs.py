"""`lws logs`: prints logs of LeaderWorkerSets, groups or ranks. Each line is prefixed with `group/rank`."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import SET_NAME
from leaderworkerset.api.groupname import group_and_rank
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli import sharedoptions, targets
from lwsctl.cli.cluster import clusterdirectories, recordedlogs, recordings
from lwsctl.cli.cluster.recordedlogs import RankRequest, RecordedLog, is_specified
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.logsrequest import LogsRequest, compile_pattern, group_name, labels_of
from lwsctl.cli.sharedoptions import container_option, print_selected_container
from lwsctl.cli.shell import completion
from lwsctl.cli.views.loglines import WaitingNotes
from lwsctl.cli.views.terminal import print_text
from lwsctl.model.leaderworkerset import sort_key
from lwsctl.observation.podlogs import LogError, NotStartedError, PodLogOptions, read
from lwsctl.views.outcome import is_over
from lwsctl.views.podcontainers import container_status, containers, group_by_reason
from lwsctl.views.selection import Selection
from lwsctl.views.wording import format_count

if TYPE_CHECKING:
    from lwsctl.observation.conditionwatch import ConditionWatch, OneSet  # they import informers, which only -f needs

MOST_STREAMS: Final = 100
"""The default limit of followed logs. Each log requires one connection to the API server and one to a kubelet."""

FULL: Final = "note: streaming {most} logs (--max-streams); other logs start when one of them finishes"

PAUSE: Final = 0.2
RECORDED_WITHIN: Final = 10
"""The number of attempts to find recorded lines of a deleted pod, and the delay between them in seconds."""

NO_EARLIER_RUN: Final = "previous terminated"
"""The prefix of the kubelet's message about a container without a previous run."""


@click.command("logs")
@click.argument("names", nargs=-1, metavar="[LWS[/GROUP[/RANK]]|SET]...", shell_complete=completion.names)
@click.option(
    "-l",
    "--selector",
    default="",
    metavar="LABELS",
    help="Label selector to filter pods. Cannot be combined with names.",
)
@click.option("-f", "--follow", is_flag=True, help="Stream the logs, including the logs of new ranks.")
@click.option("-p", "--previous", is_flag=True, help="Print the logs of the previous instance of the container.")
@click.option(
    "--group",
    "groups",
    type=group_name,
    multiple=True,
    metavar="GROUP",
    help="Print only the logs of this group. May be repeated.",
)
@click.option(
    "--rank",
    "ranks",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Print only the logs of the rank with this index in each group. May be repeated.",
)
@click.option("--grep", metavar="REGEX", help="Print only lines that match this regular expression.")
@click.option("--timestamps", is_flag=True, help="Include a timestamp on each line.")
@container_option
@click.option(
    "--tail",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of recent lines to print for each rank. Defaults to all lines.",
)
@click.option(
    "--since",
    metavar="DURATION",
    type=sharedoptions.age,
    help="Print only lines newer than a relative duration like 30s, 5m or 2h. Defaults to all lines.",
)
@click.option(
    "--max-streams",
    "most",
    type=click.IntRange(min=1),
    default=MOST_STREAMS,
    show_default=True,
    metavar="N",
    help="Maximum number of logs to stream concurrently.",
)
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], **options: Any) -> None:
    """Print the logs of ranks. Unless a single rank is selected, each line has the prefix GROUP/RANK.

    If several LeaderWorkerSets are selected, the prefix also includes the name of the LeaderWorkerSet. A DisaggregatedSet
    selects the LeaderWorkerSets of all its roles.
    """
    selector = options.pop("selector")
    if bool(names) == bool(selector):
        raise UsageError("specify either names or -l LABELS")
    request = LogsRequest(
        labels=labels_of(selector),
        selections=tuple(dict.fromkeys(targets.parse(name) for name in names)),
        groups=frozenset(options.pop("groups")),
        ranks=frozenset(options.pop("ranks")),
        pattern=compile_pattern(options.pop("grep")),
        most=options.pop("most"),
        options=PodLogOptions(**options),
    )
    if request.options.follow and request.options.previous:
        raise UsageError("--previous cannot be combined with --follow")
    if not print_run_records(target, request):
        asyncio.run(follow(target, request) if request.options.follow else show(target, request))


async def show(target: Target, request: LogsRequest) -> None:
    """Print the logs that exist now."""
    async with target.session() as session:
        await print_existing_logs(session, await with_selections(session, request))


async def print_existing_logs(session: Session, request: LogsRequest) -> None:
    """Print the existing logs, rank by rank. Logs that cannot be read are reported at the end."""
    errors: list[LogError | NotFoundError] = []
    sink = request.sink()
    try:
        pods = await list_pods(session, request)
    except NoPodsError:
        specified = [
            is_specified(*await targets.find_set(session, selection.name), selection)
            for selection in request.selections
        ]
        print_lines = print_recorded_soon if any(specified) else print_recorded
        if not await print_lines(session, request):
            raise
        return
    print_selected_container(pods, request.options.container)
    for pod in pods:
        try:
            async for line in read(session.client, pod, request.options):
                sink(pod, line)
        except (LogError, NotFoundError) as error:
            print_lines = print_recorded_soon if isinstance(error, NotFoundError) else print_recorded
            if not (await print_previous_log(session, pod, request, error) or await print_lines(session, request, pod)):
                errors.append(error)
    raise_errors(errors, len(pods))


class NoPodsError(CommandError):
    """Raised if no pod matches. While a group is recreated, its pods are temporarily missing."""


async def print_previous_log(session: Session, pod: JSONObject, request: LogsRequest, error: Exception) -> bool:
    """Print the previous log of a container that is not running yet. Return whether the log exists."""
    if not isinstance(error, NotStartedError) or request.options.previous:
        return False
    try:
        lines = [line async for line in read(session.client, pod, replace(request.options, previous=True))]
    except (LogError, NotFoundError):
        return False
    if lines:
        print_text(f"note: {error}; this is the log of the previous run", err=True)
    sink = request.sink()
    for line in lines:
        sink(pod, line)
    return bool(lines)


async def print_recorded_soon(session: Session, request: LogsRequest, pod: JSONObject | None = None) -> bool:
    """Print the recorded last lines of a recently deleted pod. The recorder may still be writing them."""
    for _ in range(RECORDED_WITHIN):
        if await print_recorded(session, request, pod):
            return True
        await asyncio.sleep(PAUSE)
    return False


async def print_recorded(session: Session, request: LogsRequest, pod: JSONObject | None = None) -> bool:
    """Print the recorded last lines of a pod without a log. If the pod is None, print the lines of all selected pods.

    Return whether there are recorded lines.
    """
    place = group_and_rank(pod) if pod is not None else None
    name = meta.labels(pod).get(labels.NAME, "") if pod is not None else ""
    selections = (Selection(name, *place),) if place is not None else request.selections
    logs = [
        log
        for selection in selections
        for log in await recordedlogs.read(
            session, RankRequest(selection, request.groups, request.ranks, request.options.container)
        )
    ]
    show_recorded(logs, request, session.lws)
    return bool(logs)


def show_recorded(logs: Sequence[RecordedLog], request: LogsRequest, lws: str) -> None:
    """Print recorded lines. They are prefixed with group/rank, unless a single rank is selected."""
    for log in logs:
        if log.lines or request.is_one_rank:
            print_text(log.note(lws), err=True)
        lines = log.lines if request.options.tail is None else log.lines[len(log.lines) - request.options.tail :]
        matches = [line for line in lines if request.pattern is None or request.pattern.search(line)]
        print_text(*(line if request.is_one_rank else f"{log.place} {line}" for line in matches))


def print_run_records(target: Target, request: LogsRequest) -> bool:
    """Print the records of the requested ranks from a completed `lws run`. Return whether there are any records."""
    place = clusterdirectories.cluster_directory(target.local) if target.local else None
    if place is None or place.is_cluster or not place.has_record:
        return False
    logs = [
        log
        for selection in request.selections
        for log in recordedlogs.latest_logs(
            recordings.read_run(place, target.namespace, selection),
            RankRequest(selection, request.groups, request.ranks, request.options.container),
        )
    ]
    show_recorded(logs, request, f"lws {place.options_text}")
    return bool(logs)


def raise_errors(errors: Sequence[LogError | NotFoundError], count: int) -> None:
    """Raise the errors of `count` ranks. Omit errors about missing previous runs if there are other errors."""
    failed = [error for error in errors if NO_EARLIER_RUN not in str(error)]
    if len(errors) == count and not failed:
        raise CommandError(f"previous logs do not exist, because none of {format_count(count, 'rank')} was restarted")
    sentences = group_by_reason([(error.pod, error.reason) for error in failed if isinstance(error, NotStartedError)])
    sentences += [str(error) for error in failed if not isinstance(error, NotStartedError)]
    if len(sentences) == 1 and len(failed) == count:
        raise CommandError(sentences[0])
    for sentence in sentences:
        print_text(f"error: {sentence}", err=True)
    if failed:
        raise CommandError(f"the logs of {len(failed)} of {format_count(count, 'rank')} could not be read")


async def with_selections(session: Session, request: LogsRequest) -> LogsRequest:
    """Return the request with the LeaderWorkerSets whose pods match its labels.

    A request with names is returned unchanged.
    """
    if request.selections:
        return request
    selector = f"{labels.NAME},{request.labels}"
    listing = await session.client.list(PODS, namespace=session.namespace, label_selector=selector)
    names = sorted({meta.labels(pod)[labels.NAME] for pod in listing.items})
    if not names:
        raise CommandError(
            f"no pods of LeaderWorkerSets match labels {request.labels} in namespace {session.namespace}"
        )
    return replace(request, selections=tuple(map(Selection, names)))


async def list_pods(session: Session, request: LogsRequest) -> list[JSONObject]:
    """Return the selected pods without duplicates. With --previous, return only restarted pods if there are any."""
    pods: dict[str, JSONObject] = {}
    for selection in request.selections:
        resource, _ = await targets.find_set(session, selection.name)
        for pod in await list_set_pods(session, resource, selection):
            if request.pod_filter(selection).covers(pod):
                pods.setdefault(meta.uid(pod), pod)
    if not pods:
        names = ", ".join(map(str, request.selections))
        raise NoPodsError(
            f"no pods of {names} match the options; use `{session.lws} get {request.selections[0].name}` to list them"
        )
    if not request.options.previous or len(pods) == 1:
        return [*pods.values()]
    container = request.options.container
    restarted = [pod for pod in pods.values() if container_status(pod, container).get("restartCount")]
    return restarted or [*pods.values()]


async def list_set_pods(session: Session, resource: Resource, selection: Selection) -> list[JSONObject]:
    """Return the pods of a LeaderWorkerSet or DisaggregatedSet by LeaderWorkerSet, group and rank."""
    selector = (
        selection.label_selector() if resource == LEADERWORKERSETS else f"{SET_NAME}={selection.name},{labels.NAME}"
    )
    listing = await session.client.list(PODS, namespace=session.namespace, label_selector=selector)
    return sorted(listing.items, key=lambda pod: (meta.labels(pod).get(labels.NAME, ""), sort_key(pod)))


async def follow(target: Target, request: LogsRequest) -> None:
    """Print new lines until all selected sets are deleted, complete, or past their deadline."""
    from lwsctl.cli.watchwarnings import following
    from lwsctl.observation.conditionwatch import informers_of
    from lwsctl.observation.logfollower import LogFollower, Streams, is_running

    lost: list[JSONObject] = []

    def note_lost(pod: JSONObject, error: LogError) -> None:
        lost.append(pod)
        print_text(f"note: {error}", err=True)

    streams = Streams(request.most, lambda: print_text(FULL.format(most=request.most), err=True), note_lost)
    async with target.session() as session:
        request = await with_selections(session, request)
        sink = request.sink()
        followed, is_past = [], True
        for selection in request.selections:
            resource, obj = await targets.find_set(session, selection.name)
            pods = [*filter(request.pod_filter(selection).covers, await list_set_pods(session, resource, selection))]
            check_stream_limit(len(pods), request, selection)
            require_container(pods, request.options.container)
            print_selected_container(pods, request.options.container)
            is_past &= is_over(obj) and not any(
                is_running(container_status(pod, request.options.container)) for pod in pods
            )
            followed.append(
                (selection, informers_of(session.client, resource, ObjectKey(session.namespace, selection.name)))
            )
        if is_past:
            await print_existing_logs(session, replace(request, options=replace(request.options, follow=False)))
            return
        everything = [part for _, informers in followed for part in informers.all]
        async with following(*everything, session.keepalive) as objects, asyncio.TaskGroup() as tasks:
            for selection, informers in followed:
                follower = LogFollower(
                    session.client, request.pod_filter(selection).covers, request.options, sink, streams
                )
                tasks.create_task(follower.run(objects, informers, is_over))
                tasks.create_task(report_waiting(objects, informers, selection, request))
        unread = [pod for pod in lost if not await print_recorded(session, request, pod)]
        if unread:
            raise CommandError(f"the logs of {format_count(len(unread), 'rank')} could not be read")


async def report_waiting(
    objects: "ConditionWatch", informers: "OneSet", selection: Selection, request: LogsRequest
) -> None:
    """Report the ranks that have no log and the reasons, until the set is complete or deleted.

    Logs are shown after ranks start.
    """
    notes = WaitingNotes(str(selection), request.options.container)

    def look() -> bool | None:
        notes.update([*filter(request.pod_filter(selection).covers, informers.pods.store.list())])
        return True if is_over(informers.object) else None

    await objects.wait_for(look)


def require_container(pods: Sequence[JSONObject], container: str | None) -> None:
    """Raise an error if no pod has the container."""
    names = dict.fromkeys(name for pod in pods for name in containers(pod))
    if container and names and container not in names:
        raise CommandError(
            f"container {container} does not exist in pod {meta.name(pods[0])} (existing: {', '.join(names)})"
        )


def check_stream_limit(count: int, request: LogsRequest, selection: Selection) -> None:
    """Raise an error if the number of logs to follow exceeds the maximum number of streams."""
    if count > request.most:
        raise UsageError(
            f"{selection} has {format_count(count, 'rank')}, but at most {request.most} logs can be followed; use --group, --rank or --max-streams {count}"
        )
