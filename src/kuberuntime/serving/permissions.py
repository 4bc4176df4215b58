"""Permissions for leader election, in one namespace, and for authorizing readers of metrics."""

from typing import Final

from kuberuntime.objects.resources import LEASES, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from kuberuntime.permissions import Permission

METRICS: Final = (Permission(TOKEN_REVIEWS, ("create",)), Permission(SUBJECT_ACCESS_REVIEWS, ("create",)))


def leader_election(lease: str) -> tuple[Permission, ...]:
    """Return what electing a leader on one lease asks for; no role can name what is created."""
    return (Permission(LEASES, ("create",)), Permission(LEASES, ("get", "update"), names=(lease,)))
