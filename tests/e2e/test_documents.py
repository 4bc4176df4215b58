"""Tests that commands in the README and on how-to pages have the documented result.

`test_examples.py` tests the examples.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from testkit.repository import PACKAGES
from tests.e2e.harness import ROOT, Shell
from tests.e2e.pages import commands, follow, missing

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

PAGES = {
    "README.md": "8 ranks in 2 groups exited with code 0",
    "docs/how-to/first-steps.md": "web rolled back to revision 1",
    "docs/how-to/run-your-program.md": "Cluster default is running",
    "docs/how-to/meet.md": "rendezvous: rank 1 reached leader after",
    "docs/how-to/rehearse.md": "There are no active faults.",
    "docs/how-to/frameworks.md": "2 ranks in 1 group are ready",
    "docs/how-to/recipes.md": "3 ranks in 1 group are ready",
    "docs/how-to/disaggregated-sets.md": "disaggregated is ready",
    "docs/how-to/roll-out-and-back.md": "web group 1 restarted",
    "docs/how-to/why-does-a-group-not-start.md": "crashing is crashing (LWS-E071): ",
    "docs/how-to/python-client.md": "left: []",
    "docs/how-to/see-what-runs.md": "copied 1 file from 1 rank",
    "docs/how-to/dashboard.md": "The dashboard is available to one browser at http://127.0.0.1:",
    "examples/kuberuntime/README.md": "Cluster default is running",
}
"""The pages, with the expected output of a successful run."""

ELSEWHERE = {
    "docs/how-to/install.md": "needs a cluster and a registry: what it installs is tested in tests/repository/deploy",
    "docs/how-to/upgrade.md": "needs a cluster: tests/kubernetes/install/test_versions.py does what it says",
    "docs/how-to/change-the-installer.md": "needs a cluster: tests/kubernetes/install/test_change_of_installer.py runs it",
    "docs/how-to/uninstall.md": "needs a cluster: tests/kubernetes/install/test_install.py runs it",
    "docs/how-to/pod-admission.md": "needs a cluster: tests/kubernetes/admission does what it says",
    "docs/how-to/operator.md": "needs a cluster: each step is tested in tests/kubernetes/lwsoperator",
    "docs/how-to/helm.md": "needs Helm and a cluster: what it renders is tested in tests/kubernetes/programs",
    "docs/how-to/alerts.md": "needs a cluster with Prometheus; each alert is tested in tests/kubernetes/programs",
    "docs/how-to/autoscaling.md": "needs kubectl: tests/kubernetes/kubectl/test_pages.py runs it",
    "docs/how-to/extend.md": "has no commands",
    "docs/how-to/restarts.md": "speaks of kubectl: packages/leaderworkerset/tests/integration/lws: test_budget.py, test_restart_bounds.py do what it says",
    "docs/how-to/places-and-ends.md": "packages/leaderworkerset/tests/integration/lws: test_ends.py, test_places.py and test_scaling.py do what it says",
    "docs/how-to/gang-scheduling.md": "needs a manager on a cluster; what it says is tested in tests/integration: gang, ganggate, kueue",
    "docs/how-to/kueue.md": "has no commands: tests/kubernetes/kueuemanager does what it says",
    "docs/how-to/groups-with-random-keys.md": "its keys differ each time: tests/e2e/test_keyed_groups.py does what it says",
    "docs/how-to/share-a-cluster.md": "has no commands: its objects are applied in tests/kubernetes/manager/test_hostile.py",
    "docs/how-to/progress.md": "its sets hang for minutes: tests/e2e/test_progress.py and packages/lwsctl/tests/integration/lwsctl/test_completion.py do what it says",
    "docs/how-to/what-happened.md": "speaks of a set that failed: tests/e2e/test_history.py does what it says",
    "docs/how-to/neighbours.md": "speaks of other tools: what they are given is tested in tests/repository/deploy/test_health.py",
    "docs/how-to/verify.md": "needs a published release: builds and offline installations are tested in tests/e2e/test_wheels.py",
    "docs/how-to/operate.md": "needs a manager on a cluster",
    "docs/how-to/when-the-manager-is-away.md": "needs a manager on a cluster: packages/leaderworkerset/tests/integration/lws/test_deletion.py deletes without one",
    "docs/how-to/in-place.md": "needs a manager on a cluster: test_inplace.py and test_restart_in_place.py in packages/leaderworkerset/tests/integration/lws do what it says",
    "docs/how-to/backup.md": "needs a cluster: tests/kubernetes/manager/test_etcd.py and tests/repository/docs/test_operations.py do what it says",
    "docs/how-to/ports.md": "needs a cluster and a firewall; its facts are tested in tests/repository/docs/test_operations.py",
    "docs/how-to/sizing.md": "needs a cluster; its numbers are compared in tests/repository/docs/test_operations.py",
    "docs/how-to/upgrade-with-olm.md": "needs a cluster: tests/kubernetes/lwsoperator/test_with_olm.py does what it says",
    "docs/how-to/run-on-your-gpus.md": "needs GPUs: tests/e2e/test_gpus.py does what it says with a driver that is played",
    "docs/how-to/drain.md": "needs a manager with further rights: tests/kubernetes/shipped: test_moves.py and test_disruption.py do what it says",
}
"""The pages whose commands cannot run in this test, with the reasons."""

OTHERS = {
    "CONTRIBUTING.md": "its commands run the tests",
    "docs/reference/differences.md": "needs a cluster with the Go manager: tests/parity hands fleets over",
    "docs/explanation/performance.md": "runs the benchmarks, for minutes",
    "docs/explanation/performance-of-the-manager.md": "runs the benchmarks, for minutes",
    "docs/explanation/security-limits.md": "runs the fuzzers for longer",
    "docs/reference/causes.md": "is generated; its command is that of docs/how-to/why-does-a-group-not-start.md",
    "docs/reference/conformance.md": "its commands run the tests",
    "docs/reference/simulation.md": "its commands run the simulation for longer",
    "docs/adr/0044-plain-english.md": "its command draws a sample of texts",
    "examples/localkube/README.md": "tests/e2e/test_packages_alone.py runs it",
    "examples/api/README.md": "tests/e2e/test_api_examples.py runs it",
} | dict.fromkeys(
    (
        f"examples/{name}/README.md"
        for name in ("allreduce", "disaggregated", "jax-data-parallel", "router", "tensor-parallel", "torch-ddp")
    ),
    "tests/e2e/test_examples.py runs it",
)
"""The pages whose commands run in other tests, with these tests."""


CONCEPTS = "docs/concepts/"
"""The directory that contains the pages for `test_concepts.py`."""


def test_every_page_is_tried_or_exempt() -> None:
    pages = {"README.md", *(str(page.relative_to(ROOT)) for page in (ROOT / "docs/how-to").glob("*.md"))}
    assert pages == {page for page in {*PAGES, *ELSEWHERE} if not page.startswith("examples/")}


def test_every_page_with_commands_is_run_or_listed() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *(page for name in ("docs", "examples", "bench") for page in (ROOT / name).rglob("*.md")),
    ]
    found = {str(page.relative_to(ROOT)) for page in pages if list(commands(str(page.relative_to(ROOT))))}
    assert {page for page in found if not page.startswith(CONCEPTS)} <= {*PAGES, *ELSEWHERE, *OTHERS}
    assert set(OTHERS) <= found


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_have_the_documented_result(shell: Shell, page: str) -> None:
    """Without a kubeconfig, a command for the reader's own cluster would fail."""
    if page == "docs/how-to/frameworks.md" and not find_spec("jax"):
        pytest.skip("jax is not installed: `make nightly` does; tests/e2e/test_frameworks.py runs the other commands")
    assert "KUBECONFIG" not in shell.environment
    printed = follow(shell, page)
    assert PAGES[page] in printed
    assert missing(page, printed) == []


@pytest.mark.parametrize("target", ["setup", "demo", "dev"])
def test_make_installs_only_what_users_need(target: str) -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", target, "VENV=.none"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "requirements/local.lock" in planned
    assert ("requirements/dev.lock" in planned) == (target == "dev")
    assert "Installing what running needs" in planned
    assert ("Starting a cluster" in planned) == (target == "demo")


def test_demo_runs_from_a_fresh_clone(shell: Shell, tmp_path: Path) -> None:
    """A clone of the committed files, and an empty home directory. Packages come from the test environment.

    `-o` keeps make from creating that environment again, and PYTHONPATH selects the code of the clone.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone: there is nothing to clone")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(clone)], check=True)
    environment = Path(sys.prefix)
    inside = Shell(
        shell.base,
        {**shell.environment, "PYTHONPATH": ":".join(str(clone / "packages" / name / "src") for name in PACKAGES)},
        clone,
    )
    result = inside.run(["make", "demo", f"VENV={environment}", "-o", f"{environment}/.runs"])
    assert result.stdout.count("all-reduce verified: 3 rounds over 4 ranks") == 8
    assert result.stderr.splitlines()[-1] == "8 ranks in 2 groups exited with code 0"
    assert list(Path(shell.environment["HOME"]).iterdir()) == []
    inside.assert_nothing_is_left()
