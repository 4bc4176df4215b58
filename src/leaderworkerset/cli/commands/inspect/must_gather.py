"""`lws must-gather`: write diagnostic data into a directory, to read or to send."""

from pathlib import Path
from typing import Final

import click
import msgspec

from kuberuntime.errors import APIError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.cli.cluster import recordings
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import UsageError
from leaderworkerset.cli.gathering.gatherer import HISTORY, NOTES, Gatherer, place, shown
from leaderworkerset.install import rendering
from leaderworkerset.install.installsettings import NAMESPACE
from leaderworkerset.operator.operatornames import OPERATOR

PLACES: Final = (NAMESPACE, OPERATOR)
"""The namespaces of manager and operator, unless `-n` names another one."""


@click.command("must-gather")
@click.option(
    "--dest-dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("must-gather"),
    show_default=True,
    help="The directory; it must not exist, or be empty.",
)
@click.pass_obj
def command(target: Target, /, directory: Path) -> None:
    """Write the manager's installation, its logs and all LeaderWorkerSets into a directory.

    The recorded failures of groups are in it, too. Of secrets, only names and the ends of certificates are written. Templates are written unchanged: values that they
    contain in plain text, as those of variables, are in the files, too. So only you may read the files.
    """
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty: name another directory with --dest-dir")
    files = 0

    def write(path: str, text: bytes) -> None:
        nonlocal files
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=0o600)
        place.write_bytes(text)
        files += 1

    def write_object(kind: Resource, obj: JSONObject) -> None:
        write(str(place(kind, obj)), rendering.document(shown(kind, obj)).encode())

    async def act(session: Session) -> Gatherer:
        gatherer = Gatherer(session.client, write_object, write)
        await gatherer.gather((target.namespace,) if target.namespace else PLACES)
        try:
            episodes = await recordings.of_session(target, session.client, target.namespace or "")
        except APIError as error:
            gatherer.notes.append(f"recorded failures: {error}")
            return gatherer
        for episode in episodes:
            names = (episode.namespace, episode.lws, episode.group, f"{episode.number}.json")
            write(str(HISTORY.joinpath(*names)), msgspec.json.encode(episode))
        return gatherer

    found = target.run(act)
    notes = found.notes
    unserved = [f"not served: {', '.join(sorted(found.unserved))}"] if found.unserved else []
    write(str(NOTES), "".join(f"{note}\n" for note in [*notes, *unserved]).encode())
    click.echo(f"{directory}: {files} files; {len(notes)} kinds or logs could not be read ({NOTES})")
    click.echo("templates are in it with the values of variables, and logs: look through it before you send it")
