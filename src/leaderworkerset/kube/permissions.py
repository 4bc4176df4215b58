"""What electing a leader and guarding the metrics ask of the API server; the leases are those of one namespace."""

from typing import Final

from leaderworkerset.api.permissions import Permission
from leaderworkerset.api.resources import LEASES, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS

LEADER_ELECTION: Final = (Permission(LEASES, ("create", "get", "update")),)
METRICS: Final = (Permission(TOKEN_REVIEWS, ("create",)), Permission(SUBJECT_ACCESS_REVIEWS, ("create",)))
