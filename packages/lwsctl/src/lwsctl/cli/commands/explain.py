"""`lws explain`: explains why a LeaderWorkerSet, group or rank is not in its desired state, and how to fix it."""

from collections.abc import Sequence
from typing import Final

import click

from kuberuntime.client.requests import Selection as Query
from kuberuntime.clock import SystemClock
from kuberuntime.errors import APIError
from kuberuntime.objects import meta, selectors
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, SERVICES
from leaderworkerset.api import labels
from leaderworkerset.api.episode import Episode
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.serviceselection import UNRESOLVED, is_service_settled, service_selects
from lwsctl.cli import sharedoptions, targets
from lwsctl.cli.cluster import recordings
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.sets.diagnoses import explain, survey
from lwsctl.cli.shell import completion
from lwsctl.cli.views import episodetable, output
from lwsctl.cli.views.terminal import print_states, print_text
from lwsctl.diagnosis.diagnose import worst
from lwsctl.diagnosis.document import document, headline, lines, overview_lines
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import AS_DESIRED, Verdict
from lwsctl.observation.evidence import ReadEpisodes
from lwsctl.views.selection import Selection

MOST_SERVICES: Final = 20
"""The maximum number of Services whose pods are read."""

EXIT_CODES: Final = {
    Verdict.HEALTHY: 0,
    Verdict.COMPLETE: 0,
    Verdict.PROGRESSING: 3,
    Verdict.STARTING: 3,
    Verdict.STUCK: 4,
    Verdict.CRASHING: 4,
    Verdict.UNKNOWN: 5,
    Verdict.UNREAD: 5,
}
"""The exit code for each verdict. As in every command, the codes 1 and 2 are errors."""


@click.command("explain")
@click.argument("name", metavar="[LWS[/GROUP[/RANK]]|SET]", required=False, shell_complete=completion.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Explain objects across all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector to filter objects.")
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Output format. Defaults to text.")
@sharedoptions.node_patience_option
@click.pass_obj
def command(target: Target, name: str | None, *, everywhere: bool, selector: str, form: str | None) -> int:
    """Explain why a LeaderWorkerSet, a DisaggregatedSet, a group or a rank is not ready.

    The output contains the root cause, its evidence, and the next step. If a DisaggregatedSet has no problem of its own,
    the cause of its least healthy LeaderWorkerSet is shown. If you do not specify a name, all objects in the namespace are
    explained in order of urgency. Healthy objects are summarized in one line.

    Exit codes: 0 healthy or complete, 3 progressing or starting, 4 stuck or crashing (action is required), 5 not ready for
    an unknown reason. If several objects are explained, the least healthy object determines the exit code. For a
    description of the cause codes, see docs/reference/causes.md.
    """
    if name and (everywhere or selector):
        raise UsageError("a name cannot be combined with --all-namespaces or --selector")
    selection = targets.parse(name) if name else None

    async def run_command(session: Session) -> tuple[list[Diagnosis], list[str]]:
        namespace = "" if everywhere else session.namespace
        print_text(*await service_notes(session, namespace, selection.name if selection else ""), err=True)
        if selection is None:
            diagnoses = await survey(session, namespace, selector)
            if not diagnoses:
                print_text(await targets.nothing_found(session, namespace, selector), err=True)
            return diagnoses, []
        read = recordings.read_once(recordings.episode_reader(session))
        diagnoses = await explain(session, selection, read)
        episodes = [] if form else await relevant_episodes(selection, worst(diagnoses), read)
        is_quoted = any(diagnosis.is_of_record for diagnosis in diagnoses)
        return diagnoses, failure_lines(session, episodes, is_quoted=is_quoted) if episodes else []

    diagnoses, last_failure = target.run(run_command)
    if form is None:
        print_states(
            *(render(diagnoses) if selection else overview_lines(diagnoses, with_namespace=everywhere)), *last_failure
        )
    else:
        value = document(diagnoses)
        click.echo(output.as_json(value) if form == "json" else output.as_yaml(value))
    if not diagnoses:
        return 0
    return EXIT_CODES[worst(diagnoses).verdict]


async def relevant_episodes(selection: Selection, diagnosis: Diagnosis, read: ReadEpisodes) -> Sequence[Episode]:
    """Return the recorded failures of unhealthy objects, except if a failed container shows the last failure.

    The result is empty if the cluster does not record failures.
    """
    if diagnosis.verdict in AS_DESIRED or not (diagnosis.log is None or diagnosis.is_of_record):
        return []
    try:
        episodes = await read(ObjectKey(diagnosis.namespace, selection.name))
    except APIError:  # the result does not depend on it
        return []
    return [episode for episode in episodes if selection.group is None or episode.group == str(selection.group)]


def failure_lines(session: Session, episodes: Sequence[Episode], *, is_quoted: bool) -> list[str]:
    """Return lines about the last recorded failure.

    If its log is already quoted, return only the command that shows it.
    """
    lines = episodetable.brief_lines(episodes[-1], SystemClock().now(), session.lws)
    return lines[-1:] if is_quoted else ["", *lines]


async def service_notes(session: Session, namespace: str, name: str) -> list[str]:
    """Return a note for each Service that selects no pods of its set, or does not publish pod names.

    A set that is scaled to zero has no pods to select. If a name is specified, only Services for this set are checked.
    The result is empty if the user may not read Services, pods or LeaderWorkerSets.
    """
    notes = []
    try:
        services = (await session.client.list(SERVICES, namespace=namespace)).items
        sets = (await session.client.list(LEADERWORKERSETS, namespace=namespace)).items if services else []
        empty = [lws for lws in sets if meta.spec(lws).get("replicas") == 0]
        own = [lws for lws in sets if not name or meta.name(lws) == name]
        others = [
            service
            for service in services
            if not meta.controller_of(service) and any(is_intended_for(service, lws) for lws in own)
        ]
        for service in others[:MOST_SERVICES]:
            if not is_service_settled(service) and any(meta.key(service) == meta.key(lws) for lws in own):
                notes.append(f"note: {UNRESOLVED.format(name=meta.key(service))}")
            if any(
                meta.namespace(lws) == meta.namespace(service) and service_selects(meta.spec(service)["selector"], lws)
                for lws in empty
            ):
                continue
            selector = selectors.format_labels(meta.spec(service)["selector"])
            if not (await session.client.list_page(Query(PODS, meta.namespace(service), selector), limit=1)).items:
                notes.append(
                    f"note: Service {meta.key(service)}: spec.selector {selector} does not match any pod, so the Service has no endpoints"
                )
    except APIError:
        return []
    return notes


def is_intended_for(service: JSONObject, lws: JSONObject) -> bool:
    """Return whether a Service is intended for the pods of a LeaderWorkerSet.

    Its selector then shares a label with the pods.
    """
    selector: dict[str, str] = meta.spec(service).get("selector") or {}
    template = meta.spec(lws).get("leaderWorkerTemplate") or {}
    pods = [template.get(name) or {} for name in ("leaderTemplate", "workerTemplate")]
    own = {(labels.NAME, meta.name(lws)), *(pair for pod in pods for pair in meta.labels(pod).items())}
    return meta.namespace(service) == meta.namespace(lws) and bool(own & set(selector.items()))


def render(diagnoses: list[Diagnosis]) -> list[str]:
    """Return the output, with the worst diagnosis in full and one line for each other diagnosis."""
    first = worst(diagnoses)
    others = [f"  {headline(diagnosis)}" for diagnosis in diagnoses if diagnosis is not first]
    return [*lines(first), *(["", "Others:", *others] if others else [])]
