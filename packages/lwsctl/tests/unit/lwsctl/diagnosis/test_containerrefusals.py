"""Tests that each recorded message of kubelets and container runtimes has its own cause and remedy."""

import pytest
from tests.explanations.builders import container, ended, event, observed, placed, running, waiting

from kuberuntime.objects.resources import CORE_EVENTS
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.views.selection import Selection

CONFIG, CREATE, RUN = "CreateContainerConfigError", "CreateContainerError", "RunContainerError"
SHIM = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
HOOK = "error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: "

MESSAGES = [
    (CONFIG, 'container has runAsNonRoot and image will run as root (pod: "a_b(c)", container: main)', "LWS-E112", "set runAsUser to a nonzero value"),
    (CONFIG, 'container has runAsNonRoot and image has non-numeric user (vllm), cannot verify user is non-root (pod: "a_b(c)", container: main)', "LWS-E112", "the numeric ID of user vllm"),
    (CONFIG, "container's runAsUser breaks non-root policy (pod: a, container: main): runAsNonRoot", "LWS-E112", "set runAsUser"),
    (CREATE, 'failed to create containerd container: cannot load seccomp profile "/var/lib/kubelet/seccomp/profiles/gpu.json": open /var/lib/kubelet/seccomp/profiles/gpu.json: no such file or directory', "LWS-E112", "/var/lib/kubelet/seccomp"),
    (CREATE, 'failed to generate security options for container: failed to generate seccomp security options for container: unable to load local profile "/var/lib/kubelet/seccomp/gpu.json": open /var/lib/kubelet/seccomp/gpu.json: no such file or directory', "LWS-E112", "RuntimeDefault"),
    (CREATE, "failed to create containerd container: apparmor profile not found k8s-vllm", "LWS-E112", "load the profile on every node"),
    (RUN, SHIM + HOOK + "Auto-detected mode as 'legacy' nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown", "LWS-E113", "repair the driver on node node-0"),
    (RUN, SHIM + HOOK + "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown", "LWS-E113", "repair the driver"),
    (RUN, 'failed to create containerd task: failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime.v2.task/k8s.io/1/log.json: no such file or directory): exec: "nvidia-container-runtime": executable file not found in $PATH: unknown', "LWS-E113", "NVIDIA container toolkit"),
    (RUN, "failed to create containerd task: failed to create shim task: fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown", "LWS-E113", "NVIDIA container toolkit"),
    (CREATE, 'failed to generate container "1" spec: failed to generate spec: lstat /dev/infiniband/uverbs0: no such file or directory', "LWS-E113", "load the driver for /dev/infiniband/uverbs0"),
    (CREATE, 'Error response from daemon: error gathering device information while adding custom device "/dev/kfd": no such file or directory', "LWS-E113", "load the driver for /dev/kfd"),
    (CREATE, "failed to create containerd container: CDI device injection failed: unresolvable CDI devices k8s.gpu.nvidia.com/device=gpu-0", "LWS-E113", "CDI specification"),
    (CONFIG, 'failed to create subPath directory for volumeMount "models" of container "main"', "LWS-E114", "correct subPath of volumeMount models"),
    (CONFIG, 'failed to prepare subPath for volumeMount "models" of container "main"', "LWS-E114", "correct subPath of volumeMount models"),
    (RUN, SHIM + 'error during container init: error mounting "/var/lib/kubelet/pods/1/volumes/x" to rootfs at "/etc/passwd": mount src=x, dst=/etc/passwd: not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)?', "LWS-E114", "correct mountPath"),
    (RUN, SHIM + 'error during container init: chdir to cwd ("/workspace") set in config.json failed: no such file or directory: unknown', "LWS-E114", "correct workingDir"),
    (RUN, SHIM + "error during container init: mkdir /etc/passwd: not a directory: unknown", "LWS-E114", "correct workingDir"),
    (CONFIG, 'container "main" does not declare a port named "http". Use a declared port', "LWS-E117", "declare a port with this name"),
    (CONFIG, 'container "main", readinessProbe.grpc: gRPC probes are not supported on the embedded cluster. Use httpGet, tcpSocket or exec', "LWS-E117", "use an httpGet, tcpSocket or exec probe"),
    (RUN, SHIM + 'exec: "vllm": executable file not found in $PATH: unknown', "LWS-E065", "correct command of container main"),
    (RUN, SHIM + 'error during container init: exec: "/opt/serve": stat /opt/serve: no such file or directory: unknown', "LWS-E065", "correct command"),
    (RUN, SHIM + 'exec: "/data/run.sh": permission denied: unknown', "LWS-E065", "correct command"),
    (RUN, "exec /start.sh: no such file or directory", "LWS-E065", "correct command"),
    (CREATE, "container create failed: executable file `vllm` not found in $PATH: No such file or directory", "LWS-E065", "correct command"),
    (CREATE, "no command specified", "LWS-E065", "correct command"),
    (CONFIG, 'secret "hf-token" not found', "LWS-E066", 'create the missing object or key in namespace prod: secret "hf-token" not found'),
    (CONFIG, "couldn't find key token in Secret prod/hf", "LWS-E066", "create the missing object"),
    (CREATE, "context deadline exceeded", "LWS-E067", "lws -n prod describe web/0/0"),
    (CREATE, 'failed to reserve container name "main_web-0": name "main_web-0" is reserved for "1"', "LWS-E067", "lws -n prod describe web/0/0"),
    (CONFIG, "an admission plug-in of the runtime refused the container", "LWS-E067", "lws -n prod describe web/0/0"),
]  # fmt: skip


def told(situation: Observed) -> Diagnosis:
    return diagnose(situation, Selection("web"))


@pytest.mark.parametrize(("reason", "message", "code", "step"), MESSAGES)
def test_message_of_a_refusal_has_its_own_remedy(reason: str, message: str, code: str, step: str) -> None:
    found = told(waiting(reason, message))
    assert (found.code, step in found.steps[0]) == (code, True), found
    assert "{" not in found.sentence + "".join(found.steps)


@pytest.mark.parametrize(("reason", "message", "code", "step"), MESSAGES)
def test_message_of_a_refusal_is_found_while_it_backs_off(reason: str, message: str, code: str, step: str) -> None:
    """Between two attempts, only the event or the last terminated state contains the message."""
    if reason == RUN:
        end = ended(128, reason="StartError", message=message)
        status = container(restarts=3, last=end, waiting={"reason": "CrashLoopBackOff", "message": "back-off 5m0s"})
        found = told(running(status, events=[("Failed", f"Error: {message}")]))
        assert (found.code, step in found.steps[0]) == (code, True), found


@pytest.mark.parametrize(
    "message",
    [
        'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured',
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to find runtime handler nvidia from runtime list map[runc:0x1]",
    ],
)
def test_missing_runtime_handler_is_not_a_fault_of_the_network(message: str) -> None:
    found = told(
        observed(
            [placed(status={"phase": "Pending"})],
            {CORE_EVENTS: [event("Pod", "web-0", "FailedCreatePodSandBox", message)]},
        )
    )
    assert found.code == "LWS-E113"
    assert "has no runtime handler nvidia" in found.sentence


def test_failed_start_hook_is_named_with_its_container() -> None:
    text = 'Exec lifecycle hook ([/bin/fail]) for Container "main" in Pod "web-0_prod(1)" failed - error: command \'/bin/fail\' exited with 1: , message: ""'
    status = container(restarts=2, last=ended(0, reason="Completed"), waiting={"reason": "CrashLoopBackOff"})
    found = told(running(status, events=[("FailedPostStartHook", text)]))
    assert found.code == "LWS-E115"
    assert found.sentence.startswith(
        "the postStart hook of container main of pod web-0 fails, so the kubelet kills the container: Exec"
    )


def test_failed_start_hook_is_named_before_its_event_is_written() -> None:
    text = 'Exec lifecycle hook ([/bin/fail]) for Container "main" failed - error: command exited with 4'
    found = told(running(container(waiting={"reason": "PostStartHookError", "message": text})))
    assert (found.code, found.evidence) == ("LWS-E115", ("web-0: state PostStartHookError",))
    assert "container main of pod web-0 fails" in found.sentence
