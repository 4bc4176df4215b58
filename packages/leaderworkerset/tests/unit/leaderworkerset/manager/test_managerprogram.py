"""Tests the imports of the commands in the image, and their messages about flags."""

import subprocess
import sys
from typing import Final

import pytest
from testkit.repository import ROOT

MODULES: Final = {"manager": 305, "lws-operator": 317}
"""The maximum number of imported project modules. Each module needs about 50 KiB of memory."""

WORDS: Final = {"manager": ["--kubeconfig=/absent"], "lws-operator": ["operator", "--kubeconfig=/absent"]}

PROCESS: Final = {"manager": "manager.managerprocess", "lws-operator": "operator.operatorprocess"}

SCRIPT: Final = """
import atexit, runpy, sys
def list_modules():
    from aiohttp import connector
    print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"], *sys.modules)
atexit.register(list_modules)
path, *sys.argv[1:] = sys.argv[1:]
runpy.run_path(path, run_name="__main__")
"""


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the image with the Python interpreter of this process."""
    path = str(ROOT / "deploy" / program)
    return subprocess.run(
        [sys.executable, "-I", "-c", SCRIPT, path, *words], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("program", WORDS)
def test_program_imports_nothing_of_the_command(program: str) -> None:
    ended = run(program, *WORDS[program])
    assert (ended.returncode, "problem running" in ended.stderr) == (1, True), ended.stderr
    read, *names = ended.stdout.split()
    assert f"leaderworkerset.{PROCESS[program]}" in names
    assert read == "0"
    roots = [name.partition(".")[0] for name in names]
    assert not {*roots} & {"lwsctl", "localkube", "click", "rich", "pygments", "sqlite3", "jsonpatch", "cryptography"}
    assert "leaderworkerset.decisions" not in names
    assert roots.count("leaderworkerset") + roots.count("kuberuntime") <= MODULES[program]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words", "code", "text"),
    [
        ("manager", ["--help"], 0, "--leader-elect-lease-duration (default 15s)"),
        ("manager", ["-version"], 0, "Git Commit: "),
        ("manager", ["--nope"], 2, "error: flag provided but not defined: -nope"),
        ("lws-operator", ["operator", "-h"], 0, "--terminate-on-files"),
        ("lws-operator", ["operator", "-v=loud"], 2, 'error: invalid value "loud" for flag -v'),
        ("lws-operator", [], 1, "usage: lws-operator operator [flags]"),
    ],
)
def test_program_explains_its_flags(program: str, words: list[str], code: int, text: str) -> None:
    ended = run(program, *words)
    assert (ended.returncode, text in ended.stdout + ended.stderr) == (code, True), ended.stderr
