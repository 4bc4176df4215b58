"""Defines the names of capabilities with manager settings. Their observed state has the same names."""

from typing import Final

BACKOFF: Final = "back-off"
DISRUPTION: Final = "disruption"
LOST_NODES: Final = "lost-nodes"
MOVES: Final = "moves"
POD_ADMISSION: Final = "pod-admission"
RECORDER: Final = "recorder"
