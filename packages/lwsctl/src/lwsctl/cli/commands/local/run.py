"""`lws run`: starts a temporary cluster, applies manifests, shows groups and logs, and stops the cluster."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime import lightaiohttp, timeouts
from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.cli import sharedoptions
from lwsctl.cli.applying.applier import Applier, create_namespaces
from lwsctl.cli.applying.skippedkinds import without_unserved
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import INTERRUPTED, CommandError, TimedOutError, UsageError
from lwsctl.cli.local import savedoptions
from lwsctl.cli.local.clusteroptions import AUTO, ClusterOptions, cluster_options, collect, require_localkube
from lwsctl.cli.reading import manifestoptions
from lwsctl.cli.reading.manifestoptions import manifest_arguments
from lwsctl.cli.reading.manifests import Document, sort_documents
from lwsctl.cli.rehearsal.imagewarnings import notes
from lwsctl.cli.sets.causes import CauseMonitor, stuck_options
from lwsctl.cli.views.live import REFRESH, Display, display
from lwsctl.cli.views.progress import ProgressLine
from lwsctl.cli.views.terminal import print_text
from lwsctl.cli.watchwarnings import following
from lwsctl.model.disaggregatedset import Shown, leaderworkersets
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.conditionwatch import ConditionWatch, OneSet, informers_of
from lwsctl.observation.logfollower import LogFollower
from lwsctl.observation.podlogs import PodLogOptions
from lwsctl.views import unmetconditions
from lwsctl.views.grouprows import FEW_SETS
from lwsctl.views.outcome import Failures, count_of_ended
from lwsctl.views.selection import Selection

if TYPE_CHECKING:
    from lwsctl.cli.local.autonodes import AssumedCluster  # it imports localkube, which may not be installed

FOLLOWED: Final = {resource.kind: resource for resource in (LEADERWORKERSETS, DISAGGREGATED_SETS)}
"""The kinds that a run watches."""

LAST_WORDS: Final = 3.0
"""The maximum time in seconds after Ctrl-C until ranks exit and sets are deleted.

The cluster stops about a second later.
"""

LAST_LINES: Final = 2.0
"""The maximum time in seconds to wait for the logs of exited ranks before the cluster is stopped."""


class RunOptions(Struct, frozen=True, kw_only=True):
    """The conditions that stop a run."""

    until: str | None
    timeout: float | None
    max_failures: int
    ready_for: float
    stuck_after: float | None
    skip_unserved: bool


@click.command("run")
@manifest_arguments
@click.option(
    "--until",
    type=click.Choice(["ready", "done"]),
    help=(
        "Condition on which the command exits. With ready, all groups must be ready. With done, all ranks must have exited with code 0, and completed ranks "
        "are not restarted. By default, the command runs until you press Ctrl-C."
    ),
)
@click.option(
    "--timeout",
    type=sharedoptions.limit,
    metavar="DURATION",
    help="Maximum time to wait for the condition in --until. Unlimited by default.",
)
@click.option("--max-failures", type=click.IntRange(min=0), default=3, show_default=True, metavar="N",
              help="With --until done, the maximum number of failures of a rank.")  # fmt: skip
@sharedoptions.ready_for_option("--until ready")
@stuck_options
@manifestoptions.skip_unserved(default=True)
@cluster_options
@click.pass_obj
def command(target: Target, /, **options: Any) -> int:
    """Run manifests on this machine in a temporary cluster, which is removed when the command exits.

    If a LeaderWorkerSet or DisaggregatedSet is stuck, the command prints the cause, as `lws explain` does. If the command
    fails, the error message refers to this cause. `lws run FILE` is equivalent to `lws run -f FILE`.
    """
    if target.local or target.kubeconfig or target.context_name:
        to = f" {clusterdirectories.cluster_directory(target.local).options_text}" if target.local else ""
        raise UsageError(
            f"lws run starts a temporary cluster; to use a running cluster, use `lws apply{to}`, `lws wait{to}` and `lws logs{to}`"
        )
    require_localkube("run")
    sources = manifestoptions.collect(options)
    cluster = with_gpus(collect(options), click.get_current_context().get_parameter_source("gpus_per_node"))
    run_options = RunOptions(**options | {"stuck_after": 0.0 if options.pop("fail_fast") else options["stuck_after"]})
    if run_options.timeout is not None and run_options.until is None:
        raise UsageError("--timeout requires --until ready or --until done")
    documents = sort_documents(sources.load())
    followed = [document for document in documents if document.object["kind"] in FOLLOWED]
    if not followed:
        raise CommandError(f"{sources} must contain a LeaderWorkerSet or a DisaggregatedSet")
    for document in followed:
        if not document.object["metadata"].get("name"):
            raise CommandError(
                f"{document.location}: metadata.name: Required value: lws run does not support generateName"
            )
        if run_options.until == "done" and document.object["kind"] == DISAGGREGATED_SETS.kind:
            raise UsageError(f"{document.location}: a DisaggregatedSet does not complete; use --until ready")
    return start(Run(cluster, run_options, target.namespace or "default"), documents)


def with_gpus(cluster: ClusterOptions, source: ParameterSource | None) -> ClusterOptions:
    """Also determine the GPUs for `--nodes auto` from the manifest, unless their number is specified."""
    typed = source is ParameterSource.COMMANDLINE
    return replace(cluster, gpus_per_node=AUTO) if cluster.nodes == AUTO and not typed else cluster


def start(plan: "Run", documents: Sequence[Document]) -> int:
    """Run in a new directory, with nodes and objects that are derived from the manifests."""
    lightaiohttp.load()
    from lwsctl.cli.local.autonodes import derive_cluster

    assumed = derive_cluster(documents, plan.cluster)
    images = notes((document.object for document in documents), dict(plan.cluster.images), is_typed=True)
    print_text(*assumed.lines, *(() if plan.cluster.stub else images), err=True)
    place = clusterdirectories.create_ephemeral()
    try:
        with place.hold_lock():
            return asyncio.run(run(plan, place, assumed))
    except Exception:
        if place.has_record:
            print_text(
                f"use `lws {place.options_text} history` to show the recorded failures and log lines",
                err=True,
            )
        raise
    finally:
        place.remove_except_record()


class Run(Struct, frozen=True):
    """The resources of one run."""

    cluster: ClusterOptions
    options: RunOptions
    namespace: str


async def run(plan: Run, place: ClusterDirectory, assumed: "AssumedCluster") -> int:
    """Start the cluster, apply the manifests, and watch the groups until the run is complete."""
    from kuberuntime.serving.signals import stop_event
    from lwsctl.cli.local.localcluster import local_cluster

    progress = ProgressLine()
    hold, documents = plan.options.until == "done", sort_documents(assumed.documents)
    async with (
        stop_event(place.remove) as stopped,
        local_cluster(
            place, plan.cluster, progress.show, nodes=assumed.nodes, keep=False, hold_completed=hold
        ) as cluster,
    ):
        progress.clear()
        print_text(*cluster.notes, err=True)
        if plan.options.skip_unserved:
            documents, skipped = await without_unserved(cluster.client, documents)
            print_text(*(f"assumed: {line}" for line in skipped), err=True)
        session = Session(
            cluster.client,
            plan.namespace,
            cluster.channels,
            lws=f"lws {place.options_text}",
            kubectl="",
            until_done=hold,
            images=tuple(name for name, _ in plan.cluster.images),
            history=place.history,
        )
        savedoptions.save(place, plan.cluster)
        if hold:
            place.until_done.touch()
        created = await create_namespaces(session, documents)
        print_text(*created, err=True)
        applier = Applier(session, previous_lines=[line.partition(" (")[0] for line in created])
        await applier.check(documents)
        print_text(*await applier.apply(documents), err=True)
        return await follow(session, documents, plan.options, stopped)


async def follow(session: Session, documents: Sequence[Document], options: RunOptions, stopped: asyncio.Event) -> int:
    """Show groups and logs until the run is complete. Return the exit code."""
    keys = watched_keys(documents, session.namespace)
    sets = [informers_of(session.client, *key) for key in keys]
    screen = display([followed.key.name for followed in sets])
    causes = {
        followed.key: CauseMonitor(
            replace(session, namespace=followed.key.namespace),
            followed.key.name,
            screen.note,
            stuck_after=options.stuck_after,
        )
        for followed in sets[:FEW_SETS]
    }
    if not options.until:
        screen.note(
            f"running until Ctrl-C is pressed or {', '.join(followed.key.name for followed in sets[:FEW_SETS])} {'is' if len(sets) == 1 else 'are'} deleted "
            "(use --until to exit earlier)"
        )
    try:
        async with following(
            *(informer for followed in sets for informer in followed.all), *causes.values()
        ) as objects:
            end = await wait_for_end(objects, RunInputs(session.client, keys, sets, screen), options, stopped)
    finally:
        screen.close()
    if end is RunResult.FINISHED:
        print_text(result_line(existing_views(sets), options), err=True)
        return 0
    if end is RunResult.STOPPED:
        return INTERRUPTED if options.until else 0
    if isinstance(end, str):
        raise CommandError(end)
    views = existing_views(sets)
    proof = timedelta(seconds=options.ready_for)
    lacks = "; ".join(f"{view.name}: {unmet_condition(view, proof, is_done=session.until_done)}" for view in views)
    late = (causes.get(view.key) for view in views if not _is_at_end(view, proof, is_done=session.until_done))
    first = next(filter(None, late), None)
    why = await first.last_cause() if first else ""
    raise TimedOutError(
        f"not all LeaderWorkerSets were {options.until} after {options.timeout:g} s: {lacks}" + (why and f"\n{why}")
    )


def _is_at_end(view: Shown, proof: timedelta, *, is_done: bool) -> bool:
    return view.is_finished if is_done and isinstance(view, View) else view.is_ready and not _unproven(view, proof)


def unmet_condition(view: Shown, proof: timedelta, *, is_done: bool) -> str:
    """Return the reason why a set has not met the exit condition, or has not been ready for the required time."""
    if is_done and isinstance(view, View):
        return count_of_ended(view)
    unproven = _unproven(view, proof) if view.is_ready else None
    return "; ".join(filter(None, [unmetconditions.ready_groups(view), unproven]))


def _unproven(view: Shown, proof: timedelta) -> str | None:
    return unmetconditions.missing_for_lasting(view, SystemClock().now(), proof)


class RunResult(Enum):
    """The result of a successful run."""

    FINISHED = auto()
    STOPPED = auto()
    TIMED_OUT = auto()


class RunInputs(Struct, frozen=True):
    """The objects that a run watches, and the display."""

    client: Client
    keys: Sequence[tuple[Resource, ObjectKey]]
    sets: Sequence[OneSet]
    screen: Display


async def wait_for_end(
    objects: ConditionWatch, parts: RunInputs, options: RunOptions, stopped: asyncio.Event
) -> RunResult | str:
    """Watch groups and logs until the exit condition, a failure, a stop request, or the timeout."""
    followers = [
        LogFollower(parts.client, Selection(followed.key.name).covers, PodLogOptions(), parts.screen.line)
        for followed in parts.sets
    ]
    tasks = [
        asyncio.create_task(follower.run(objects, followed))
        for follower, followed in zip(followers, parts.sets, strict=True)
    ]
    watching = asyncio.create_task(watch(objects, parts, options))
    stop = asyncio.create_task(stopped.wait())
    failing = asyncio.create_task(raise_first_error(tasks))
    try:
        await asyncio.wait({watching, stop, failing}, timeout=options.timeout, return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            failing.result()
        if watching.done():
            await asyncio.gather(*(follower.wait_until_drained(LAST_LINES) for follower in followers))
            return watching.result()
        if not stopped.is_set():
            return RunResult.TIMED_OUT
        await print_last_output(objects, parts)
        return RunResult.STOPPED
    finally:
        for task in (*tasks, watching, stop, failing):
            task.cancel()
        await asyncio.gather(*tasks, watching, stop, failing, return_exceptions=True)


async def print_last_output(objects: ConditionWatch, parts: RunInputs) -> None:
    """Delete the sets. Follow the logs until the pods are deleted, to show the last output of the ranks."""
    parts.screen.note(f"stopping: ranks have {LAST_WORDS:g} s to exit; press Ctrl-C again to kill them now")

    async def delete(resource: Resource, key: ObjectKey) -> None:
        with suppress(KubeError):
            await parts.client.delete(resource, key)

    def are_gone() -> bool | None:
        return None if any(followed.pods.store.list() for followed in parts.sets) else True

    with suppress(TimeoutError):
        async with timeouts.within(LAST_WORDS):  # remaining ranks are stopped with the cluster
            await asyncio.gather(*(delete(*key) for key in parts.keys))
            pods = [meta.key(pod) for followed in parts.sets for pod in followed.pods.store.list()]
            await asyncio.gather(*(delete(PODS, key) for key in pods))  # otherwise, workers outlive their leaders
            await objects.wait_for(are_gone, every=REFRESH)


async def raise_first_error(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Raise the error of the first failed task, for example if stdout is closed. This function never returns."""
    await asyncio.gather(*tasks)
    await asyncio.Event().wait()


async def watch(objects: ConditionWatch, parts: RunInputs, options: RunOptions) -> RunResult | str:
    """Show all changes. Return when the run is complete or cannot complete, and return the reason if it cannot."""
    failures = Failures(options.max_failures)
    lack = unmetconditions.condition_check("ready", SystemClock().now, timedelta(seconds=options.ready_for))

    def look() -> RunResult | str | None:
        views = existing_views(parts.sets)
        parts.screen.update(leaderworkersets(views))
        if len(views) < len(parts.sets):
            return (
                "a LeaderWorkerSet of this run was deleted" if options.until else None if views else RunResult.FINISHED
            )
        if options.until == "ready" and not any(map(lack, views)):
            return RunResult.FINISHED
        if options.until == "done":
            return failures.verdict(leaderworkersets(views)) or (
                RunResult.FINISHED if all(view.is_finished for view in leaderworkersets(views)) else None
            )
        return None

    return await objects.wait_for(look, every=REFRESH)


def result_line(views: Sequence[Shown], options: RunOptions) -> str:
    """Return the line that reports the result."""
    groups = [group for view in leaderworkersets(views) for group in view.groups]
    ranks = sum(len(group.ranks) for group in groups)
    what = {"ready": "are ready", "done": "exited with code 0"}.get(options.until or "", "were deleted")
    if not groups:
        return f"all LeaderWorkerSets {what}"
    text = f"{ranks} rank{'s' * (ranks != 1)} in {len(groups)} group{'s' * (len(groups) != 1)}"
    return f"{text} {what if ranks != 1 else what.replace('are', 'is')}"


def watched_keys(documents: Sequence[Document], namespace: str) -> list[tuple[Resource, ObjectKey]]:
    """Return the LeaderWorkerSets and DisaggregatedSets in the documents, with their namespaces."""
    pairs = [
        (FOLLOWED[document.object["kind"]], document.object["metadata"])
        for document in documents
        if document.object["kind"] in FOLLOWED
    ]
    return [(kind, ObjectKey(metadata.get("namespace") or namespace, metadata["name"])) for kind, metadata in pairs]


def existing_views(sets: Sequence[OneSet]) -> list[Shown]:
    """Return the views of existing sets."""
    return [view for followed in sets if (view := followed.view()) is not None]
