"""The namespaces that documents need and that do not exist: listed, or created."""

from collections.abc import Sequence

from kuberuntime.errors import AlreadyExistsError, NotFoundError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NAMESPACES
from leaderworkerset.cli.applying.kindlookup import Discovery, UnknownKindError
from leaderworkerset.cli.cluster.target import Session
from leaderworkerset.cli.reading.manifests import Document


async def create(session: Session, documents: Sequence[Document]) -> list[str]:
    """Create the namespaces that documents need and do not contain; return one line for each."""
    lines = []
    for name in await missing(session, documents):
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await session.client.create(NAMESPACES, obj)
        except AlreadyExistsError:  # another client created it meanwhile
            continue
        lines.append(f"namespace/{name} created (the manifest is for it, and does not bring it)")
    return lines


async def missing(session: Session, documents: Sequence[Document]) -> list[str]:
    """Return the namespaces that documents need, do not contain, and that do not exist."""
    discovery = Discovery(session.client)
    brought = {
        document.object["metadata"].get("name") for document in documents if document.object["kind"] == "Namespace"
    }
    wanted = {await _namespace_of(session, discovery, document): None for document in documents}
    return [name for name in wanted if name and name not in brought and not await _is_there(session, name)]


async def _namespace_of(session: Session, discovery: Discovery, document: Document) -> str:
    own: str = document.object["metadata"].get("namespace") or ""
    try:
        resource = await discovery.resource_of(document.object)
    except UnknownKindError:  # perhaps of a definition in the same documents
        return own
    return (own or session.namespace) if resource.namespaced else ""


async def _is_there(session: Session, name: str) -> bool:
    try:
        await session.client.get(NAMESPACES, ObjectKey("", name))
    except NotFoundError:
        return False
    return True
