"""The output of `lws up` works when it is typed."""

import subprocess
from pathlib import Path

from leaderworkerset.cli.cluster.places import ClusterDirectory
from leaderworkerset.cli.commands.local.up import invitation


def test_kubeconfig_line_is_quoted_for_shells(tmp_path: Path) -> None:
    directory = tmp_path / "it's a; $(touch hostile) home" / "default"
    line = invitation(ClusterDirectory("default", directory))[-1]
    script = f'{line}; printf %s "$KUBECONFIG"'
    result = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == str(directory / "kubeconfig")
    assert list(tmp_path.iterdir()) == []
