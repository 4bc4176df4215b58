"""Skips objects that would have no effect in a local cluster, if the API server does not serve their kinds.

The input is the documents to apply. The output is the applied documents, and a line for each skipped document.
"""

from collections.abc import Sequence

from kuberuntime.client.client import Client
from lwsctl.cli.applying import applier, skippedgroups
from lwsctl.cli.applying.applier import DryRunResult, defines_kind
from lwsctl.cli.applying.kindlookup import Discovery, UnknownKindError
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.reading.manifests import Document
from lwsctl.cli.views.terminal import print_text


async def without_unserved(client: Client, documents: Sequence[Document]) -> tuple[list[Document], list[str]]:
    """Return the documents without unserved kinds that have no effect, and a line for each skipped document."""
    discovery = Discovery(client)
    kept: list[Document] = []
    skipped: list[str] = []
    for document in documents:
        why = skippedgroups.reason(document.object["apiVersion"])
        if why and not defines_kind(documents, document) and not await _is_served(discovery, document):
            skipped.append(f"skipping {document.title}: {why}")
        else:
            kept.append(document)
    return kept, skipped


async def dry_run(session: Session, documents: Sequence[Document], *, force: bool, skip: bool) -> list[DryRunResult]:
    """Return the results of a dry run. If `skip` is set, skip unserved kinds that have no effect, and print them."""
    if skip:
        documents, skipped = await without_unserved(session.client, documents)
        print_text(*skipped, err=True)
    return await applier.dry_run(session, documents, force=force)


async def _is_served(discovery: Discovery, document: Document) -> bool:
    try:
        await discovery.resource_of(document.object)
    except UnknownKindError:
        return False
    return True
