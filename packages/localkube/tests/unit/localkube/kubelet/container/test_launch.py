"""Tests how a container process is planned from the container spec."""

from pathlib import Path
from typing import Any

import pytest
from tests.kubeletpods import container, pod

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.container import launch
from localkube.kubelet.container.images import UnrunnableError
from localkube.kubelet.container.launch import Launch, LaunchInputs
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import Capabilities, Mount
from localkube.kubelet.spec import environment
from localkube.kubelet.spec.environment import EnvironmentInputs, ReferencedObjects
from localkube.kubelet.spec.fieldref import NodeFacts
from localkube.kubelet.spec.podspec import SpecError

FILE = Path("/state/termination")


def plan(main: JSONObject, *, namespaces: bool = True, spec: JSONObject | None = None, **settings: Any) -> Launch:
    defaults: dict[str, Any] = {"host_environment": {"PATH": "/usr/bin:/bin"}, "host_user": 1000}
    configured = KubeletSettings(
        node_names=frozenset(),
        capabilities=Capabilities(has_namespaces=namespaces, network="isolated"),
        state_directory=Path("/state"),
        **defaults | settings,
    )
    context = EnvironmentInputs(
        pod=pod(main, **spec or {}), ip="10.0.0.1", node=NodeFacts("", {}), sources=ReferencedObjects({}, {})
    )
    return launch.plan(main, context, LaunchInputs(configured, {"v": Path("/state/v")}, FILE))


def test_container_is_planned_with_arguments_and_mounts() -> None:
    main = container(
        command=["sleep"],
        args=["$(TIME)"],
        env=[{"name": "TIME", "value": "5"}],
        workingDir="/work",
        volumeMounts=[{"name": "v", "mountPath": "/data"}],
    )
    found = plan(main, spec={"volumes": [{"name": "v", "emptyDir": {}}]})
    assert found == Launch(
        container=main,
        image_id="host://",
        argv=("sleep", "5"),
        env={"PATH": "/usr/bin:/bin", "HOSTNAME": "web-0", "TIME": "5"},
        cwd="/work",
        mounts=(Mount(Path("/state/v"), "/data"), Mount(FILE, "/dev/termination-log")),
    )


def test_container_without_namespaces_has_no_message_file() -> None:
    assert plan(container(), namespaces=False).mounts == ()


@pytest.mark.parametrize(
    ("security", "host_user", "expected"),
    [
        ({"runAsUser": 1000, "runAsGroup": 7}, 1000, (1000, 7)),
        ({"runAsUser": 5}, 0, (5, None)),
        ({"runAsNonRoot": True}, 1000, (None, None)),
        ({}, 0, (None, None)),
    ],
)
def test_permitted_user_is_used(security: JSONObject, host_user: int, expected: object) -> None:
    found = plan(container(securityContext=security), host_user=host_user)
    assert (found.user, found.group) == expected


@pytest.mark.parametrize(
    ("security", "host_user", "text"),
    [
        ({"runAsUser": 0}, 1000, "securityContext.runAsUser: 0: not supported, because the cluster runs as user"),
        ({"runAsNonRoot": True}, 0, "container has runAsNonRoot and would run as root"),
        ({"runAsNonRoot": True, "runAsUser": 0}, 0, "container has runAsNonRoot"),
    ],
)
def test_rejected_user_is_an_error(security: JSONObject, host_user: int, text: str) -> None:
    with pytest.raises(SpecError, match=text):
        plan(container(securityContext=security), host_user=host_user)


def test_container_security_context_overrides_that_of_the_pod() -> None:
    main = container(securityContext={"runAsUser": 7})
    assert plan(main, spec={"securityContext": {"runAsUser": 5, "runAsGroup": 6}}, host_user=0).user == 7


def test_read_only_root_needs_namespaces() -> None:
    main = container(securityContext={"readOnlyRootFilesystem": True})
    assert plan(main).read_only_root
    with pytest.raises(SpecError, match="this machine does not permit namespaces"):
        plan(main, namespaces=False)


def test_image_with_a_root_inherits_nothing_of_the_host(tmp_path: Path) -> None:
    for name in ("etc", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "sleep").touch()
    found = plan(container(), images={"any": tmp_path}, host_environment={"PATH": "/x", "LANG": "C"})
    assert found.root == tmp_path
    assert found.env == {"PATH": environment.CONTAINER_PATH, "HOME": "/root", "HOSTNAME": "web-0"}


def test_image_with_a_folder_runs_in_it(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    found = plan(container(), images={"any": tmp_path})
    assert found.cwd == str(tmp_path)
    assert found.env["PATH"] == f"{tmp_path}/.venv/bin:/usr/bin:/bin"


def test_unrunnable_container_is_replaced_only_with_stubs() -> None:
    main = {"name": "main", "image": "vllm:v1", "readinessProbe": {"exec": {"command": ["x"]}}}
    with pytest.raises(UnrunnableError):
        plan(main)
    found = plan(main, stub=True)
    assert (found.image_id, found.argv) == ("stub://vllm:v1", ())
    assert "readinessProbe" not in found.container
    assert plan(container(), stub=True).image_id == "host://"


@pytest.mark.parametrize(
    "script",
    [
        "echo started; trap '' TERM; while :; do sleep 1; done",
        "nvidia-smi || echo no GPU here; echo started; sleep 1000",
    ],
)
def test_runnable_script_is_not_replaced(script: str) -> None:
    assert plan(container(command=["sh", "-c", script]), stub=True).image_id == "host://"


@pytest.mark.parametrize("stub", [False, True])
def test_device_claims_are_rejected(stub: bool) -> None:
    with pytest.raises(SpecError, match=r"spec\.resourceClaims: not supported on a local cluster"):
        plan(container(command=["sleep"]), spec={"resourceClaims": [{"name": "gpu"}]}, stub=stub)


@pytest.mark.parametrize("images", [{"all"}, {"any"}, {"any:v1"}])
def test_named_image_is_replaced_even_if_it_can_run(images: set[str]) -> None:
    found = plan(container(image="any:v1"), stub=True, stub_images=frozenset(images))
    assert (found.image_id, found.argv) == ("stub://any:v1", ())
    assert plan(container(image="other:v1"), stub=True, stub_images=frozenset(images - {"all"})).image_id == "host://"


def test_stub_is_probed_without_a_delay() -> None:
    probe = {"httpGet": {"port": 8000}, "initialDelaySeconds": 900, "periodSeconds": 5}
    main = container(image="vllm:v1", command=["no-such-engine"], readinessProbe=probe)
    assert plan(main, stub=True).container["readinessProbe"] == probe | {"initialDelaySeconds": 0}


def test_container_of_the_host_needs_its_sources_with_stubs() -> None:
    main = container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k"}}}])
    with pytest.raises(SpecError, match='secret "no" not found'):
        plan(main, stub=True)


NUL_EVERYWHERE: list[JSONObject] = [
    {"command": ["a\0b"]}, {"args": ["\0"]}, {"workingDir": "/a\0"}, {"env": [{"name": "A", "value": "\0"}]}, {"terminationMessagePath": "/\0"},
    {"volumeMounts": [{"name": "v", "mountPath": "/\0"}]}, {"lifecycle": {"preStop": {"exec": {"command": ["\0"]}}}}, {"livenessProbe": {"exec": {"command": ["\0"]}}},
]  # fmt: skip


@pytest.mark.parametrize("fields", NUL_EVERYWHERE, ids=str)
def test_texts_with_nul_are_rejected_with_their_field(fields: JSONObject) -> None:
    with pytest.raises(SpecError, match=r"containers\[main\]\..*NUL"):
        plan(container(**{"command": ["sleep"], **fields}), spec={"volumes": [{"name": "v", "emptyDir": {}}]})
