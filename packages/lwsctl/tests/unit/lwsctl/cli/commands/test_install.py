"""Tests `lws install` and `lws uninstall` without a cluster: conflicting options, files and output."""

import json
from pathlib import Path

import pytest
import yaml

from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED
from lwsctl.cli import app, errors
from lwsctl.cli.commands.uninstall import require_no_custom_resources, require_no_evidence

HEAD = "apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["install", "-o", "yaml"], "-o requires --dry-run=client or --dry-run=server"),
        (["install", "--wait", "--dry-run=client"], "--wait cannot be combined with --dry-run"),
        (["install", "--image", " "], '--image: Invalid value: "": specify the manager image'),
        (["install", "--replicas", "-1"], "Invalid value for '--replicas': -1 is not in the range x>=0."),
        (["install", "-n", "Not_A_Name", "--dry-run=client"], '--namespace: Invalid value: "Not_A_Name": a lowercase'),
        (["install", "--local"], "the embedded cluster runs its own manager"),
        (["uninstall", "--local"], "the embedded cluster runs its own manager"),
        (["uninstall", "--keep-crd", "--delete-leaderworkersets"], "cannot be combined"),
    ],
)
def test_conflicting_options_are_rejected(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(words) == errors.USAGE
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "invalid YAML"),
        ("", "expected an object with apiVersion config.lws.x-k8s.io/v1 and kind Configuration"),
        (f"{HEAD}---\n{HEAD}", "invalid YAML"),
        (f"{HEAD}webhok: {{}}\n", 'strict decoding error: unknown field "webhok"'),
        (f"{HEAD}webhook: {{port: 9444}}\n", 'webhook.port: Unsupported value: 9444: supported values: "9443"'),
        (f"{HEAD}tls: {{minVersion: VersionTLS10}}\n", 'invalid minVersion "VersionTLS10"'),
        ("apiVersion: v1\nkind: Pod\n", 'no kind "Pod" is registered for version "v1"'),
    ],
)
def test_configuration_is_checked_before_any_request(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manager would also reject the value, but later (R-CFG-1 to R-CFG-3)."""
    path = tmp_path / "config.yaml"
    path.write_text(content)
    assert app.run(["install", "--dry-run=client", "--config", str(path)]) == errors.FAILED
    captured = capsys.readouterr().err
    assert str(path) in captured
    assert message in captured


@pytest.mark.parametrize(("content", "message"), [(None, "No such file"), (b"\xff", "invalid YAML")])
def test_unreadable_configuration_file_is_named(
    content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    assert app.run(["install", "--dry-run=client", "--config", str(path)]) == errors.FAILED
    assert f"--config: {path}: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.slow
def test_dry_run_prints_every_object(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No cluster is needed, because users can store the objects in a repository and apply them in other ways."""
    words = [
        "install",
        "--dry-run=client",
        "-o",
        form,
        "-n",
        "serving",
        "--image",
        "own:1",
        "--replicas",
        "3",
        "--log-format=json",
    ]
    assert app.run(words) == 0
    printed = capsys.readouterr().out
    found = list(yaml.load_all(printed, SafeLoader)) if form == "yaml" else json.loads(printed)["items"]
    expected = InstallSettings(namespace="serving", image="own:1", replicas=3, log_format="json")
    assert found == [obj for _, obj in build_all(MANAGED, expected)]


POD = {
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"pool": "infra"},
    "priorityClassName": "system-cluster-critical",
    "resources": {"requests": {"cpu": "2"}},
    "tolerations": [{"operator": "Exists"}],
}


def test_pod_fields_of_a_file_reach_the_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(POD))
    assert app.run(["install", "--dry-run=client", "-o", "json", "--pod", str(path)]) == 0
    (deployment,) = [one for one in json.loads(capsys.readouterr().out)["items"] if one["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert {name: pod[name] for name in POD if name != "resources"} | {
        "resources": pod["containers"][0]["resources"]
    } == POD


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a\n", "must be an object that contains only affinity, "),
        ("hostNetwork: true\n", "resources, tolerations, not hostNetwork"),
        ("a: [", "did not find expected node content"),
        (None, "No such file"),
    ],
)
def test_file_without_pod_fields_is_rejected(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pod.yaml"
    if content is not None:
        path.write_text(content)
    assert app.run(["install", "--dry-run=client", "--pod", str(path)]) == errors.FAILED
    captured = capsys.readouterr().err
    assert f"--pod: {path}: " in captured
    assert message in captured


@pytest.mark.parametrize(("words", "warns"), [([], True), (["--image=registry.example.com/lws:1"], False)])
def test_unpullable_image_causes_a_warning(words: list[str], warns: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["install", "--dry-run=client", *words]) == 0
    assert ("is not in a registry; load it onto all nodes" in capsys.readouterr().err) is warns


def test_dry_run_without_format_prints_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["install", "--dry-run=client"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "namespace/lws-system (dry run)"
    assert len(lines) == len(build_all(MANAGED, InstallSettings()))


def sets(count: int) -> list[JSONObject]:
    return [
        {"kind": "LeaderWorkerSet", "metadata": {"namespace": "default", "name": f"web-{index}"}}
        for index in range(count)
    ]


def test_uninstall_without_sets_loses_nothing() -> None:
    require_no_custom_resources([])


def test_uninstall_names_sets_and_alternatives() -> None:
    with pytest.raises(errors.CommandError) as caught:
        require_no_custom_resources(sets(5))
    assert str(caught.value) == (
        "custom resources would be deleted with their CRDs: leaderworkerset default/web-0, leaderworkerset default/web-1,"
        " leaderworkerset default/web-2 and 2 more; use --delete-workloads"
        " to delete these objects, or --keep-crd to keep them"
    )


@pytest.mark.parametrize(
    ("provider", "groups"),
    [
        ("", []),
        ("volcano", ["scheduling.volcano.sh"]),
        ("native", ["scheduling.k8s.io"]),
        ("auto", ["scheduling.k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io"]),
    ],
)
def test_role_follows_the_configured_gang_schedulers(
    provider: str, groups: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A role depends on the configured gang schedulers (R-GANG-7)."""
    path = tmp_path / "config.yaml"
    section = f"gangSchedulingManagement: {{schedulerProvider: {provider}}}\n" if provider else ""
    path.write_text(HEAD + section)

    assert app.run(["install", "--dry-run=client", "-o", "json", "--config", str(path)]) == 0

    objects = json.loads(capsys.readouterr().out)["items"]
    (role,) = [one for one in objects if one["kind"] == "ClusterRole" and one["metadata"]["name"] == "lws-manager-role"]
    assert sorted({rule["apiGroups"][0] for rule in role["rules"] if "scheduling" in rule["apiGroups"][0]}) == groups


def test_uninstall_names_pods_that_would_be_stranded() -> None:
    """The message lists all pods, regardless of the number of pods (N-RB-5)."""
    pods: list[JSONObject] = [
        {"metadata": {"namespace": "ns", "name": f"{name}-{group}", "labels": {labels.NAME: name}}}
        for name in "abcd"
        for group in range(2)
    ]
    require_no_evidence([], "lws")
    with pytest.raises(errors.CommandError) as refused:
        require_no_evidence(pods, "kubectl lws")
    text = str(refused.value)
    assert ": ns/a-0, ns/a-1, ns/b-0 and 5 more;" in text
    recovering = "(kubectl lws recover a -n ns; kubectl lws recover b -n ns; kubectl lws recover c -n ns; and 1 more)"
    assert recovering in text
