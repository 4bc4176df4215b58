"""Tests that the examples of `kuberuntime` and `localkube` work, and are independent of LeaderWorkerSets."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.e2e.harness import ROOT

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import select_one
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, NAMESPACES
from localkube.testing import temporary

pytestmark = pytest.mark.slow

EXAMPLES = ("kuberuntime", "localkube")
LIMIT = 60.0


@asynccontextmanager
async def running(program: str, kubeconfig: Path) -> AsyncIterator[None]:
    """Run an example in the background."""
    process = await asyncio.create_subprocess_exec(sys.executable, program, str(kubeconfig), cwd=ROOT)
    try:
        yield
        assert process.returncode is None, f"{program} ended by itself"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def seen(client: Client, key: ObjectKey, is_awaited: Callable[[JSONObject], bool]) -> JSONObject:
    """Watch a ConfigMap until the condition is true. Return the ConfigMap."""
    informer = Informer(client, select_one(CONFIG_MAPS, key))
    found: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()

    def note(change: Change) -> None:
        if change.new is not None and is_awaited(change.new) and not found.done():
            found.set_result(change.new)

    informer.subscribe(note)
    watching = asyncio.create_task(informer.run())
    try:
        return await found
    finally:
        watching.cancel()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_does_not_mention_the_product(name: str) -> None:
    programs = list((ROOT / "examples" / name).glob("*.py"))
    assert programs
    assert not [path for path in programs if "leaderworkerset" in path.read_text()]


def test_tests_of_the_localkube_example_pass() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/localkube"]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


def test_kuberuntime_example_keeps_namespace_defaults() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"team": "blue"}}}
    key = ObjectKey("ml", "defaults")

    async def scenario() -> None:
        async with temporary() as server, running("examples/kuberuntime/defaults.py", server.kubeconfig):
            client = server.client()
            await client.create(NAMESPACES, namespace)
            first = await seen(client, key, lambda _: True)
            assert first["data"] == {"team": "blue"}
            await client.delete(CONFIG_MAPS, key)
            again = await seen(client, key, lambda found: meta.uid(found) != meta.uid(first))
            assert again["data"] == {"team": "blue"}

    asyncio.run(asyncio.wait_for(scenario(), LIMIT))
