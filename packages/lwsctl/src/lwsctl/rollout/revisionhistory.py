"""Lists the revisions of a LeaderWorkerSet with their groups, also as machine-readable data. Pure."""

from collections.abc import Iterable, Sequence

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.decisions.revisioncontent import RevisionEntry, revision_content, revision_entries
from lwsctl.model.leaderworkerset import View
from lwsctl.views.document import VERSION


def entries(view: View, objects: Iterable[JSONObject]) -> list[RevisionEntry]:
    """Return the revisions of a LeaderWorkerSet, the oldest first. If keys are equal, only the latest is returned."""
    return revision_entries(view.object, objects, ((group.revision, group.name) for group in view.groups))


def document(name: str, history: Sequence[RevisionEntry]) -> JSONObject:
    """Return the revisions with stable field names, as `-o json` prints them."""
    return {
        "apiVersion": VERSION,
        "kind": "RevisionList",
        "leaderWorkerSet": name,
        "items": [
            {
                "revision": entry.number,
                "key": entry.key,
                "created": entry.created,
                "changeCause": entry.cause,
                "groups": list(entry.groups),
                "current": entry.is_current,
                "spec": revision_content(entry),
            }
            for entry in history
        ],
    }
