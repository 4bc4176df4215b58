"""Defines programs that fail, and containers that the kubelet kills."""

from collections.abc import Mapping
from typing import Any, Final

from tests.node.images import BUSYBOX
from tests.node.objects import RESOURCES, WAIT, container, pod
from tests.node.situations.situation import CRASHING, STARTING, Situation, codes, main, of_rank_1

from kuberuntime.objects.meta import JSONObject

NO_FILE: Final = {"exec": {"command": ["test", "-f", "/tmp/up"]}, "periodSeconds": 2, "timeoutSeconds": 20}
CRASH: Final = codes(71, 80, 81)
"""The states of a crash before, while waiting for, and after the recreation."""


NOT_STARTED: Final = codes(65, 80, 81)
NOT_CREATED: Final = codes(114, 80, 81)


def named(name: str, script: str, **fields: Any) -> JSONObject:
    """Return a container with a different name."""
    return {**container(script, **fields), "name": name}


FAILING: Final[Mapping[str, Situation]] = {
    "exit-with-line": Situation(
        main(of_rank_1('sleep 12; echo "RuntimeError: NCCL communicator was aborted"; exit 5')),
        CRASH,
        ("exit code 5",),
        CRASHING,
        printed="NCCL communicator was aborted",
        replicas=2,
        gives_up=False,
    ),
    "crash-loop": Situation(
        main(of_rank_1('sleep 2; echo "ValueError: no free blocks"; exit 3')),
        CRASH,
        ("exit code 3",),
        CRASHING,
        printed="no free blocks",
    ),
    "out-of-memory": Situation(
        main(of_rank_1("sleep 3; x=$(head -c 100000000 /dev/zero | tr '\\0' x)")),
        codes(70, 80, 81),
        ("OOMKilled",),
        CRASHING,
        advice=("64Mi",),
    ),
    "liveness": Situation(
        main(of_rank_1("touch /tmp/up; sleep 8; rm /tmp/up"), livenessProbe={**NO_FILE, "failureThreshold": 2}),
        codes(72, 80, 81),
        ("liveness",),
        CRASHING,
    ),
    "liveness-port": Situation(
        main(
            WAIT,
            livenessProbe={"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 2, "failureThreshold": 3},
        ),
        codes(72, 80, 81),
        ("liveness",),
        CRASHING,
    ),
    "crash-after-probes": Situation(
        main(
            of_rank_1('sleep 5; touch /tmp/up; sleep 3; echo "Error: no such model: llama" >&2; exit 3').replace(
                WAIT, f"touch /tmp/up; {WAIT}"
            ),
            livenessProbe={**NO_FILE, "failureThreshold": 5},
        ),
        CRASH,
        ("exit code 3",),
        CRASHING,
        printed="no such model: llama",
        never=("startupProbe",),
    ),
    "startup-probe": Situation(
        main(WAIT, startupProbe={**NO_FILE, "failureThreshold": 3}),
        codes(72, 80, 81),
        ("startup",),
        CRASHING | {"starting", "stuck"},  # the first failures are within the permitted time
    ),
    "readiness-probe": Situation(
        main(WAIT, readinessProbe=NO_FILE),
        codes(91, 73),
        (),
        frozenset({"starting"}),
        gives_up=False,
    ),
    "readiness-port": Situation(
        main(WAIT, readinessProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 2}),
        codes(91, 73),
        (),
        frozenset({"starting"}),
        gives_up=False,
    ),
    "pid-limit": Situation(
        main(of_rank_1("sleep 2; while :; do sleep 1000 & done")),
        CRASH,
        ("exit code 2",),
        CRASHING,
        printed="can't fork",
    ),
    "ends-well": Situation(main(of_rank_1("sleep 3; echo finished; exit 0")), codes(75, 80, 81), ("code 0",), CRASHING),
    "init-fails": Situation(
        pod(container(), initContainers=[named("first", "echo no weights; exit 6")]),
        codes(68, 80, 81),
        ("first", "exit code 6"),
        CRASHING,
        printed="no weights",
    ),
    "sidecar-fails": Situation(
        pod(container(), initContainers=[named("side", "sleep 2; echo no upstream; exit 7", restartPolicy="Always")]),
        codes(68, 71, 80, 81),
        ("side", "exit code 7"),
        CRASHING,
        printed="no upstream",
    ),
    "hook-fails": Situation(
        main(WAIT, lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "sleep 1; exit 4"]}}}),
        codes(115, 80, 81),
        ("postStart",),
        CRASHING | {"stuck"},
        never=("exited with code 0",),
    ),
    "evicted": Situation(
        main(
            f"[ $LWS_WORKER_INDEX = 1 ] && {{ sleep 3; head -c 60000000 /dev/zero > /tmp/x; }}; {WAIT}",
            resources={**RESOURCES, "limits": {"memory": "64Mi", "ephemeral-storage": "10Mi"}},
        ),
        codes(54, 80, 81),
        ("ephemeral", "10Mi"),
        CRASHING,
        before=STARTING | CRASH,
        unexplained="failed (deleted)",  # its container exits with code 0, and the Evicted event can be seconds late
    ),
    "no-program": Situation(
        pod({**container(), "command": ["/no/such/program"]}), NOT_STARTED, ("/no/such/program",), CRASHING | {"stuck"}
    ),
    "not-executable": Situation(
        pod({**container(), "command": ["/etc/hosts"]}), NOT_STARTED, ("/etc/hosts",), CRASHING | {"stuck"}
    ),
    "working-directory": Situation(
        main(workingDir="/etc/passwd"), NOT_CREATED, ("/etc/passwd",), CRASHING | {"stuck"}, advice=("workingDir",)
    ),
    "mount-over-a-file": Situation(
        pod(container(mounts={"kept": "/etc/passwd"}), volumes=[{"name": "kept", "emptyDir": {}}]),
        NOT_CREATED,
        ("/etc/passwd",),
        CRASHING | {"stuck"},
        advice=("mountPath",),
    ),
    "other-image-without-sh": Situation(
        pod({**container(), "image": BUSYBOX, "command": ["python3", "serve.py"]}),
        NOT_STARTED,
        ("python3",),
        CRASHING | {"stuck"},
    ),
}
