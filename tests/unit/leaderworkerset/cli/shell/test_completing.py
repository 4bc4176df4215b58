"""Names that a shell is offered; and nothing, not even an error, where no cluster answers."""

from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from tests.simulation.virtualtime import run
from tests.unit.kuberuntime.fakes import ScriptedTransport, answer, failure

from kuberuntime.client.client import Client
from leaderworkerset.api import labels
from leaderworkerset.cli import app
from leaderworkerset.cli.cluster.target import Session
from leaderworkerset.cli.shell import completing

CONTEXT = click.Context(app.lws)
PARAMETER = click.Argument(["name"])


def named(*names: str) -> dict[str, object]:
    return {"items": [{"metadata": {"name": name, "namespace": "d"}} for name in names]}


def offered(transport: ScriptedTransport, incomplete: str) -> list[str]:
    session = Session(Client(transport), "d", lambda *_: pytest.fail("no channels"))
    return run(completing._names(session, incomplete))


def test_sets_of_both_kinds_are_offered() -> None:
    transport = ScriptedTransport(answer(200, named("web", "other")), answer(200, named("west")))
    assert offered(transport, "we") == ["web", "west"]
    without = ScriptedTransport(answer(200, named("web")), failure(404, "NotFound"))
    assert offered(without, "") == ["web"]


def test_groups_and_ranks_are_offered_after_a_slash() -> None:
    own = [{labels.GROUP_INDEX: str(group), labels.WORKER_INDEX: str(rank)} for group in (0, 1, 10) for rank in (0, 1)]
    pods = {"items": [{"metadata": {"name": "x", "labels": one}} for one in own]}
    assert offered(ScriptedTransport(answer(200, pods)), "web/1") == ["web/1", "web/10"]
    assert offered(ScriptedTransport(answer(200, pods)), "web/1/") == ["web/1/0", "web/1/1"]


def test_a_cluster_that_is_not_there_offers_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("COMP_WORDS", "lws get --local=none we")
    assert completing.names(CONTEXT, PARAMETER, "we") == []
    monkeypatch.setenv("COMP_WORDS", "lws get 'we")
    assert completing.typed() == []


@pytest.mark.parametrize(
    "name", ["get", "tree", "describe", "events", "explain", "logs", "exec", "scale", "wait", "delete", "restart"]
)
def test_the_names_of_a_command_are_completed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completing, "_names", lambda _session, incomplete: _one(f"{incomplete}b"))
    monkeypatch.setattr("leaderworkerset.cli.cluster.target.Target.session", _no_session)
    found = ShellComplete(app.lws, {}, "lws", "_LWS_COMPLETE").get_completions([name], "we")
    assert [one.value for one in found] == ["web"]


async def _one(name: str) -> list[str]:
    return [name]


class _no_session:  # noqa: N801 - stands for a method
    def __init__(self, _: object = None) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...
