"""The command line as a user types it: a process of its own, with a state directory and a home of its own."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LWS = [sys.executable, "-m", "leaderworkerset.cli"]
SECONDS = 90


@dataclass(frozen=True)
class Shell:
    """Runs `lws` and other programs in the repository, with one environment."""

    environment: Mapping[str, str]
    directory: Path = ROOT

    def lws(self, *words: str, code: int = 0, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run `lws` to its end; it must end with `code`."""
        return self.run([*LWS, *words], code=code, text=text)

    def run(self, words: list[str], *, code: int = 0, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; it must end with `code`."""
        result = subprocess.run(
            words,
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            input=text,
            check=False,
        )
        assert result.returncode == code, f"{words} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}"
        return result

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start `lws` and return it running."""
        return subprocess.Popen(
            [*LWS, *words],
            env=self.environment,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell of a user who has never used `lws`; clusters that are left running are stopped."""
    home = tmp_path / "home"
    home.mkdir()
    scripts = sysconfig.get_path("scripts")
    kept = {name: value for name, value in os.environ.items() if name not in {"KUBECONFIG", "LWS_STATE_HOME"}}
    environment = kept | {
        "HOME": str(home),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "LWS_TEST_MARK": str(tmp_path),
    }
    shell = Shell(environment)
    yield shell
    state = tmp_path / "state" / "lws"
    for place in state.iterdir() if state.exists() else ():
        shell.lws("down", place.name, "--delete")
