"""Tests that names are completed without loading command modules, also with cluster options."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.unit.lwsctl.cli.shell.test_completion import SmallApiServer

from lwsctl.cli import app
from lwsctl.cli.commandtable import COMMANDS
from lwsctl.cli.shell import completion, quickcompletion
from lwsctl.cli.shell.quickcompletion import suggestions


@pytest.fixture(name="config")
def _config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "kubeconfig"


@pytest.mark.parametrize(
    "args",
    [
        ["get"], ["nodes"], ["drain"], ["get", "-n"], ["get", "--namespace", "="], ["chaos", "kill"], ["chaos", "drain"],
        ["rollout", "status"], ["cp"], ["-n", "prod", "wait", "other"],
    ],
)  # fmt: skip
def test_names_come_from_the_cluster(args: list[str], config: Path) -> None:
    with SmallApiServer() as server:
        config.write_text(server.kubeconfig)
        assert suggestions([f"--kubeconfig={config}", *args], "we", app.lws) == ["web"]
        assert suggestions([f"--kubeconfig={config}", *args], "x", app.lws) == []


def test_option_with_an_equals_sign_is_completed(config: Path) -> None:
    with SmallApiServer() as server:
        config.write_text(server.kubeconfig)
        assert suggestions([f"--kubeconfig={config}", "get"], "--namespace=w", app.lws) == ["web"]


@pytest.mark.parametrize("args", [["down"], ["up"], ["get", "--local", "="], ["get", "--local"]])
def test_local_clusters_are_completed(args: list[str], config: Path) -> None:
    for name in ("gpus", "other"):
        directory = config.parent / "state" / name
        directory.mkdir(parents=True)
        (directory / "lock").touch()
    incomplete = "--local=gp" if args == ["get", "--local"] else "gp"
    assert suggestions(args[:1] if args == ["get", "--local"] else args, incomplete, app.lws) == ["gpus"]


def test_conditions_of_wait_are_completed() -> None:
    assert suggestions(["wait", "web", "--for"], "re", app.lws) == ["ready", "replicas="]


@pytest.mark.parametrize(
    ("args", "word"),
    [([], "ge"), (["get"], "--o"), (["get", "-o"], "js"), (["run"], "x"), (["exec", "web", "--"], "l")],
)
def test_other_words_are_left_to_click(args: list[str], word: str) -> None:
    assert suggestions(args, word, app.lws) is None


def test_cluster_that_does_not_answer_completes_nothing(config: Path) -> None:
    assert suggestions([f"--kubeconfig={config}", "get"], "we", app.lws) == []


def test_quick_completion_covers_the_commands_of_the_table() -> None:
    """Compare the result with the completion of click for each command."""
    context = click.Context(app.lws)
    found = set()
    for name in COMMANDS:
        command = app.lws.get_command(context, name)
        verbs = command.commands if isinstance(command, click.Group) else {}
        pairs = [(name, command)] if command else []
        pairs += [
            (f"{name} {verb}", one)
            for verb in getattr(command, "table", verbs)
            if isinstance(command, click.Group) and (one := command.get_command(context, verb))
        ]
        found |= {
            title
            for title, one in pairs
            for param in one.params
            if isinstance(param, click.Argument) and param._custom_shell_complete is completion.names
        }
    assert found <= quickcompletion.NAMED
    assert {one for one in quickcompletion.NAMED - found if not one.startswith("chaos")} == {"cp"}


def test_completion_imports_no_module_of_a_command(config: Path) -> None:
    program = (
        "import sys; from lwsctl.cli import app; from lwsctl.cli.shell import quickcompletion as q;"
        f"print(q.suggestions(['--kubeconfig={config}', 'get'], 'we', app.lws));"
        "print([m for m in sys.modules if m.startswith(('aiohttp', 'asyncio', 'lwsctl.diagnosis', 'lwsctl.cli.commands.'))])"
    )
    with SmallApiServer() as server:
        config.write_text(server.kubeconfig)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['web']", "[]"]


@pytest.mark.parametrize(("word", "found"), [("ge", ["get"]), ("--nam", ["--namespace"])])
def test_completion_imports_no_slow_modules(word: str, found: list[str]) -> None:
    """The shell waits for the completion. asyncio, TLS, YAML and the command itself used half of the CPU time."""
    program = (
        "import sys; from lwsctl.cli import app; from lwsctl.cli.shell import quickcompletion as q;"
        "q.register(); from click.shell_completion import get_completion_class as of;"
        f"print([one.value for one in of('bash')(app.lws, {{}}, 'lws', '_X').get_completions([], {word!r})]);"
        "print([m for m in sys.modules if m.startswith(('asyncio', 'http', 'ssl', 'yaml', 'lwsctl.cli.commands.'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(found), "[]"]
