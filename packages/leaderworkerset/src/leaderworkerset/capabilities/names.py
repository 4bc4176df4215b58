"""The names of capabilities that the configuration of the manager has settings for; facts of theirs have the same names."""

from typing import Final

BACKOFF: Final = "back-off"
DISRUPTION: Final = "disruption"
LOST_NODES: Final = "lost-nodes"
MOVES: Final = "moves"
RECORDER: Final = "recorder"
