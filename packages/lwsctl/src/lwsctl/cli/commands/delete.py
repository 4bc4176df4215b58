"""`lws delete`: deletes LeaderWorkerSets by name, or objects in manifests, and waits for their deletion."""

from collections.abc import Sequence
from typing import Any

import click

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.requests import select_one
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kuberuntime.plan import Propagation
from lwsctl.cli import targets
from lwsctl.cli.applying import skippedgroups
from lwsctl.cli.applying.kindlookup import Discovery, UnknownKindError
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.reading import manifestoptions, manifests
from lwsctl.cli.reading.manifestoptions import manifest_options
from lwsctl.cli.reading.manifests import sort_documents
from lwsctl.cli.sharedoptions import DRY, dry_run_option, timeout_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views import formats
from lwsctl.cli.views.progress import BETWEEN_LINES, ProgressLine
from lwsctl.cli.views.terminal import print_text
from lwsctl.cli.watchwarnings import following

CASCADE: dict[str, Propagation] = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


@click.command("delete")
@click.argument("names", nargs=-1, metavar="[LWS|SET]...", shell_complete=completion.names)
@manifest_options
@click.option(
    "--cascade",
    type=click.Choice(list(CASCADE)),
    default="background",
    show_default=True,
    help="Deletion cascading strategy for the dependents of the objects.",
)
@click.option(
    "--wait/--no-wait",
    "waits",
    default=True,
    show_default=True,
    help="Wait until the objects are deleted before exiting.",
)
@dry_run_option("Show the objects that would be deleted, without deleting them.")
@timeout_option("2m", "the objects to be deleted")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["name"]),
    help="Output format. With name, only the kind and the name of each object are printed.",
)
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], *, form: str | None, **options: Any) -> None:
    """Delete LeaderWorkerSets and DisaggregatedSets by name, or the objects in manifests."""
    sources = manifestoptions.collect(options)
    if bool(names) == bool(sources):
        raise UsageError("specify either names, or manifests with -f or -k")
    documents = sort_documents(sources.load()) if sources else []
    cascade, waits, timeout = CASCADE[str(options["cascade"])], bool(options["waits"]), float(str(options["timeout"]))

    async def run_command(session: Session) -> None:
        objects, unknown = await _resolve_documents(session, documents)
        objects += [await _resolve_name(session, name) for name in names]
        if options["is_trial"]:
            for resource, key in objects:
                await _dry_run_deletion(session, resource, key, form)
            objects = []
        for part in deletion_batches(objects):
            deleted = [
                (resource, key) for resource, key in part if await _delete(session, resource, key, cascade, form)
            ]
            if waits:
                await wait_until_deleted(session, deleted, timeout)
        if unknown:
            raise CommandError("\n".join(unknown))

    target.run(run_command)


def deletion_batches(objects: Sequence[tuple[Resource, ObjectKey]]) -> list[list[tuple[Resource, ObjectKey]]]:
    """Return the batches to delete. CRDs are in the last batch, so that the deletion of their objects is visible."""
    definitions = [pair for pair in objects if pair[0] == CUSTOM_RESOURCE_DEFINITIONS]
    return [[pair for pair in objects if pair not in definitions], definitions]


async def _resolve_name(session: Session, name: str) -> tuple[Resource, ObjectKey]:
    selection = targets.parse(name)
    if selection.group is not None:
        raise UsageError(
            f"lws delete does not support groups; use `{session.lws} restart {name}` to recreate the group"
        )
    resource, obj = await targets.find_set(session, selection.name)
    return resource, meta.key(obj)


async def _resolve_documents(
    session: Session, documents: Sequence[manifests.Document]
) -> tuple[list[tuple[Resource, ObjectKey]], list[str]]:
    """Return the objects to delete, and a note for each object whose kind is not served."""
    discovery = Discovery(session.client)
    objects: list[tuple[Resource, ObjectKey]] = []
    unknown: list[str] = []
    for document in reversed(documents):
        try:
            objects.append(await _resolve_document(session, discovery, document))
        except UnknownKindError as error:
            if why := skippedgroups.reason(document.object["apiVersion"]):  # it was also skipped when it was applied
                print_text(f"skipping {document.title}: {why}", err=True)
                continue
            unknown.append(document.message(str(error)))
    return objects, unknown


async def _resolve_document(
    session: Session, discovery: Discovery, document: manifests.Document
) -> tuple[Resource, ObjectKey]:
    resource = await discovery.resource_of(document.object)
    metadata = document.object["metadata"]
    if not metadata.get("name"):
        raise CommandError(f"{document.location}: metadata.name: Required value: objects are deleted by name")
    namespace = (metadata.get("namespace") or session.namespace) if resource.namespaced else ""
    return resource, ObjectKey(namespace, metadata["name"])


def _report_deleted(resource: Resource, key: ObjectKey, form: str | None, dry: str = "") -> None:
    if form == "name":
        print_text(formats.title(resource.api_version, resource.kind, key.name))
    else:
        print_text(f"{resource.kind.lower()}/{key.name} deleted{dry}")


def _print_deleted(resource: Resource, key: ObjectKey, form: str | None) -> None:
    print_text(f"{resource.kind.lower()}/{key.name} was already deleted", err=form == "name")


async def _dry_run_deletion(session: Session, resource: Resource, key: ObjectKey, form: str | None) -> None:
    if await session.client.find(resource, key) is None:
        _print_deleted(resource, key, form)
    else:
        _report_deleted(resource, key, form, DRY)


async def _delete(
    session: Session, resource: Resource, key: ObjectKey, propagation: Propagation, form: str | None
) -> bool:
    """Delete an object and print a message. Return whether it existed."""
    try:
        await session.client.delete(resource, key, propagation=propagation)
    except NotFoundError:
        _print_deleted(resource, key, form)
        return False
    _report_deleted(resource, key, form)
    return True


async def wait_until_deleted(session: Session, objects: Sequence[tuple[Resource, ObjectKey]], timeout: float) -> None:
    """Wait until all objects are deleted.

    After `timeout` seconds, raise an error that lists the remaining objects.
    """
    progress = ProgressLine(between=BETWEEN_LINES)
    try:
        for resource, key in objects:
            progress.show(f"waiting for the deletion of {resource.kind.lower()}/{key.name}")
            await _wait_for_deletion(session, resource, key, timeout)
    finally:
        progress.clear()


async def _wait_for_deletion(session: Session, resource: Resource, key: ObjectKey, timeout: float) -> None:
    informer = Informer(session.client, select_one(resource, key))
    try:
        async with timeouts.within(timeout), following(informer, session.keepalive) as objects:
            await objects.wait_for(lambda: None if informer.store.list() else True)
    except TimeoutError as error:
        obj = informer.store.get(key) or {}
        finalizers = meta.metadata(obj).get("finalizers")
        reason = f", blocked by finalizers {', '.join(finalizers)}" if finalizers else ""
        raise TimedOutError(
            f"{resource.kind.lower()}/{key.name} was not deleted within {timeout:g} s{reason}"
        ) from error
