"""Runs all commands on both clusters without real containers. Steps that require containers are skipped."""

import asyncio
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.integration.clusters.space import LiveScenario
from tests.verbs import Step, script

from lwsctl.cli import app

pytestmark = pytest.mark.slow


async def test_verbs_of_the_script_have_their_effects(space: LiveScenario, tmp_path: Path) -> None:
    for step in script(tmp_path):
        if not step.needs_kubelet:
            step.check(*await asyncio.to_thread(typed, space, step))


def typed(space: LiveScenario, step: Step) -> tuple[int, str]:
    """Run one step in a separate event loop, next to the test's managers. Return its exit code and output."""
    where = ["--kubeconfig", str(space.cluster.kubeconfig), "--namespace", space.namespace]
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = app.run([*where, *step.words])
    return code, printed.getvalue()
