"""What a cluster does when its machine runs out of files or of space: it says so, stays, and goes on afterwards."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.e2e.harness import LWS, SLEEP, Cluster, Shell, facts, is_whole, lws, ranks, shell_script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

MOUNT = """
mount -t tmpfs -o size=12m tmpfs "$1"
exec sleep 600
"""


def limited(shell: Shell, limit: int, *words: str) -> None:
    """Run `lws` with so many open files as the hard limit."""
    shell.run(["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *LWS, *words])


def test_pods_beyond_the_open_files_say_so_and_the_others_run(shell: Shell) -> None:
    limited(shell, 160, "up", "files", "--detach")
    cluster = Cluster(shell, "files")
    cluster.apply(lws("many", SLEEP, replicas=10, size=4))
    told = cluster.until("many", lambda view: any("too many open files" in why for why in facts(view, "why").values()))
    assert len(ranks(told)) > 0
    cluster.lws("scale", "many", "--replicas=1")
    cluster.until("many", is_whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Sequence[str]]:
    """The words before a command that see a file system of 12 MiB at the place for clusters' state."""
    if shutil.which("nsenter") is None:
        pytest.skip("nsenter is not installed")
    state = tmp_path / "state"
    state.mkdir()
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", MOUNT, "sh", str(state)]
    with subprocess.Popen(words) as holder:
        yield ["nsenter", "--preserve-credentials", "--user", "--mount", f"--target={holder.pid}"]
        holder.kill()
