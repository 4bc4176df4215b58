"""Default limits of an embedded cluster, which are enforced when pods are created."""

from typing import Final

MAX_PODS: Final = 5000
"""The default limit of pods in a cluster: more than one machine runs well, and fewer than fill its memory."""
