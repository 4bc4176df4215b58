"""Provides the cluster for all scenarios, which `python -m tests.node` or this session runs."""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.node import prerequisites, product, programs
from tests.node.cluster import NodeCluster, attach, cluster
from tests.node.place import Place
from tests.node.prerequisites import AbsentError

HERE = Path(__file__).parent
VARIABLE = "LWS_NODE_CLUSTER"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip these tests unless they are selected by path or tier, because they require root and take minutes."""
    if config.getoption("tier") == "node":
        return None
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path == HERE or HERE in path.parents for path in named) else True


@pytest.fixture(scope="session")
def nodes() -> Iterator[NodeCluster]:
    """Return a cluster of two nodes on which the product is installed."""
    if directory := os.environ.get(VARIABLE):
        yield attach(Path(directory))
        return
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.exit("each process would start a cluster: run `python -m tests.node`, or set LWS_NODE_CLUSTER")
    if reason := prerequisites.obstacle():
        pytest.skip(reason)
    with ExitStack() as stack:
        try:
            running = stack.enter_context(cluster(programs.say))
        except AbsentError as error:
            pytest.skip(str(error))
        product.install(running)
        yield running


@pytest.fixture
def place(nodes: NodeCluster) -> Iterator[Place]:
    """Return a separate namespace for this test."""
    with namespace(nodes) as place:
        yield place


@contextmanager
def namespace(nodes: NodeCluster) -> Iterator[Place]:
    """Create a namespace, and remove it when the context exits."""
    name = f"t-{secrets.token_hex(4)}"
    nodes.kubectl("create", "namespace", name)
    yield Place(nodes, name)
    nodes.kubectl("delete", "namespace", name, "--wait=false")
    # Otherwise, a later `lws drain` would wait for the grace period of pods that ignore SIGTERM.
    nodes.kubectl("delete", "pods", "--all", "--namespace", name, "--force", "--grace-period=0", "--wait=false")
