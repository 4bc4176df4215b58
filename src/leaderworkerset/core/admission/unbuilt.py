"""Fields of the newest LeaderWorkerSet whose controllers are not built yet: who newly uses one is refused.

An object that is stored with such a field, as another version of the controller left it, can still be changed.
"""

from collections.abc import Callable, Iterator
from typing import Final

from kuberuntime.objects.field import FieldError, Kind
from kuberuntime.objects.meta import JSONObject

UNBUILT: Final[tuple[tuple[str, Callable[[JSONObject], bool]], ...]] = (
    (
        "leaderWorkerTemplate.maxGroupRestarts",
        lambda spec: (spec.get("leaderWorkerTemplate") or {}).get("maxGroupRestarts") is not None,
    ),
)
"""Each field below `spec` and whether a spec uses it; the change that builds a field removes its entry."""

TEXT: Final = "not supported by this version of the manager: leave it away"


def errors(spec: JSONObject, old: JSONObject, path: str = "spec") -> Iterator[FieldError]:
    """Return an error for each such field of a spec that the stored one, empty if there is none, does not use."""
    for field, uses in UNBUILT:
        if uses(spec) and not uses(old):
            yield FieldError(Kind.FORBIDDEN, f"{path}.{field}", detail=TEXT)
