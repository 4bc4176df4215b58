"""Sets and pods that are deleted, evicted or preempted while they run."""

from collections.abc import Mapping
from typing import Final

from tests.node.situations.situation import STARTING, Situation, codes, main

DEAF: Final = "trap '' TERM; while :; do sleep 1; done"
MERGE: Final = "--type=merge"

ENDING: Final[Mapping[str, Situation]] = {
    "finalizer": Situation(
        main(),
        codes(1),
        ("example.com/kept",),
        then=(
            ("patch", "lws", "finalizer", MERGE, '--patch={"metadata":{"finalizers":["example.com/kept"]}}'),
            ("delete", "lws", "finalizer", "--wait=false"),
        ),
        before=STARTING | codes(90, 92),
        gives_up=False,
        keeps_running=True,
    ),
    "ignores-term": Situation(
        {"spec": {**main(DEAF)["spec"], "terminationGracePeriodSeconds": 600}},
        codes(53, 81, 121),
        (),
        frozenset({"progressing", "stuck"}),
        advice=("grace period of 10m", "SIGTERM"),
        then=(("delete", "pod", "ignores-term-0-1", "--wait=false"),),
        before=STARTING | codes(92),
        gives_up=False,
    ),
}
