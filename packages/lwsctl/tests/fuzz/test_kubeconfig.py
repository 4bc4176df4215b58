"""Tests random kubeconfigs, environments and options. The command exits with a code and one message.

Nothing leaves this machine: servers and proxies are local ports on which nobody listens. `SEEDS=10000 pytest
packages/lwsctl/tests/fuzz` tries more than `make test` does. A failure names its seed, and `SEED=…` repeats
it.
"""

import base64
import gc
import os
import re
import resource
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog
import yaml

from lwsctl.cli import app

SEEDS = int(os.environ.get("SEEDS", "60"))
ONLY = os.environ.get("SEED")
SECONDS = 10.0
"""The CPU time of one command. The first command also imports all modules."""

MEMORY = 256 * 2**20
SECRET = "s3cret-bearer"
CONTROL = re.compile(r"[^\n\t -~\xa0-\U0010ffff]")

pytestmark = pytest.mark.slow

ODD = (
    "", " ", "a b", "\n", "a\nb", "\r\n", "\x1b[2J", "\x00", "\a", "ü", "😀", "\u202e", "%2e%2e", "..", ".", "/", "../../x", "a" * 300,
    "~", "~nobody-at-all/x", "-", "--", "%", "\\", "'", '"', "{", "a" * 5000, "[::1", "http://[", "null", "0", "-1",
)  # fmt: skip
SERVERS = (
    "https://127.0.0.1:1", "http://127.0.0.1:1", "https://localhost:1", "http://[::1]:1", "https://127.0.0.1:1/a/b", "https://[::1",
    "https://127.0.0.1:99999", "https://127.0.0.1:0", "https://127.0.0.1:x", "https://", "http://192.0.2.1", "ftp://127.0.0.1",
    f"https://me:{SECRET}@127.0.0.1:1", "https://127.0.0.1:1?a=b", "https://127.0.0.1:1#x", "https://127.0.0.1 :1", "//127.0.0.1:1",
    "HTTPS://127.0.0.1:1", "https:127.0.0.1:1",
)  # fmt: skip
PROXIES = (
    "http://127.0.0.1:1", f"http://me:{SECRET}@127.0.0.1:1", f"socks5://me:{SECRET}@127.0.0.1:1", f"me:{SECRET}@127.0.0.1:1",
    f"http://me:{SECRET}@[::1", f"https://me:{SECRET}@127.0.0.1:1", "127.0.0.1:1", "http://", f"http://me:{SECRET}@127.0.0.1:x",
)  # fmt: skip
TOKENS = (SECRET, f"{SECRET}\nx", f"{SECRET}ü", f"{SECRET} x", f"{SECRET}\x00", f"\x1b{SECRET}", SECRET + "x" * 100_000)
DATA = (base64.b64encode(b"not a certificate").decode(), "%%%", "ü", "YQ", base64.b64encode(b"\xff\x00").decode())
PLUGINS: tuple[dict[str, Any], ...] = (
    {"command": "true"},
    {"command": "false"},
    {"command": ""},
    {"command": "no-such-program-anywhere", "installHint": "install\x1b it"},
    {"command": "echo", "args": ["{}"]},
    {"command": "echo", "args": ["a\x00b"]},
    {"command": "echo", "env": [{"name": "A=B", "value": SECRET}]},
    {"command": "printf", "args": ['{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"a b"}}']},
    {"command": "printf", "args": ['{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t","expirationTimestamp":"2020-01-01T00:00:00"}}']},
    {"command": "echo", "args": ["[" * 5000]},
    {"command": "sh", "args": ["-c", "exit 3"], "interactiveMode": "Always"},
)  # fmt: skip


def seeds() -> Iterator[int]:
    if ONLY is not None:
        yield int(ONLY)
        return
    yield from range(1, SEEDS + 1)


def chosen(source: Random, usual: Any, odd: tuple[Any, ...], chance: float = 0.25) -> Any:
    """Return the default value in most cases."""
    return source.choice(odd) if source.random() < chance else usual


def values(source: Random) -> Any:
    return source.choice([*ODD, None, 3, 1.5, True, [], {}, ["a"], {"a": 1}])


def cluster(source: Random) -> dict[str, Any]:
    optional = {
        "certificate-authority": source.choice([*ODD, "/dev/null", "/", "/etc/shadow/x", "config"]),
        "certificate-authority-data": source.choice(DATA),
        "insecure-skip-tls-verify": source.choice([True, False, "yes"]),
        "tls-server-name": source.choice(ODD),
        "proxy-url": source.choice(PROXIES),
    }
    own = {name: value for name, value in optional.items() if source.random() < 0.15}
    return {"server": chosen(source, source.choice(SERVERS[:3]), (*SERVERS, *ODD)), **own}


def user(source: Random) -> dict[str, Any]:
    version = chosen(source, "client.authentication.k8s.io/v1", ("", "v1", "\n"), 0.1)
    optional = {
        "token": source.choice(TOKENS),
        "tokenFile": source.choice([*ODD, "/dev/null", "/", "config"]),
        "client-certificate-data": source.choice(DATA),
        "client-key-data": source.choice(DATA),
        "client-key": source.choice(ODD),
        "username": source.choice(ODD),
        "exec": {"apiVersion": version, **source.choice(PLUGINS)},
    }
    return {name: value for name, value in optional.items() if source.random() < 0.2}


def config(source: Random) -> str:
    """Write a kubeconfig that contains some unusual values."""
    name = chosen(source, "dev", ODD, 0.1)
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": "u", "namespace": chosen(source, "default", ODD)}}
        ],
        "clusters": [{"name": "c", "cluster": cluster(source)}],
        "users": [{"name": "u", "user": user(source)}],
    }
    if source.random() < 0.2:
        document[source.choice([*document, "x"])] = values(source)
    text: str = yaml.safe_dump(document)
    for _ in range(source.choice([0, 0, 0, 1, 3])):
        place = source.randrange(len(text))
        text = text[:place] + source.choice(ODD) + text[place + source.randrange(5) :]
    return text


def environment(source: Random, path: Path, state: Path) -> dict[str, str]:
    """Return environment variables for the command line, with some unusual values."""
    odd = tuple(word for word in ODD if "\x00" not in word)
    variables = {
        "KUBECONFIG": chosen(source, str(path), (*odd, f"{path}:/nowhere", "/", f"{path}/x", ":::")),
        "HOME": chosen(source, str(state), ("", "/nowhere", "~", "\x1b"), 0.1),
        "LWS_STATE_HOME": chosen(source, str(state), (str(path), f"{path}/x", "/proc/1/x", str(state / "\x1b")), 0.2),
        "NO_PROXY": chosen(source, "", odd, 0.1),
        "https_proxy": chosen(source, "", PROXIES, 0.2),
        "KUBERNETES_SERVICE_HOST": chosen(source, "", odd, 0.05),
        "KUBERNETES_SERVICE_PORT": chosen(source, "443", odd, 0.2),
    }
    return {name: value for name, value in variables.items() if value}


def words(source: Random, path: Path) -> list[str]:
    """Return a read-only command line, which does not change the selected cluster."""
    name = chosen(source, "web", ODD)
    commands = (
        ["get"], ["get", name], ["get", "-o", chosen(source, "json", ODD)], ["get", "-l", chosen(source, "a=b", ODD)],
        ["logs", name, "--since", chosen(source, "5m", ODD)], ["logs", name, "--tail", chosen(source, "5", ODD)],
        ["exec", name, "--", "true"], ["port-forward", name, chosen(source, "0:80", ODD)], ["scale", name, "--replicas", chosen(source, "3", ODD)],
        ["wait", name, "--for", chosen(source, "ready", (*ODD, "condition=", "replicas=٣")), "--timeout", chosen(source, "1", ODD)],
        ["apply", "-f", chosen(source, str(path), (*ODD, "/", "/proc/1/mem"))], ["delete", name, "--timeout", chosen(source, "1", ODD)],
        ["delete", "-f", str(path)], ["down", chosen(source, "demo", ODD)], ["get", f"--local={chosen(source, 'demo', ODD)}"],
        ["uninstall"], ["install", "--image", "x"], ["install", "--image", "x", "--config", str(path)],
        ["manager", "--config", chosen(source, "/nowhere", ODD)], ["completion", chosen(source, "bash", ODD)], [chosen(source, "version", ODD)],
        ["run", "-f", chosen(source, str(path), ODD)], ["up", "--node-label", chosen(source, "a", ODD[1:])], ["up", "--image", source.choice(ODD)],
    )  # fmt: skip
    options: tuple[list[str], ...] = (
        [], [], [], ["-n", chosen(source, "default", ODD)], ["--context", chosen(source, "dev", ODD)],
        ["--kubeconfig", chosen(source, str(path), (*ODD, "/", "/proc/1/mem", f"{path}/x"))], [source.choice(ODD)],
    )  # fmt: skip
    return [*source.choice(commands), *source.choice(options)]


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in os.environ:
        if name.lower().endswith("_proxy") or name.startswith(("KUBE", "LWS_", "XDG_")):
            monkeypatch.delenv(name)
    return monkeypatch


def complaint(code: int, out: str, err: str) -> str:
    """Return the error in the output or the exit code of a command, or an empty string if there is none."""
    if "Traceback" in err + out:
        return "a traceback"
    if SECRET in err + out:
        return "a secret is shown"
    if CONTROL.search(err):
        return "control characters are shown"
    if code and not err.strip():
        return "an error without a message"
    return "" if code in {0, 1, 2, 124} else f"exit code {code}"


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """Commands write logs to the stream of one test, and the next test has a different stream."""
    yield
    structlog.reset_defaults()


def test_every_command_line_exits_with_a_code_and_a_message(
    tmp_path: Path, variables: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, state = tmp_path / "config", tmp_path / "state"
    state.mkdir()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    failures: list[str] = []
    for seed in seeds():
        source = Random(seed)
        path.write_text(config(source), encoding="utf-8", errors="surrogatepass")
        line = words(source, path)
        started = time.process_time()
        with variables.context() as changes:
            for name, value in environment(source, path, state).items():
                changes.setenv(name, value)
            try:
                code = app.run(line)
            except Exception:  # noqa: BLE001 - what nobody expected is what this looks for
                failures.append(f"SEED={seed}: {line}: {traceback.format_exc(limit=-4)}")
                continue
        told = capsys.readouterr()
        if wrong := complaint(code, told.out, told.err):
            failures.append(f"SEED={seed}: {line}: {wrong}: {code}: {told.err!r}")
        if time.process_time() - started > SECONDS:
            failures.append(f"SEED={seed}: {line}: took {time.process_time() - started} s")
        if left := list(state.rglob("run-*")):
            failures.append(f"SEED={seed}: {line}: left {left}")
    assert not failures, "\n".join(failures)
    gc.collect()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY, f"{grown >> 20} MiB"
