"""`lws explain`: why a LeaderWorkerSet, a group or a rank is not as it is wanted, and what to do next."""

import asyncio
from dataclasses import replace
from typing import Final

import click

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import output
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.diagnosis.diagnose import worst
from leaderworkerset.diagnosis.document import document, headline, lines
from leaderworkerset.diagnosis.finding import Diagnosis, Verdict
from leaderworkerset.diagnosis.observed import Commands
from leaderworkerset.observation import diagnosing
from leaderworkerset.observation.logs import last_lines
from leaderworkerset.views.selection import Selection

REASON_SECONDS: Final = 5.0
"""How long a command that failed looks for the cause before it ends."""

EXIT_CODES: Final = {Verdict.HEALTHY: 0, Verdict.PROGRESSING: 3, Verdict.STUCK: 4, Verdict.UNKNOWN: 5}
"""How the command ends, so that scripts can decide; 1 and 2 are errors as of every command."""


@click.command("explain")
@click.argument("name", metavar="LWS[/GROUP[/RANK]]|SET", shell_complete=completing.names)
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="A document for programs.")
@click.pass_obj
def command(target: Target, name: str, form: str | None) -> int:
    """Say why a LeaderWorkerSet, a group or a rank is not ready: one root cause, its evidence, the next step.

    Of a DisaggregatedSet, the worst of its LeaderWorkerSets is explained. Ends with 0 healthy, 3 progressing by itself,
    4 stuck until somebody acts, 5 not ready and no known cause. Causes have codes: docs/reference/causes.md.
    """
    chosen = targets.parse(name)

    async def act() -> list[Diagnosis]:
        async with target.session() as session:
            return await explain(session, chosen)

    found = asyncio.run(act())
    if form is None:
        for line in render(found):
            say(line)
    else:
        value = document(found)
        click.echo(output.as_json(value) if form == "json" else output.as_yaml(value))
    return EXIT_CODES[worst(found).verdict]


async def explain(session: Session, chosen: Selection) -> list[Diagnosis]:
    """Return the diagnosis of what was chosen; of a DisaggregatedSet that of each LeaderWorkerSet."""
    resource, obj = await targets.find_either(session, chosen.name)
    if resource == LEADERWORKERSETS:
        return [await _explain(session, obj, checked(chosen, obj))]
    parts = await targets.list_parts(session, session.namespace, chosen.name)
    names = ", ".join(map(meta.name, parts)) or "none yet"
    if chosen.group is not None:
        raise UsageError(f"{chosen.name} is a DisaggregatedSet: name one of its LeaderWorkerSets ({names})")
    if not parts:
        text = f"DisaggregatedSet {chosen.name} has no LeaderWorkerSets yet"
        return [Diagnosis(target=chosen.name, verdict=Verdict.UNKNOWN, sentence=text)]
    return [await _explain(session, part, Selection(meta.name(part))) for part in parts]


async def _explain(session: Session, lws: meta.JSONObject, chosen: Selection) -> Diagnosis:
    commands = Commands(kubectl=session.kubectl, lws=session.lws)
    return await quoted(session.client, await diagnosing.explain(session.client, lws, chosen, commands))


async def reason(session: Session, name: str) -> str:
    """Return the cause in a line of its own, to end the message of another command; empty where there is none in time."""
    chosen = await in_time(session, name)
    if chosen is None or chosen.verdict is Verdict.HEALTHY:
        return ""
    return f"\n{headline(chosen)}"


async def reason_and_hint(session: Session, name: str) -> str:
    """Return the cause, and the command that says more of it: for a cluster that is still there afterwards."""
    found = await reason(session, name)
    return found and f"{found}\n`{session.lws} -n {session.namespace} explain {name}` says more"


async def note(session: Session, namespace: str, name: str) -> str:
    """Return the code and title of the cause that a set is stuck for, to stand below other output; empty otherwise."""
    chosen = await in_time(replace(session, namespace=namespace), name)
    if chosen is None or chosen.verdict is not Verdict.STUCK:
        return ""
    command = f"{session.lws} -n {namespace} explain {name}"
    return f"{name} is stuck: {chosen.code} ({chosen.title}); `{command}` says more"


async def in_time(session: Session, name: str) -> Diagnosis | None:
    """Return the worst diagnosis of what has this name; None where it cannot be made soon."""
    try:
        async with timeouts.within(REASON_SECONDS):
            return worst(await explain(session, Selection(name)))
    except (TimeoutError, KubeError, CommandError):
        return None


def checked(chosen: Selection, obj: meta.JSONObject) -> Selection:
    """Return the selection; refuse a group or rank that the LeaderWorkerSet does not have."""
    spec = meta.spec(obj)
    replicas, size = int(spec.get("replicas", 1)), int(spec["leaderWorkerTemplate"].get("size", 1))
    if (chosen.group or 0) >= max(replicas, 1) or (chosen.rank or 0) >= size:
        raise UsageError(f"{chosen}: {chosen.name} has {replicas} groups of {size} ranks")
    return chosen


async def quoted(client: Client, told: Diagnosis) -> Diagnosis:
    """Return a diagnosis with the last lines of the container that it is about, where they say more."""
    if told.log is None:
        return told
    text = await last_lines(client, told.log)
    return replace(told, evidence=(*told.evidence, *text.splitlines()))


def render(found: list[Diagnosis]) -> list[str]:
    """Return the text: the worst diagnosis as a whole, and of several a line for each other."""
    chosen = worst(found)
    others = [f"  {headline(one)}" for one in found if one is not chosen]
    return [*lines(chosen), *(["", "Others:", *others] if others else [])]
