"""Determines fields of other commands whose ownership `lws apply` and the Python client may take. Pure."""

from typing import Final

from kuberuntime.errors import ConflictError
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels

ROLLOUT: Final = "lws-rollout"
"""The field manager for `lws rollout undo` and `restart`."""

OWN: Final = {labels.SCALE_MANAGER: "lws scale", ROLLOUT: "lws rollout"}
"""The field managers whose fields an apply may take over, and their commands."""


def has_only_own_conflicts(error: ConflictError) -> bool:
    """Return whether commands of the same user own all fields with conflicts in an apply request."""
    causes = _causes(error)
    return bool(causes) and all(
        cause.get("reason") == "FieldManagerConflict" and _conflict_owner(cause) for cause in causes
    )


def conflict_owners(error: ConflictError) -> tuple[str, ...]:
    """Return the commands that own the fields with conflicts in an apply request."""
    return tuple(sorted({_conflict_owner(cause) for cause in _causes(error)} - {""}))


def conflicting_fields(error: ConflictError) -> list[str]:
    """Return the paths of the fields with conflicts in an apply request."""
    return [str(cause.get("field", "")) for cause in _causes(error)]


def _causes(error: ConflictError) -> list[JSONObject]:
    return list(error.details.get("causes") or [])


def _conflict_owner(cause: JSONObject) -> str:
    """Return the command that owns a field with a conflict, or an empty string for a different manager."""
    message = str(cause.get("message", ""))
    return next((command for manager, command in OWN.items() if message.startswith(f'conflict with "{manager}"')), "")
