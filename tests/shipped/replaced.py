"""Lists places where tests build, replace or patch a shipped part, and the tests of the original part.

A test that builds a part by itself does not show how the process builds it. `found` reads the tests; its result is listed
in `REPLACED`, or `tests/repository/test_shipped.py` fails.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OURS: Final = ("kuberuntime.", "localkube.", "leaderworkerset.", "lwsctl.")
ASSEMBLY: Final = frozenset(
    {
        "kuberuntime.serving.leaderelection.LeaderElection",
        "leaderworkerset.manager.controllers.Controllers",
        "leaderworkerset.manager.gangdetection.GangDetection",
        "leaderworkerset.manager.leadership.LeaderRunner",
        "leaderworkerset.manager.lwsmanager.controllers",
        "leaderworkerset.manager.lwsmanager.webhooks",
        "leaderworkerset.manager.managerprocess.ManagerProcess",
        "leaderworkerset.manager.metricsserver.MetricsServer",
        "leaderworkerset.manager.probes.Probes",
        "leaderworkerset.manager.webhookserving.Webhooks",
        "leaderworkerset.operator.operatorprocess.OperatorProcess",
        "leaderworkerset.webhooks.rotationloop.Rotation",
        "leaderworkerset.webhooks.server.WebhookServer",
    }
)
"""The parts of processes. A test that calls one of them builds a modified process."""

WORDS: Final = (
    ".setattr(",
    ".setitem(",
    "def request(",
    "def stream(",
    *(part.rpartition(".")[2] + "(" for part in ASSEMBLY),
)
"""Strings in each file that replaces a part, because parsing all files would take seconds."""

TRANSPORT: Final = "transport"
"""A class that responds to requests or modifies requests in place of `HTTPTransport`."""

PATCHED: Final = "patched"
"""A function or constant of this project that a test replaces at run time."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A part, the test that runs the original part, and the test files that replace it."""

    part: str
    shipped: str
    places: tuple[str, ...]


def found(files: Iterable[tuple[str, Path]]) -> set[tuple[str, str]]:
    """Return each replaced part with the name of its file."""
    return {
        (part, name)
        for name, text in ((name, path.read_text()) for name, path in files)
        if any(word in text for word in WORDS)
        for part in _parts(ast.parse(text))
    }


def _parts(tree: ast.Module) -> Iterator[str]:
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and {"request", "stream"} & {getattr(one, "name", "") for one in node.body}:
            yield TRANSPORT
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name, _, attribute = called.partition(".")
            if attribute in {"setattr", "setitem"} and node.args:
                replaced = imported.get(ast.unparse(node.args[0]).partition(".")[0], "")
                if replaced.startswith(OURS):
                    yield PATCHED
            qualified = f"{imported.get(name, '')}{'.' if attribute else ''}{attribute}"
            if qualified in ASSEMBLY:
                yield qualified


CREATED: Final = "kubernetes/shipped/test_matrix.py"
RECORDED: Final = "kubernetes/shipped/test_recorder.py"
SILENCE: Final = "kubernetes/manager/test_silence.py"
HANDED_OVER: Final = "kubernetes/manager/test_handover.py"

REPLACED: Final = (
    Replaced(PATCHED, SILENCE, ("integration/apiserver/test_silence.py",)),
    Replaced(TRANSPORT, SILENCE, ("unit/leaderworkerset/manager/test_leadership.py",)),
    *(
        Replaced(f"leaderworkerset.manager.{part}", SILENCE, ("unit/leaderworkerset/manager/test_leadership.py",))
        for part in ("controllers.Controllers", "leadership.LeaderRunner")
    ),
    Replaced(
        "leaderworkerset.manager.controllers.Controllers",
        CREATED,
        (
            "integration/soak/test_soak.py",
            "simulation/product.py",
            "unit/leaderworkerset/controllers/test_permissions.py",
            "unit/leaderworkerset/controllers/test_stopping.py",
            "unit/leaderworkerset/kinds/test_widget.py",
        ),
    ),
    Replaced(
        "leaderworkerset.manager.lwsmanager.controllers",
        "e2e/test_clusters.py",
        (
            "fuzz/test_cluster.py",
            "integration/clusters/managed.py",
            "integration/clusters/space.py",
            "parity/clusters.py",
            "unit/leaderworkerset/kinds/test_widget.py",
        ),
    ),
    Replaced(
        "leaderworkerset.manager.lwsmanager.webhooks",
        "e2e/test_clusters.py",
        (
            "fuzz/test_cluster.py",
            "integration/clusters/managed.py",
            "parity/clusters.py",
            "unit/leaderworkerset/kinds/test_widget.py",
            "unit/leaderworkerset/manager/test_lwsmanager.py",
        ),
    ),
    Replaced(
        "leaderworkerset.webhooks.server.WebhookServer",
        CREATED,
        ("integration/kueue/conftest.py", "unit/leaderworkerset/webhooks/test_server.py"),
    ),
    Replaced(
        "kuberuntime.serving.leaderelection.LeaderElection",
        HANDED_OVER,
        (
            "simulation/product.py",
            "unit/kuberuntime/client/test_outage.py",
            "unit/kuberuntime/serving/test_leaderelection.py",
        ),
    ),
    Replaced(
        "leaderworkerset.manager.gangdetection.GangDetection",
        "kubernetes/gang/test_gangs.py",
        ("unit/leaderworkerset/manager/test_gangdetection.py",),
    ),
    Replaced(
        "leaderworkerset.webhooks.rotationloop.Rotation",
        "kubernetes/manager/test_certificates.py",
        ("unit/leaderworkerset/webhooks/test_rotationloop.py",),
    ),
    Replaced(
        "leaderworkerset.operator.operatorprocess.OperatorProcess",
        "kubernetes/lwsoperator/test_scenarios.py",
        ("unit/leaderworkerset/operator/test_operatorprocess.py",),
    ),
    Replaced(
        TRANSPORT,
        CREATED,
        (
            "conformance/transcript.py",
            "dashboardhouse.py",
            "fuzz/test_foreigntexts.py",
            "fuzz/test_serving.py",
            "testkit/clusters/recording.py",
            "integration/controllers/test_garbage.py",
            "integration/lwsctl/test_requests.py",
            "parity/clusters.py",
            "permissions.py",
            "simulation/checks/wire.py",
            "simulation/faults.py",
            "simulation/webhooks.py",
            "unit/kuberuntime/client/test_client.py",
            "unit/kuberuntime/controller/test_eventrecorder.py",
            "unit/kuberuntime/controller/test_together.py",
            "testkit/fakes.py",
            "testkit/transports.py",
            "unit/lwsctl/cli/rollouts/test_nodewrites.py",
            "unit/leaderworkerset/controllers/cluster.py",
            "unit/leaderworkerset/controllers/test_fairness.py",
            "unit/leaderworkerset/controllers/test_groupservices.py",
            "unit/leaderworkerset/controllers/test_ignored.py",
            "unit/leaderworkerset/controllers/test_leaderreads.py",
            "unit/leaderworkerset/controllers/test_parentworkloads.py",
            "unit/leaderworkerset/controllers/test_renewal.py",
            "unit/leaderworkerset/controllers/test_stopping.py",
            "unit/leaderworkerset/manager/test_gangdetection.py",
            "unit/leaderworkerset/webhooks/test_rotationloop.py",
        ),
    ),
    Replaced(
        TRANSPORT,
        HANDED_OVER,
        ("unit/kuberuntime/client/test_fence.py", "unit/kuberuntime/serving/test_leaderelection.py"),
    ),
    Replaced(TRANSPORT, "e2e/test_dashboard.py", ("unit/lwsctl/cli/cluster/test_reconnectingtransport.py",)),
    Replaced(
        TRANSPORT,
        "e2e/test_verbs.py",
        (
            "unit/lwsctl/cli/cluster/test_serverwarnings.py",
            "unit/lwsctl/cli/commands/local/test_run.py",
            "unit/lwsctl/cli/commands/test_apply.py",
            "unit/lwsctl/observation/test_diagnosisinput.py",
            "unit/lwsctl/observation/test_logfollower.py",
            "unit/lwsctl/observation/test_setdiagnoses.py",
            "unit/localkube/apiserver/test_server.py",
            "unit/localkube/kubelet/harness.py",
        ),
    ),
    Replaced(
        TRANSPORT,
        "kubernetes/lwsoperator/test_undone_edits.py",
        (
            "unit/leaderworkerset/operator/clusters.py",
            "unit/leaderworkerset/operator/test_abandoned.py",
            "unit/leaderworkerset/operator/test_driftcorrection.py",
        ),
    ),
    Replaced(
        PATCHED,
        "kubernetes/lwsoperator/test_scenarios.py",
        (
            "unit/lwsctl/cli/commands/test_operator.py",
            "unit/leaderworkerset/operator/test_operatorprocess.py",
        ),
    ),
    Replaced(
        PATCHED,
        CREATED,
        ("unit/kuberuntime/manifests/test_yamltext.py", "unit/leaderworkerset/controllers/test_cachedfields.py"),
    ),
    Replaced(
        PATCHED,
        "kubernetes/manager/test_certificates.py",
        ("unit/leaderworkerset/webhooks/test_certificatesubprocess.py",),
    ),
    Replaced(
        PATCHED,
        "integration/lwsctl/test_client.py",
        ("unit/lwsctl/client/test_client.py",),
    ),
    Replaced(
        PATCHED,
        "integration/lwsctl/test_steering.py",
        ("unit/lwsctl/cli/sets/test_causes.py",),
    ),
    Replaced(PATCHED, "e2e/test_clusters.py", ("unit/localkube/apiserver/storage/test_allocator.py",)),
    Replaced(PATCHED, "e2e/test_drain.py", ("integration/lwsctl/test_drain.py",)),
    Replaced(PATCHED, "e2e/test_gpus.py", ("unit/localkube/kubelet/accelerators/test_nvml.py",)),
    Replaced(PATCHED, "integration/sandbox/test_plain.py", ("unit/localkube/kubelet/sandbox/test_plainnames.py",)),
    Replaced(
        "leaderworkerset.manager.controllers.Controllers",
        RECORDED,
        ("unit/leaderworkerset/manager/test_flightrecorder.py",),
    ),
    Replaced(
        TRANSPORT,
        RECORDED,
        (
            "unit/leaderworkerset/manager/test_flightrecorder.py",
            "unit/leaderworkerset/recording/test_configmapstore.py",
            "unit/leaderworkerset/recording/test_logsource.py",
        ),
    ),
    Replaced(
        PATCHED,
        RECORDED,
        (
            "unit/leaderworkerset/recording/test_configmapstore.py",
            "unit/leaderworkerset/recording/test_logsource.py",
        ),
    ),
)
