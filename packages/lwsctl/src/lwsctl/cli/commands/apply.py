"""`lws apply`: applies manifests server-side, after validating all documents."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from lwsctl.cli.applying.applier import DEFAULT_NAMESPACE, Applier, check_locally, create_namespaces
from lwsctl.cli.applying.skippedkinds import without_unserved
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.reading import manifestoptions
from lwsctl.cli.reading.manifestoptions import manifest_arguments
from lwsctl.cli.reading.manifests import Document, sort_documents
from lwsctl.cli.rehearsal.imagewarnings import notes
from lwsctl.cli.views import formats
from lwsctl.cli.views.terminal import print_text


@click.command("apply")
@manifest_arguments
@manifestoptions.skip_unserved(default=False)
@click.option("--create-namespace", is_flag=True, help="Create the namespaces of the objects if they do not exist.")
@click.option(
    "--dry-run",
    type=click.Choice(["server", "client"]),
    is_flag=False,
    flag_value="server",
    help="Validate the objects without persisting changes. With server (the default), the API server validates all objects. With client, only LeaderWorkerSets "
    "are validated, without the API server.",
)
@click.option(
    "--force-conflicts",
    is_flag=True,
    help="Overwrite conflicting fields of other field managers, and take ownership of these fields.",
)
@formats.output_option("Output format. The applied objects are printed instead of messages.")
@click.pass_obj
def command(target: Target, /, *, dry_run: str | None, force_conflicts: bool, form: str | None, **options: Any) -> None:
    """Apply manifests. If the API server rejects one of the objects, no objects are applied."""
    if form and dry_run:
        raise UsageError("-o cannot be combined with --dry-run, because it prints the stored objects")
    create_namespace, skip = bool(options.pop("create_namespace")), bool(options.pop("skip_unserved"))
    documents = sort_documents(manifestoptions.collect(options).load())
    if dry_run == "client":
        check_locally(documents, target.namespace or DEFAULT_NAMESPACE)
        print_text("\n".join(f"{document.title} accepted (dry run, without the API server)" for document in documents))
        return

    async def run_command(session: Session) -> None:
        nonlocal documents
        if skip:
            documents, skipped = await without_unserved(session.client, documents)
            print_text(*skipped, err=True)
        created = await create_namespaces(session, documents) if create_namespace and not dry_run else []
        print_text(*created, err=bool(form))
        applier = Applier(session, force=force_conflicts, previous_lines=[line.partition(" (")[0] for line in created])
        await applier.check(documents)
        if dry_run:
            print_text("\n".join(f"{document.title} accepted (dry run)" for document in documents))
            return
        print_text(*image_notes(target, documents), err=True)
        lines = await applier.apply(documents)
        if form:
            click.echo(formats.render_objects(form, applier.stored, is_one=len(documents) == 1), nl=False)
        else:
            print_text("\n".join(lines))

    target.run(run_command)


def image_notes(target: Target, documents: Sequence[Document]) -> Iterator[str]:
    """Yield notes about images that the selected local cluster does not map."""
    if target.local is None:
        return
    from lwsctl.cli.cluster import clusterdirectories
    from lwsctl.cli.local import savedoptions

    options = savedoptions.load(clusterdirectories.cluster_directory(target.local))
    if options and not options.stub:
        yield from notes((document.object for document in documents), dict(options.images), is_typed=False)
