"""Tests that the process of a cluster collects garbage only after the cluster has started."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from lwsctl.cli.process import garbagecollection

MANIFEST = Path("examples/allreduce/lws.yaml")

AT_AIOHTTP = """
import gc, ssl, sys
from lwsctl.cli.app import run

class Watcher:
    def find_spec(self, name, path=None, target=None):
        if name == "aiohttp":
            print(gc.isenabled(), "set_default_verify_paths" in vars(ssl.SSLContext))
            raise OSError("far enough")

sys.meta_path.insert(0, Watcher())
code = run({words})
print(code, gc.isenabled())
"""


class Knot:
    """Garbage that only the garbage collector can free."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_not_collected_during_the_start() -> None:
    with garbagecollection.disable_collection():
        before = gc.isenabled()
        with garbagecollection.exclude_existing_objects(lasting=False):
            during = (gc.isenabled(), gc.get_freeze_count() > 0)
        after = gc.isenabled()
    assert (before, during, after, gc.isenabled()) == (False, (True, True), False, True)


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.slow
def test_garbage_of_the_start_is_collected_afterwards(lasting: bool) -> None:
    with garbagecollection.disable_collection():
        garbage = weakref.ref(Knot())
        with garbagecollection.exclude_existing_objects(lasting=lasting):
            assert (garbage() is None) == lasting


@pytest.mark.parametrize("words", [["run", "-f", str(MANIFEST)], ["up", "unstarted"]], ids=["run", "up"])
@pytest.mark.slow
def test_cluster_starts_without_collection_and_certificates(words: list[str], tmp_path: Path) -> None:
    """The import of aiohttp fails, so that no cluster is started."""
    result = subprocess.run(
        [sys.executable, "-c", AT_AIOHTTP.format(words=words)],
        env={"LWS_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.splitlines() == ["False True", "1 True"], result.stderr
