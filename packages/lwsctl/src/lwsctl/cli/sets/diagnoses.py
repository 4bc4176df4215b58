"""Diagnoses one set or all sets of a namespace for commands. Summarizes causes below other output."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Final

from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.errors import KubeError, flatten
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli import targets
from lwsctl.cli.cluster import recordings
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError
from lwsctl.cli.process import garbagecollection
from lwsctl.diagnosis.diagnose import diagnose_disaggregatedset, worst
from lwsctl.diagnosis.document import BLOCKS, sort_by_urgency
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.cluster import Cluster, build_cluster
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.health import NEEDS_USER, WORDS
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import diagnosisinput, setdiagnoses
from lwsctl.observation.evidence import ReadEpisodes, with_evidence
from lwsctl.observation.lists import Lists
from lwsctl.views.selection import Selection

REASON_SECONDS: Final = 5.0
"""The maximum time in seconds in which a failed command diagnoses the cause."""


async def survey(session: Session, namespace: str, selector: str = "") -> list[Diagnosis]:
    """Return the diagnoses of all LeaderWorkerSets in one or all namespaces, the most urgent first."""
    objects = await targets.list_objects(session, namespace, selector)
    with garbagecollection.disable_collection():
        views = await targets.read_views(session, objects.leaderworkersets)
        cluster = await diagnose_sets(session, build_cluster(views, objects.sets, namespace))
    read = recordings.episode_reader(session)
    ranking = sort_by_urgency(diagnosis for root in cluster.roots for diagnosis in _root_diagnoses(root))
    async with asyncio.TaskGroup() as tasks:
        first = [tasks.create_task(with_evidence(session.client, diagnosis, read)) for diagnosis in ranking[:BLOCKS]]
    return [*(task.result() for task in first), *ranking[BLOCKS:]]


async def diagnose_sets(session: Session, cluster: Cluster) -> Cluster:
    """Return a cluster in which sets have their diagnoses. A DisaggregatedSet has only its own diagnosis."""
    lists, commands = Lists(session.client), next_step_commands(session)
    diagnoses = await setdiagnoses.survey(lists, cluster.views, cluster.namespace, commands)
    views = [replace(view, diagnosis=diagnosis) for view, diagnosis in zip(cluster.views, diagnoses, strict=True)]
    cluster = cluster.with_views(views)
    set_diagnoses = await setdiagnoses.diagnose_sets(lists, cluster.sets, cluster.namespace, commands)
    sets = [replace(set_view, diagnosis=own) for set_view, own in zip(cluster.sets, set_diagnoses, strict=True)]
    return replace(cluster, sets=sets)


def _root_diagnoses(root: Shown) -> list[Diagnosis]:
    """Return the diagnoses of a set. For a DisaggregatedSet, the diagnoses of its LeaderWorkerSets follow."""
    if isinstance(root, View):
        return [root.diagnosis]
    parts = sorted(root.parts, key=lambda part: part.name)
    return diagnose_disaggregatedset(root.diagnosis, [replace(part.diagnosis, owner=root.name) for part in parts])


async def explain(session: Session, selection: Selection, read: ReadEpisodes | None = None) -> list[Diagnosis]:
    """Return the diagnosis of the selected object.

    For a DisaggregatedSet, include the diagnoses of its LeaderWorkerSets.
    """
    resource, obj = await targets.find_set(session, selection.name)
    read = read or recordings.episode_reader(session)
    if resource == LEADERWORKERSETS:
        set_view = await targets.read_view(session, obj)
        targets.require_existing(set_view, selection)
        lists, commands = Lists(session.client), next_step_commands(session)
        diagnosis = await diagnosisinput.diagnose_one(lists, set_view, selection, commands)
        return [await with_evidence(session.client, diagnosis, read)]
    views = await targets.read_views(session, await targets.list_set_parts(session, selection))
    cluster = await diagnose_sets(session, build_cluster(views, [obj], session.namespace))
    parts = [
        replace(await with_evidence(session.client, view.diagnosis, read), owner=selection.name)
        for view in cluster.views
    ]
    return diagnose_disaggregatedset(cluster.sets[0].diagnosis, parts)


def next_step_commands(session: Session) -> Commands:
    """Return the kubectl and lws commands for next steps, with options that select the same cluster."""
    return Commands(
        kubectl=session.kubectl,
        lws=session.lws,
        until_done=session.until_done,
        images=session.images,
        node_patience=session.node_patience,
    )


def details_hint(session: Session, name: str, namespace: str = "") -> str:
    """Return the line with the command that shows details. The default namespace is the namespace of the session."""
    return f"use `{session.lws} -n {namespace or session.namespace} explain {name}` for details"


async def stuck_notes(
    session: Session, lists: Lists, namespace: str, sets: Sequence[SetView], views: Sequence[View]
) -> list[str]:
    """Return a line with the cause code for each stuck DisaggregatedSet or LeaderWorkerSet.

    Lists that `lists` has already read are not reread.
    """
    commands = next_step_commands(session)
    async with asyncio.TaskGroup() as tasks:
        set_diagnoses = tasks.create_task(_worst_in_time(setdiagnoses.diagnose_sets(lists, sets, namespace, commands)))
        own = tasks.create_task(_worst_in_time(setdiagnoses.survey(lists, views, namespace, commands, is_brief=True)))
    subjects: list[SetView | View] = [*(sets if set_diagnoses.result() else ()), *(views if own.result() else ())]
    diagnoses = [*(set_diagnoses.result() or ()), *(own.result() or ())]
    return [
        line
        for subject, diagnosis in zip(subjects, diagnoses, strict=True)
        if (line := _stuck_note(session, subject.namespace, subject.name, diagnosis))
    ]


def _stuck_note(session: Session, namespace: str, name: str, diagnosis: Diagnosis) -> str:
    if diagnosis.verdict not in NEEDS_USER:
        return ""
    return f"{name} is {WORDS[diagnosis.verdict]} ({diagnosis.code}): {diagnosis.title}; {details_hint(session, name, namespace)}"


async def diagnose_in_time(session: Session, name: str) -> Diagnosis | None:
    """Return the worst diagnosis for this name, or None if no diagnosis is available in time."""
    diagnoses = await _worst_in_time(explain(session, Selection(name)))
    return worst(diagnoses) if diagnoses else None


async def _worst_in_time(diagnoses: Coroutine[None, None, list[Diagnosis]]) -> list[Diagnosis] | None:
    try:
        async with timeouts.within(REASON_SECONDS):
            return await diagnoses
    except (TimeoutError, KubeError, CommandError, ExceptionGroup) as error:  # lists are read concurrently
        if all(isinstance(leaf, TimeoutError | KubeError | CommandError) for leaf in flatten(error)):
            return None
        raise
