"""The effects of manifests by server-side dry run: each object as it is and as it would be."""

from collections.abc import Sequence
from dataclasses import dataclass

from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.applying.applier import Applier
from leaderworkerset.cli.cluster.target import Session
from leaderworkerset.cli.reading.manifests import Document


@dataclass(frozen=True, slots=True)
class Tried:
    """One document, the object as it is (None: absent) and as the API server would store it."""

    document: Document
    before: JSONObject | None
    after: JSONObject


async def try_out(session: Session, documents: Sequence[Document], *, force: bool) -> list[Tried]:
    """Apply documents without writing; raise the error of the first that the API server refuses."""
    applier = Applier(session, force=force)
    return [await _try(session, applier, document) for document in documents]


async def _try(session: Session, applier: Applier, document: Document) -> Tried:
    resource, obj = await applier.placed(document)
    try:
        before = await session.client.get(resource, meta.key(obj))
    except NotFoundError:
        before = None
    return Tried(document, before, await applier.tried(document))
