"""Tests that credentials are reread when they may have changed, and when exec plugins run."""

import asyncio
import json
import shlex
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from testkit.virtualtime import START, run

from kuberuntime.access.credentials import REREAD, Credentials, ExecConfig, SecretEntry, StoredCredentials
from kuberuntime.access.execcredentials import ExecCredentials
from kuberuntime.errors import ConfigError

V1 = "client.authentication.k8s.io/v1"
NOTHING = SecretEntry("")


def token_file(path: Path) -> StoredCredentials:
    return StoredCredentials(token=SecretEntry("tokenFile", file=path), certificate=NOTHING, key=NOTHING)


@pytest.mark.virtual_time
async def test_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    source = token_file(path)

    tokens = [(await source.get()).token]
    path.write_text("two")
    for _ in range(2):
        tokens.append((await source.get()).token)
        await asyncio.sleep(REREAD)
    assert [*tokens, (await source.get()).token] == ["one", "one", "two", "two"]


@pytest.mark.virtual_time
async def test_rejected_token_is_reread_immediately(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = token_file(path)

    first = await source.get()
    assert not await source.renew(first)
    path.write_text("two")
    assert await source.renew(first)
    assert (await source.get()).token == "two"


def test_token_in_the_kubeconfig_cannot_be_renewed() -> None:
    source = StoredCredentials(token=SecretEntry("token", b"one"), certificate=NOTHING, key=NOTHING)

    assert not run(source.renew(Credentials("one")))


def test_empty_token_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("\n")

    with pytest.raises(ConfigError, match="is empty, but must contain a bearer token"):
        token_file(path)


class StoppedClock:
    """A clock that always shows the start of 2026."""

    def now(self) -> datetime:
        return START

    def monotonic(self) -> float:
        return 0.0


class Plugin:
    """A script that prints credentials and counts its runs."""

    def __init__(self, directory: Path, script: str, **config: Any) -> None:
        self.directory = directory
        program = directory / "plugin"
        program.write_text(f"#!/bin/sh\necho run >> {shlex.quote(str(directory))}/runs\n{script}\n")
        program.chmod(0o755)
        fields = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never"} | config
        self.source = ExecCredentials(
            msgspec.convert(fields, ExecConfig),
            entry="config: users[dev].user.exec",
            directory=directory,
            cluster={"server": "https://dev:6443"},
            clock=StoppedClock(),
        )

    @property
    def runs(self) -> int:
        path = self.directory / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0


def printing(**status: Any) -> str:
    credential = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    return f"echo {shlex.quote(json.dumps(credential))}"


async def test_plugin_without_expiry_runs_once(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, printing(token="t"))

    assert (await asyncio.gather(*[plugin.source.get() for _ in range(20)])) == [Credentials("t")] * 20
    assert plugin.runs == 1


@pytest.mark.parametrize(("seconds", "runs"), [(-1, 2), (5, 2), (3600, 1)])
async def test_plugin_runs_again_when_its_credentials_expire_soon(tmp_path: Path, seconds: int, runs: int) -> None:
    expiry = (START + timedelta(seconds=seconds)).isoformat()
    plugin = Plugin(tmp_path, printing(token="t", expirationTimestamp=expiry))

    for _ in range(2):
        await plugin.source.get()
    assert plugin.runs == runs


async def test_rejected_credential_is_requested_again_once(tmp_path: Path) -> None:
    first, later = printing(token="t"), printing(token="other")
    plugin = Plugin(tmp_path, f'if [ "$(wc -l < {tmp_path}/runs)" = 1 ]; then {first}; else {later}; fi')

    refused = await plugin.source.get()
    renewed = await asyncio.gather(*[plugin.source.renew(refused) for _ in range(5)])
    assert renewed == [True] * 5
    assert await plugin.source.get() == Credentials("other")
    assert plugin.runs == 2


def test_plugin_can_return_a_client_certificate(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, printing(clientCertificateData="CERT", clientKeyData="KEY"))

    assert asyncio.run(plugin.source.get()) == Credentials("", b"CERT", b"KEY")


def test_plugin_receives_arguments_environment_and_cluster(tmp_path: Path) -> None:
    script = f'printf %s "$1 $STAGE $KUBERNETES_EXEC_INFO" > {tmp_path}/seen\n' + printing(token="t")
    plugin = Plugin(tmp_path, script, args=["a b"], env=[{"name": "STAGE", "value": "prod"}], provideClusterInfo=True)

    asyncio.run(plugin.source.get())

    words, info = (tmp_path / "seen").read_text().split(" {", 1)
    assert words == "a b prod"
    assert json.loads("{" + info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://dev:6443"}},
    }


ERRORS = {
    "exit code": ("exit 3", {}, "./plugin failed with exit code 3"),
    "no JSON": ("echo hello", {}, "./plugin did not print a valid ExecCredential: "),
    "another kind": ("echo '{}'", {}, "./plugin did not print a valid ExecCredential: Object missing required field"),
    "another version": (
        printing(token="t"),
        {"apiVersion": "client.authentication.k8s.io/v1beta1"},
        f"./plugin printed {V1}, but the entry specifies client.authentication.k8s.io/v1beta1",
    ),
    "nothing usable": (printing(clientCertificateData="C"), {}, "did not print a token or a client certificate"),
    "not found": (
        "",
        {"command": "no-such-plugin", "installHint": "Install it by hand."},
        "cannot run no-such-plugin: No such file or directory; Install it by hand.",
    ),
    "no terminal": ("", {"interactiveMode": "Always"}, "./plugin requires an interactive terminal"),
}


@pytest.mark.parametrize(("script", "config", "message"), ERRORS.values(), ids=ERRORS)
def test_plugin_failure_is_reported_in_one_sentence(
    tmp_path: Path, script: str, config: dict[str, Any], message: str
) -> None:
    plugin = Plugin(tmp_path, script, **config)

    with pytest.raises(ConfigError) as caught:
        asyncio.run(plugin.source.get())

    assert str(caught.value).startswith("config: users[dev].user.exec")
    assert message in str(caught.value)


@pytest.mark.parametrize("script", ["exec yes", "yes & exec sleep 1000", "yes"], ids=["itself", "child", "both"])
def test_plugin_that_prints_without_end_is_stopped(tmp_path: Path, script: str) -> None:
    """Without a limit, the output would use all memory, or the plugin would run for 300 seconds."""
    plugin = Plugin(tmp_path, script)

    with pytest.raises(ConfigError, match=r"users\[dev\].user.exec: \./plugin printed more than 1 MiB"):
        asyncio.run(plugin.source.get())


def test_plugin_output_may_be_large(tmp_path: Path) -> None:
    credential = printing(token="t" * 100_000)
    assert asyncio.run(Plugin(tmp_path, credential).source.get()).token == "t" * 100_000


def test_plugin_that_never_exits_is_stopped(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, "exec sleep 1000")

    with pytest.raises(ConfigError, match=r"\./plugin did not print credentials within 300 s"):
        run(plugin.source.get())
