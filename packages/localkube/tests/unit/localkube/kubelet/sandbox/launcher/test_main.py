"""Tests that the launcher process loads few modules, because all its forks contain them."""

import subprocess
import sys

from localkube.kubelet.sandbox.launcherprocess import DIRECTORY

SHARED = {"safeopen", "descriptors", "kernelerrors", "processtree"}


def test_launcher_loads_only_the_standard_library_and_itself() -> None:
    script = (
        "import sys; sys.path.append(sys.argv[1]); import localkube.kubelet.sandbox.launcher.main; print(*sys.modules)"
    )
    command = [sys.executable, "-I", "-S", "-c", script, str(DIRECTORY)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    ours = {name for name in loaded if name.startswith("localkube.") and ".launcher" not in name}
    assert ours == {
        *("localkube.kubelet", "localkube.kubelet.sandbox", "localkube.kubelet.processes"),
        *(f"localkube.kubelet.processes.{name}" for name in SHARED),
    }
    assert {name.partition(".")[0] for name in loaded} - {"localkube", "__main__"} <= sys.stdlib_module_names
    assert not {"asyncio", "logging", "pathlib", "subprocess"} & loaded
