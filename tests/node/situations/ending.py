"""Defines workloads and pods that are deleted, evicted or preempted while they are running."""

import json
from collections.abc import Mapping
from typing import Final

from tests.node.images import PAUSE
from tests.node.objects import WAIT, container, pod
from tests.node.situations.situation import CRASHING, STARTING, STUCK, Situation, codes, main

DEAF: Final = "trap '' TERM; while :; do sleep 1; done"
LARGE: Final = {"cpu": "1200m"}
"""More than half of the CPUs of a node."""

TAKER: Final = {
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "taker", "image": PAUSE, "resources": {"requests": LARGE, "limits": LARGE}}],
    }
}
LOW: Final = "situation-low"
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
    "preempted": Situation(
        pod(container(WAIT, resources={"requests": LARGE, "limits": LARGE}), priorityClassName=LOW),
        codes(36, 54),
        (),
        CRASHING | STUCK,
        objects=(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": LOW},
                "value": -10,
                "preemptionPolicy": "Never",
            },
        ),
        then=(("run", "taker", f"--image={PAUSE}", f"--overrides={json.dumps(TAKER)}"),),
        before=STARTING | codes(36, 80, 81, 90, 92),
    ),
    "ignores-term": Situation(
        {"spec": {**main(DEAF)["spec"], "terminationGracePeriodSeconds": 600}},
        codes(53, 81, 121),
        (),
        frozenset({"progressing", "stuck"}),
        advice=("grace period 10m", "SIGTERM"),
        then=(("delete", "pod", "ignores-term-0-1", "--wait=false"),),
        gives_up=False,
    ),
}
