"""Tests shell completion of names. If no cluster responds, there are no names and no error."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

import click
import pytest
from click.shell_completion import ShellComplete
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.client import Client
from leaderworkerset.api import labels
from lwsctl.cli import app
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.shell import completion

CONTEXT = click.Context(app.lws)
POLL_SECONDS = 0.01
"""The polling interval of the server's shutdown. With the default, each test would wait for half a second."""

PARAMETER = click.Argument(["name"])


def named(*names: str) -> dict[str, object]:
    return {"items": [{"metadata": {"name": name, "namespace": "d"}} for name in names]}


def offered(transport: ScriptedTransport, incomplete: str) -> list[str]:
    session = Session(Client(transport), "d", lambda *_: pytest.fail("no channels"))
    return run(completion._names(session, incomplete))


def test_sets_of_both_kinds_are_completed() -> None:
    transport = ScriptedTransport(respond(200, named("web", "other")), respond(200, named("west")))
    assert offered(transport, "we") == ["web", "west"]
    without = ScriptedTransport(respond(200, named("web")), failure(404, "NotFound"))
    assert offered(without, "") == ["web"]


def test_groups_and_ranks_are_completed_after_a_slash() -> None:
    own = [{labels.GROUP_INDEX: str(group), labels.WORKER_INDEX: str(rank)} for group in (0, 1, 10) for rank in (0, 1)]
    pods = {"items": [{"metadata": {"name": "x", "labels": one}} for one in own]}
    assert offered(ScriptedTransport(respond(200, pods)), "web/1") == ["web/1", "web/10"]
    assert offered(ScriptedTransport(respond(200, pods)), "web/1/") == ["web/1/0", "web/1/1"]


def test_unreachable_cluster_completes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("COMP_WORDS", "lws get --local=none we")
    assert completion.names(CONTEXT, PARAMETER, "we") == []
    monkeypatch.setenv("COMP_WORDS", "lws get 'we")
    assert completion.typed_words() == []


@pytest.mark.parametrize(
    "name", ["get", "tree", "describe", "events", "explain", "logs", "exec", "scale", "wait", "delete", "restart"]
)
def test_names_of_a_command_are_completed(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with SmallApiServer() as server:
        config = tmp_path / "kubeconfig"
        config.write_text(server.kubeconfig)
        monkeypatch.setenv("COMP_WORDS", f"lws --kubeconfig={config} {name} we")
        found = ShellComplete(app.lws, {}, "lws", "_LWS_COMPLETE").get_completions([name], "we")
    assert [one.value for one in found] == ["web"]


class SmallApiServer:
    """Returns one object named web for each list."""

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), OneName)
        Thread(target=self._server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def kubeconfig(self) -> str:
        """Return the path."""
        cluster = {"name": "small", "cluster": {"server": f"http://127.0.0.1:{self._server.server_port}"}}
        context = {"name": "small", "context": {"cluster": "small", "user": "small"}}
        users = [{"name": "small", "user": {}}]
        return json.dumps({"clusters": [cluster], "contexts": [context], "users": users, "current-context": "small"})


class OneName(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(named("web")).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...
