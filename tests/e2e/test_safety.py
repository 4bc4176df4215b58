"""Tests that only the owner of the kubeconfig can use a running cluster.

Other users, web pages, and guessed tokens are rejected.
"""

import http.client
import json
import os
import re
import shutil
import signal
import ssl
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from tests.e2e.harness import LocalCluster, Shell, lws, shell_script
from tests.e2e.test_dashboard import Browser

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

SETS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"


class Door:
    """Sends requests to the API server of a cluster."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.path = cluster.shell.state / cluster.name / "kubeconfig"
        config = yaml.safe_load(self.path.read_text())
        address = urlsplit(config["clusters"][0]["cluster"]["server"])
        self.host, self.port = address.hostname or "", address.port or 0
        self.token: str = config["users"][0]["user"]["token"]
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    def knock(self, method: str = "GET", path: str = SETS, **headers: str) -> int:
        """Send a request, and return the response status."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=10, context=self._context)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body="{}" if method == "POST" else None, headers=named)
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture
def door(cluster: LocalCluster) -> Door:
    """The methods of accessing the shared cluster."""
    return Door(cluster)


def test_holder_of_the_token_is_admitted(door: Door) -> None:
    assert door.knock(authorization=f"Bearer {door.token}") == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic YWRtaW46YWRtaW4="}, 401),
        ({"authorization": "{token}", "host": "attacker.example"}, 403),
        ({"authorization": "{token}", "origin": "https://attacker.example"}, 403),
        ({"authorization": "{token}", "origin": "null"}, 403),
    ],
    ids=["no token", "wrong token", "password", "DNS rebinding", "other origin", "sandboxed page"],
)
def test_requests_without_the_token_are_rejected(door: Door, headers: dict[str, str], status: int) -> None:
    assert door.knock(**{key: value.format(token=f"Bearer {door.token}") for key, value in headers.items()}) == status


def test_web_page_cannot_post(door: Door) -> None:
    assert door.knock("POST", content_type="text/plain") == 401
    assert door.knock("POST", content_type="text/plain", origin="https://attacker.example") in {401, 403}
    assert door.knock("OPTIONS", origin="https://attacker.example", access_control_request_method="POST") in {401, 403}


def test_every_path_requires_a_token(door: Door) -> None:
    paths = ("/", "/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", "/api/v1/secrets", "/metrics", SETS)
    assert {path: door.knock(path=path) for path in paths} == dict.fromkeys(paths, 401)


def test_server_listens_only_on_loopback(door: Door) -> None:
    assert door.host == "127.0.0.1"
    listening = "0A"
    sockets = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()
    ]
    own = {words[1] for words in sockets if words[1].endswith(f":{door.port:04X}") and words[3] == listening}
    assert own == {f"0100007F:{door.port:04X}"}


def test_credentials_are_readable_by_their_owner_only(cluster: LocalCluster, door: Door) -> None:
    kept = {path.name: stat.S_IMODE(path.stat().st_mode) for path in door.path.parent.iterdir()}
    assert kept["kubeconfig"] == kept["identity.json"] == 0o600
    assert stat.S_IMODE(door.path.parent.stat().st_mode) == 0o700
    if os.getuid() == 0 and shutil.which("setpriv"):
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", str(door.path)]
        other = subprocess.run(words, capture_output=True, text=True, check=False)
        assert other.returncode == 1
        assert "Permission denied" in other.stderr


def test_token_and_certificate_survive_a_restart(shell: Shell) -> None:
    tokens = set()
    for _ in range(2):
        shell.lws("up", "--detach")
        tokens.add((shell.state / "default" / "kubeconfig").read_bytes())
        shell.lws("down")
    assert len(tokens) == 1


OWN_MODULES = (
    "aiohttp",
    "click",
    "cryptography",
    "kuberuntime",
    "leaderworkerset",
    "localkube",
    "msgspec",
    "structlog",
    "yaml",
)


@pytest.fixture
def hostile(shell: Shell, tmp_path: Path) -> Shell:
    """A shell in a directory that contains a module for each name that `lws` imports.

    Each module writes a file when it is imported.
    """
    directory = tmp_path / "hostile"
    directory.mkdir()
    for name in (*sys.stdlib_module_names, *OWN_MODULES):
        code = f"open({str(directory / 'ran')!r}, 'a').write({name!r} + chr(10))\n"
        (directory / f"{name}.py").write_text(code)
    return replace(shell, directory=directory)


def test_no_child_imports_from_the_working_directory(hostile: Shell) -> None:
    """Commands start through their console script. `python -m` would import modules from the working directory."""
    manifest = hostile.directory / "web.json"
    manifest.write_text(json.dumps(lws("web", shell_script("echo hello; sleep 3600"))))
    hostile.run(["lws", "run", str(manifest), "--until", "ready"])
    hostile.run(["lws", "up", "--detach"])
    try:
        hostile.run(["lws", "--local", "apply", "-f", str(manifest)])
        hostile.run(["lws", "--local", "wait", "web", "--for", "ready"])
        for words in (["exec", "web/0", "--", "true"], ["logs", "web/0"], ["history", "web"], ["doctor"]):
            hostile.run(["lws", "--local", *words], code=None)
        dashboard = subprocess.Popen(
            ["lws", "--local", "dashboard", "--no-browser", "--allow-actions"],
            env=hostile.environment, cwd=hostile.directory, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        try:
            browser = Browser(dashboard)
            token = re.findall('data-action="([^"]+)"', browser.text("sets/default/web"))[0]
            own = {"X-Dashboard-Token": token, "Origin": f"http://{browser.host}"}
            asked = {"verb": "scale", "namespace": "default", "name": "web", "groups": "2", "confirmed": True}
            done = json.loads(browser.ask("POST", "act", json.dumps(asked), **own).text)
            assert done["text"] == "web scaled from 1 to 2 groups\n"
        finally:
            dashboard.send_signal(signal.SIGINT)
            dashboard.communicate(timeout=60)
    finally:
        hostile.run(["lws", "down"])
    assert not (hostile.directory / "ran").exists()
