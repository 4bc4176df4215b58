"""Tests that commands which start a cluster fail immediately on other systems, with an alternative."""

import subprocess
import sys

import pytest
from testkit import otherplatform

from lwsctl.cli.commandtable import COMMANDS, Needs
from lwsctl.cli.shell import hostplatform

IMPORTS = """
import sys
from testkit import otherplatform
otherplatform.simulate(sys.argv[1])
from importlib import import_module
from lwsctl.cli.commandtable import COMMANDS
for name in sys.argv[2:]:
    import_module(COMMANDS[name].place[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("platform", otherplatform.ABSENT)
@pytest.mark.parametrize("command", [name for name, entry in COMMANDS.items() if Needs.MACHINE in entry.needs])
def test_cluster_is_rejected_with_commands_that_work(platform: str, command: str) -> None:
    words = [*otherplatform.LWS, platform, command, "-f", "my lws.yaml"]
    result = subprocess.run(words, capture_output=True, text=True, check=False)

    program = {"darwin": "lima", "win32": "wsl"}[platform]
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert f"podman run --rm -it -v .:/work {hostplatform.IMAGE} {command} -f 'my lws.yaml'`" in result.stderr
    assert f"`{program} lws {command} -f 'my lws.yaml'`" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("platform", otherplatform.ABSENT)
def test_commands_for_clusters_are_imported_elsewhere(platform: str) -> None:
    names = [name for name, entry in COMMANDS.items() if Needs.MACHINE not in entry.needs and name != "chaos"]
    result = subprocess.run(
        [sys.executable, "-c", IMPORTS, platform, *names], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
