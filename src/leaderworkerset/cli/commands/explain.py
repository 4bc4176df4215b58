"""`lws explain`: why a LeaderWorkerSet, a group or a rank is not in its desired state, and what to do next."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Final

import click

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection as Query
from kuberuntime.errors import APIError, KubeError
from kuberuntime.objects import meta, selectors
from kuberuntime.objects.resources import PODS, SERVICES
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli import errors, targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.process import collection
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import output
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.diagnosis.diagnose import of_whole, worst
from leaderworkerset.diagnosis.document import document, headline, lines
from leaderworkerset.diagnosis.finding import Diagnosis, Verdict
from leaderworkerset.diagnosis.observed import Commands
from leaderworkerset.diagnosis.overview import BLOCKS, ordered, overview
from leaderworkerset.observation import diagnosing, settling, surveying
from leaderworkerset.observation.podlogs import last_lines
from leaderworkerset.views.disaggregation import SetView, set_view
from leaderworkerset.views.groups import View, view
from leaderworkerset.views.selection import Selection

REASON_SECONDS: Final = 5.0
"""The maximum seconds that a failed command looks for the cause before it ends."""

MOST_SERVICES: Final = 20
"""The maximum of Services whose pods are asked for."""

EXIT_CODES: Final = {Verdict.HEALTHY: 0, Verdict.PROGRESSING: 3, Verdict.STUCK: 4, Verdict.UNKNOWN: 5}
"""The exit codes by verdict, for scripts; 1 and 2 are errors, as in every command."""


@click.command("explain")
@click.argument("name", metavar="[LWS[/GROUP[/RANK]]|SET]", required=False, shell_complete=completing.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only objects with these labels.")
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="A document for programs.")
@click.pass_obj
def command(target: Target, name: str | None, *, everywhere: bool, selector: str, form: str | None) -> int:
    """Say why a LeaderWorkerSet, a group or a rank is not ready: one root cause, its evidence, the next step.

    For a DisaggregatedSet, its own cause is explained, or that of its worst LeaderWorkerSet. Without a name, everything
    of the namespace is: the most urgent first, the healthy ones in one line. Ends with 0 healthy, 3 progressing by
    itself, 4 stuck until a user acts, 5 not ready and no known cause; of several, as the worst. Causes have codes:
    docs/reference/causes.md.
    """
    if name and (everywhere or selector):
        raise UsageError("a name cannot be combined with --all-namespaces or --selector")
    chosen = targets.parse(name) if name else None

    async def act() -> list[Diagnosis]:
        async with target.session() as session:
            namespace = "" if everywhere else session.namespace
            for line in await idle_services(session, namespace):
                say(line, err=True)
            if chosen is None:
                found = await survey(session, namespace, selector)
                if not found:
                    say(await targets.nothing_found(session, namespace, selector), err=True)
                return found
            return await explain(session, chosen)

    found = asyncio.run(act())
    if form is None:
        for line in render(found) if chosen else overview(found, with_namespace=everywhere):
            say(line)
    else:
        value = document(found)
        click.echo(output.as_json(value) if form == "json" else output.as_yaml(value))
    if not found:
        return 0
    return EXIT_CODES[worst(found).verdict]


async def idle_services(session: Session, namespace: str) -> list[str]:
    """Return a note on each Service whose selector matches no pod, none if Services or pods may not be read."""
    found = []
    try:
        listed = (await session.client.list(SERVICES, namespace=namespace)).items
        others = [one for one in listed if meta.spec(one).get("selector") and not meta.controller_of(one)]
        for one in others[:MOST_SERVICES]:
            wanted = selectors.format_labels(meta.spec(one)["selector"])
            if not (await session.client.list_page(Query(PODS, meta.namespace(one), wanted), limit=1)).items:
                found.append(
                    f"note: Service {meta.key(one)}: spec.selector {wanted} matches no pod, so nothing answers behind it"
                )
    except APIError:
        return []
    return found


async def survey(session: Session, namespace: str, selector: str = "") -> list[Diagnosis]:
    """Return the diagnoses of all LeaderWorkerSets of a namespace (empty: of all), the most urgent first."""
    found = await targets.all_of(session, namespace, selector)
    with collection.put_off():
        views = await targets.views_of(session, found.leaderworkersets)
        told = await surveying.survey(session.client, views, namespace, commands_of(session))
    shown = ordered(await with_sets(session, namespace, found.sets, list(zip(views, told, strict=True))))
    async with asyncio.TaskGroup() as tasks:
        first = [tasks.create_task(quoted(session.client, one)) for one in shown[:BLOCKS]]
    return [*(task.result() for task in first), *shown[BLOCKS:]]


async def with_sets(
    session: Session, namespace: str, sets: Sequence[meta.JSONObject], told: Sequence[tuple[View, Diagnosis]]
) -> list[Diagnosis]:
    """Return the diagnoses of LeaderWorkerSets and, before those of a DisaggregatedSet, that of the set itself."""
    owners = {meta.uid(one): meta.name(one) for one in sets}
    plain: list[Diagnosis] = []
    views: dict[str, list[View]] = {uid: [] for uid in owners}
    parts: dict[str, list[Diagnosis]] = {uid: [] for uid in owners}
    for shown, one in told:
        uid = meta.UID((meta.controller_of(shown.object) or {}).get("uid", ""))
        if uid in owners:
            views[uid].append(shown)
            parts[uid].append(replace(one, owner=owners[uid]))
        else:
            plain.append(one)
    arranged = [set_view(one, views[meta.uid(one)]) for one in sets]
    wholes = await settling.explain(session.client, arranged, namespace, commands_of(session))
    by_set = [of_whole(whole, parts[meta.uid(obj)]) for obj, whole in zip(sets, wholes, strict=True)]
    return [*plain, *(one for group in by_set for one in group)]


async def explain(session: Session, chosen: Selection) -> list[Diagnosis]:
    """Return the diagnosis of the selection; for a DisaggregatedSet its own, and those of its LeaderWorkerSets."""
    resource, obj = await targets.find_either(session, chosen.name)
    if resource == LEADERWORKERSETS:
        if chosen.group is not None:
            targets.refuse_missing(await targets.view_of(session, obj), chosen)
        return [await _explain(session, obj, chosen)]
    parts = await targets.list_parts(session, session.namespace, chosen.name)
    names = ", ".join(map(meta.name, parts)) or "none yet"
    if chosen.group is not None:
        raise UsageError(f"{chosen.name} is a DisaggregatedSet: name one of its LeaderWorkerSets ({names})")
    found = [await _explain(session, part, Selection(meta.name(part))) for part in parts]
    return of_whole(await explain_set(session, obj, parts), [replace(one, owner=chosen.name) for one in found])


async def explain_set(session: Session, obj: meta.JSONObject, parts: Sequence[meta.JSONObject]) -> Diagnosis:
    """Return the diagnosis of a DisaggregatedSet itself."""
    shown = set_view(obj, [view(part, ()) for part in parts])
    (told,) = await settling.explain(session.client, [shown], meta.namespace(obj), commands_of(session))
    return told


async def _explain(session: Session, lws: meta.JSONObject, chosen: Selection) -> Diagnosis:
    told = await diagnosing.explain(session.client, lws, chosen, commands_of(session))
    return await quoted(session.client, told)


def commands_of(session: Session) -> Commands:
    """Return the words by which next steps call kubectl and lws, so that they address the same cluster."""
    return Commands(kubectl=session.kubectl, lws=session.lws)


def more(session: Session, name: str) -> str:
    """Return the line that names the command with more information."""
    return f"`{session.lws} -n {session.namespace} explain {name}` says more"


async def note(session: Session, namespace: str, name: str) -> str:
    """Return code and title of the cause that a set is stuck for, to print below other output; empty otherwise."""
    return _noted(session, namespace, name, await in_time(replace(session, namespace=namespace), name))


async def note_of_set(session: Session, chosen: SetView) -> str:
    """Return the cause that a DisaggregatedSet itself is stuck for, like `note`; its LeaderWorkerSets are omitted."""
    own = settling.explain(session.client, [chosen], chosen.namespace, commands_of(session))
    found = await _in_time(own)
    return _noted(session, chosen.namespace, chosen.name, found[0] if found else None)


def _noted(session: Session, namespace: str, name: str, told: Diagnosis | None) -> str:
    if told is None or told.verdict is not Verdict.STUCK:
        return ""
    command = f"{session.lws} -n {namespace} explain {name}"
    return f"{name} is stuck: {told.code} ({told.title}); `{command}` says more"


async def in_time(session: Session, name: str) -> Diagnosis | None:
    """Return the worst diagnosis for this name; None if there is none in time."""
    found = await _in_time(explain(session, Selection(name)))
    return worst(found) if found else None


async def _in_time(diagnoses: Coroutine[None, None, list[Diagnosis]]) -> list[Diagnosis] | None:
    try:
        async with timeouts.within(REASON_SECONDS):
            return await diagnoses
    except (TimeoutError, KubeError, CommandError, ExceptionGroup) as error:  # a group: lists are read concurrently
        if all(isinstance(leaf, TimeoutError | KubeError | CommandError) for leaf in errors.leaves(error)):
            return None
        raise


async def quoted(client: Client, told: Diagnosis) -> Diagnosis:
    """Return a diagnosis with the last lines of its container, if they explain more."""
    if told.log is None:
        return told
    text = await last_lines(client, told.log)
    return replace(told, evidence=(*told.evidence, *text.splitlines()))


def render(found: list[Diagnosis]) -> list[str]:
    """Return the text: the worst diagnosis in full, and a line for each other one."""
    chosen = worst(found)
    others = [f"  {headline(one)}" for one in found if one is not chosen]
    return [*lines(chosen), *(["", "Others:", *others] if others else [])]
