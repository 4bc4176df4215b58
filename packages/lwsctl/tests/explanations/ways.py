"""Defines twelve ways to break a workload, with the output of `lws run`, for the reference and the test."""

from dataclasses import dataclass
from typing import Final

from tests.e2e.harness import SLEEP, lws, shell_script

from kuberuntime.objects.meta import JSONObject


@dataclass(frozen=True, slots=True)
class Way:
    """A way to break a LeaderWorkerSet, with the code, the sentence and the first step that describe it.

    `command` is the next step on the page, if the first step is not a command.
    """

    broken: str
    obj: JSONObject
    code: str
    sentence: str
    step: str
    command: str = ""

    @property
    def name(self) -> str:
        """Return the name of the LeaderWorkerSet."""
        return str(self.obj["metadata"]["name"])


def _with_pod(obj: JSONObject, **fields: object) -> JSONObject:
    obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"] |= fields
    return obj


ASKS_LEADER: Final[JSONObject] = {"exec": {"command": ["false"]}, "periodSeconds": 1}
AT_ONCE: Final[JSONObject] = {"periodSeconds": 1, "failureThreshold": 1}
"""A probe that fails once. Otherwise, the container would count as ready between two restarts."""

WAYS: Final = (
    Way(
        "A worker raises an exception while the leader waits for it.",
        lws(
            "raises",
            {"command": ["python3", "-c", "{}['rank']"]},
            size=2,
            leader=SLEEP | {"readinessProbe": ASKS_LEADER},
        ),
        "LWS-E071",
        "container rank of pod raises-0-1 crashed with exit code 1 (Error): KeyError: 'rank'",
        "logs raises/0/1",
    ),
    Way(
        "A program is killed with SIGKILL.",
        lws("killed", {"command": ["python3", "-c", "import os; os.kill(os.getpid(), 9)"]}),
        "LWS-E071",
        "container rank of pod killed-0 crashed with exit code 137 (Error, killed by SIGKILL)",
        "SIGKILL was sent by a user, or because the container was stopped, or by the kernel if node",
        "dmesg",
    ),
    Way(
        "A server exits with code 0 instead of serving requests.",
        lws("ends", shell_script("exit 0")),
        "LWS-E075",
        "the container of pod ends-0 exited with code 0 and is restarted",
        "logs ends/0/0",
    ),
    Way(
        "The executable of a container is not installed on this machine.",
        lws("absent", {"image": "vllm", "command": ["vllm-of-nobody", "serve"]}),
        "LWS-E057",
        'pod absent-0 has no executable on this machine: program "vllm-of-nobody" is not installed on this machine',
        "map image vllm to a directory of executables: --image vllm=DIR",
        "lws run -f FILE --image vllm=DIR",
    ),
    Way(
        "An init container exits with an error.",
        _with_pod(
            lws("init", SLEEP),
            initContainers=[{"name": "download", "image": "host", **shell_script("echo no model >&2; exit 2")}],
        ),
        "LWS-E068",
        "init container download of pod init-0 fails with exit code 2 (Error), last line: no model",
        "logs init/0/0 -c download",
    ),
    Way(
        "The command of a liveness probe always fails.",
        lws("dying", SLEEP | {"livenessProbe": {"exec": {"command": ["false"]}, **AT_ONCE}}),
        "LWS-E072",
        "the liveness probe of pod dying-0 fails: Liveness probe failed: exit code 1",
        "logs dying/0/0",
    ),
    Way(
        "A program does not listen on the port of its liveness probe.",
        lws(
            "refused",
            SLEEP
            | {
                "ports": [{"containerPort": 8000}],
                "livenessProbe": {"httpGet": {"path": "/", "port": 8080}, **AT_ONCE},
            },
        ),
        "LWS-E072",
        "the liveness probe of pod refused-0 fails: Liveness probe failed: http://10.…",
        "logs refused/0/0",
    ),
    Way(
        "A container uses environment variables from a ConfigMap that does not exist.",
        lws("config", SLEEP | {"envFrom": [{"configMapRef": {"name": "settings"}}]}),
        "LWS-E066",
        'container rank of pod config-0 cannot be configured: configmap "settings" not found',
        'create the missing object or key in namespace default: configmap "settings" not found',
        "kubectl create configmap settings --from-env-file=FILE",
    ),
    Way(
        "A container mounts a Secret that does not exist.",
        _with_pod(
            lws("secret", SLEEP | {"volumeMounts": [{"name": "token", "mountPath": "/token"}]}),
            volumes=[{"name": "token", "secret": {"secretName": "hf-token"}}],
        ),
        "LWS-E064",
        'a volume of pod secret-0 cannot be mounted: secret "hf-token" not found',
        'create secret "hf-token" in namespace default, or correct the volume in the template of secret',
        "kubectl create secret generic hf-token --from-file=FILE",
    ),
    Way(
        "A container requests more GPUs than any node has.",
        lws("gpus", SLEEP | {"resources": {"limits": {"nvidia.com/gpu": 8}}}),
        "LWS-E035",
        "no node has enough nvidia.com/gpu for pod gpus-0: it requests 8, and the largest node has 0 (8 missing)",
        "to simulate nodes with nvidia.com/gpu, use --node-capacity nvidia.com/gpu=8 for the cluster, or run the manifest with --nodes auto --gpus auto",
        "lws run -f FILE --nodes auto --gpus auto",
    ),
    Way(
        "No node has the label that the pod template requires.",
        _with_pod(lws("label", SLEEP), nodeSelector={"gpu": "h100"}),
        "LWS-E040",
        "no free node has the labels that pod label-0 requires: gpu=h100",
        "label nodes with gpu=h100, or correct nodeSelector in the template of label",
        "lws run -f FILE --node-label gpu=h100",
    ),
    Way(
        "A port number in the pod template is invalid.",
        lws("ports", SLEEP | {"ports": [{"containerPort": 99999}]}),
        "LWS-E012",
        "the template of ports is invalid, so pod ports-0 cannot be created: "
        "spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535",
        "correct this field of ports, and apply the manifest again",
        "lws apply -f FILE",
    ),
)
