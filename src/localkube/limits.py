"""Bounds of an embedded cluster that are chosen where it is started, and enforced where pods are created."""

from typing import Final

MAX_PODS: Final = 5000
"""Pods of a cluster where no other number is chosen: more than one machine runs well, fewer than fill its memory."""
