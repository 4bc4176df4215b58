"""Tests that the manifests in docs/how-to/recipes.md become ready in a rehearsal."""

from pathlib import Path
from typing import Final

import pytest
from tests.e2e.harness import ROOT, Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

MANIFESTS: Final = ROOT / "docs/how-to/recipes"
READY: Final = {
    "autoscaled": "2 ranks in 1 group are ready",
    "inference-service": "4 ranks in 2 groups are ready",
    "kueue": "4 ranks in 2 groups are ready",
    "kueue-topology": "4 ranks in 2 groups are ready",
    "llama-cpp": "3 ranks in 1 group are ready",
    "openshift": "2 ranks in 1 group are ready",
    "tensorrt-llm": "2 ranks in 1 group are ready",
    "training-rdma": "4 ranks in 2 groups are ready",
}
"""The last line of the rehearsal, by recipe."""


def test_every_recipe_is_rehearsed_and_documented() -> None:
    assert {path.stem for path in MANIFESTS.iterdir()} == {*READY}
    page = Path(f"{MANIFESTS}.md").read_text()
    assert [name for name in READY if f"(recipes/{name}.yaml)" not in page] == []


@pytest.mark.parametrize("name", READY)
def test_recipe_becomes_ready_in_a_rehearsal(shell: Shell, name: str) -> None:
    words = ["run", "-f", str(MANIFESTS / f"{name}.yaml"), "--nodes", "auto", "--gpus", "auto", "--stub=all"]
    assert shell.lws(*words, "--until", "ready", "--timeout", "80").stderr.splitlines()[-1] == READY[name]
