"""Tests that commands in hints refer to the current cluster."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from testkit.fakes import ScriptedTransport, failure
from testkit.virtualtime import run

from kuberuntime.client.client import Client
from kuberuntime.errors import NotFoundError
from lwsctl.cli import targets
from lwsctl.cli.applying.applier import describe
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.commands.local.run import command as run_command
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.reading.manifests import Document

KUBECONFIG = msgspec.json.encode(
    {
        "clusters": [{"name": "one", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "main", "context": {"cluster": "one"}}],
        "current-context": "main",
    }
)


def spoken(target: Target) -> tuple[str, str]:
    """Return the command prefixes for lws and kubectl in the session of a target."""

    async def scenario() -> tuple[str, str]:
        async with target.session() as session:
            return session.lws, session.kubectl

    return run(scenario())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("by_variable", [True, False])
def test_stopped_cluster_is_an_immediate_error(home: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool) -> None:
    place = clusterdirectories.cluster_directory("gpus")
    if by_variable:
        monkeypatch.setenv("KUBECONFIG", str(place.kubeconfig))
    with place.hold_lock(), subprocess.Popen(["sleep", "600"]) as cluster:
        try:
            place.lock.write_text(f"{cluster.pid}\n")
            place.kubeconfig.write_bytes(KUBECONFIG)
            target = Target() if by_variable else Target(local="gpus")
            assert "lws" in spoken(target)[0]
            cluster.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, cluster.pid, os.WSTOPPED)
            told = f"cluster gpus is suspended because process {cluster.pid} is stopped; use `kill -CONT {cluster.pid}` to continue it"
            with pytest.raises(CommandError, match=told):
                spoken(target)
        finally:
            cluster.kill()


@pytest.mark.parametrize(("name", "words"), [("gpus", "--local=gpus"), (clusterdirectories.DEFAULT, "--local")])
def test_hint_addresses_a_local_cluster(home: Path, name: str, words: str) -> None:
    place = clusterdirectories.cluster_directory(name)
    with place.hold_lock():
        place.kubeconfig.write_bytes(KUBECONFIG)
        assert spoken(Target(local=name)) == (f"lws {words}", "")


def test_hint_repeats_the_given_options(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(KUBECONFIG)
    options = f"--kubeconfig={path} --context=main"
    assert spoken(Target(kubeconfig=str(path), context_name="main")) == (f"lws {options}", f"kubectl {options}")


def test_hint_adds_nothing_for_the_default_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_bytes(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert spoken(Target()) == ("lws", "kubectl")


def test_hint_starts_a_stopped_cluster_by_name(home: Path) -> None:
    with pytest.raises(CommandError, match=r"use `lws up gpus` to start it$"):
        spoken(Target(local="gpus"))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "or start a local cluster with `lws up`"),
        ((clusterdirectories.DEFAULT,), "or select the cluster on this machine: --local"),
        ((clusterdirectories.DEFAULT, "gpus"), "or select a cluster on this machine: --local, --local=gpus"),
    ],
)
def test_error_without_a_kubeconfig_lists_local_clusters(
    home: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str], said: str
) -> None:
    monkeypatch.setenv("HOME", str(home / "nobody"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with ExitStack() as running:
        for name in names:
            running.enter_context(clusterdirectories.cluster_directory(name).hold_lock())
        with pytest.raises(CommandError, match=rf"specify --kubeconfig; {said}$"):
            spoken(Target())


def test_missing_definition_hint_installs_on_the_same_cluster() -> None:
    client = Client(ScriptedTransport(failure(404, "NotFound")))

    session = Session(client, "default", lambda *_: pytest.fail("no channels"), lws="lws --local=gpus")
    with pytest.raises(CommandError, match="use `lws --local=gpus install` to install"):
        run(targets.find(session, "web"))


def test_missing_namespace_hint_creates_it_on_the_same_cluster() -> None:
    document = Document("pod.yaml", 1, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    error = NotFoundError({"message": "no", "details": {"kind": "namespaces", "name": "team"}})
    told = describe(document, error, "kubectl --context=main")
    assert "; create it with `kubectl --context=main create namespace team`, or add --create-namespace" in told
    assert describe(document, error, "").endswith("no; add --create-namespace to this command")


def test_run_hint_names_commands_for_the_given_cluster() -> None:
    with pytest.raises(
        UsageError, match=r"`lws apply --local=gpus`, `lws wait --local=gpus` and `lws logs --local=gpus`$"
    ):
        run_command.main(["-f", "web.yaml"], obj=Target(local="gpus"), standalone_mode=False)
