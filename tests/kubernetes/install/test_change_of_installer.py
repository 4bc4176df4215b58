"""Tests for each pair of installation methods that one method takes over from the other while groups run."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit import repository
from tests.integration.clusters import objects
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.install.served import IN, kubeconfig_of, may_listen, served
from tests.kubernetes.lwsoperator.conftest import IMAGE, OperatorRun
from tests.kubernetes.programs.build import HELM

from leaderworkerset.api.metadata import MANAGER
from leaderworkerset.install.installsettings import NAMESPACE
from leaderworkerset.install.operatornames import OPERATOR
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks.configurations import MUTATING_NAME, SECRET_NAME, SERVICE_NAME, VALIDATING_NAME

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HELM.find() is None, reason=HELM.missing),
    pytest.mark.skipif(not may_listen(), reason="this user may not listen at port 443"),
]

ROOT = repository.ROOT
GROUPS = "groups"
INSTALL, MANIFESTS, KUSTOMIZE, CHART, OPERATED = INSTALLERS = (
    *("lws install", "manifests.yaml", "kustomize", "Helm"),
    "the operator",
)
TOUR = (
    *(INSTALL, MANIFESTS, INSTALL, KUSTOMIZE, INSTALL, CHART, MANIFESTS, KUSTOMIZE, MANIFESTS),
    *(CHART, KUSTOMIZE, CHART, INSTALL),
    *(OPERATED, MANIFESTS, OPERATED, KUSTOMIZE, OPERATED, CHART, OPERATED, INSTALL),
)
"""All ordered pairs of installation methods."""

WEBHOOKS = (f"mutatingwebhookconfiguration/{MUTATING_NAME}", f"validatingwebhookconfiguration/{VALIDATING_NAME}")
KEPT = (
    *(f"crd/{kind.group_resource}" for kind in MANAGED.custom_resources),
    *(f"deployment/{MANAGER}", f"service/{SERVICE_NAME}", f"secret/{SECRET_NAME}"),
    *WEBHOOKS,
)


def page() -> tuple[dict[str, str], dict[str, str], str]:
    """Return the commands that install and remove each installation, and the command that removes the operator."""
    text = (ROOT / "docs/how-to/change-the-installer.md").read_text().replace("deploy/", f"{ROOT}/deploy/")
    section = text.partition("## Change the installer")[2].partition("\n## ")[0]
    take, leave, remove = re.findall(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    lines, leaving = (
        {name: line for line, name in re.findall(r"^(.*?) +# ([^,\n]+)", block, re.MULTILINE)}
        for block in (take.replace("\\\n", ""), leave)
    )
    return lines, leaving, remove.replace("\\\n", "")


def run(administrator: Administrator, line: str) -> None:
    """Run a line in which the second command reads the output of the first command."""
    first, _, second = line.partition(" | ")
    program, *rest = first.split()
    said = {"lws": administrator.lws, "kubectl": administrator.kubectl, "helm": administrator.helm}[program](*rest)
    if second:
        administrator.kubectl(*second.split()[1:], objects=yaml.safe_load_all(said))


@contextmanager
def operator(administrator: Administrator, directory: Path) -> Iterator[None]:
    """Install the operator into the installation's namespace with an overlay, and run it as a process."""
    overlay = {"resources": ["leaderworkerset/deploy/operator"], "namespace": NAMESPACE}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    (directory / "leaderworkerset").symlink_to(ROOT)
    administrator.kubectl("apply", "--server-side", "-k", str(directory))
    kubeconfig = kubeconfig_of(administrator, OPERATOR)
    running = OperatorRun(kubeconfig, directory / "operator.log", IMAGE, namespace=NAMESPACE)
    try:
        yield
    finally:
        running.stop()


def create_set(administrator: Administrator, name: str) -> None:
    """Create a LeaderWorkerSet, and wait until its groups are ready."""
    administrator.kubectl("create", *("-n", GROUPS), "-f", "-", objects=[objects.lws(name, replicas=2, size=2)])
    words = ("-n", GROUPS, f"lws/{name}", "--for=condition=Available", "--timeout=60s")
    administrator.kubectl("wait", *words)


def groups(administrator: Administrator) -> dict[str, tuple[str, str]]:
    """Return the objects of groups with their resource versions (R-OP-44)."""
    listed = administrator.there("lws,statefulsets,services,controllerrevisions,pods", "-n", GROUPS)["items"]
    return {
        f"{obj['kind']}/{obj['metadata']['name']}": (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])
        for obj in listed
    }


def kept(administrator: Administrator) -> dict[str, Any]:
    """Return the fields that each migration must preserve: identities, certificates, and webhook addresses."""
    found = {obj["metadata"]["name"]: obj for obj in administrator.there(*KEPT, *IN)["items"]}
    service = found[SERVICE_NAME]["spec"]
    return {
        "identities": {name: obj["metadata"]["uid"] for name, obj in found.items()},
        "secret": found[SECRET_NAME]["data"],
        "service": (service["selector"], service["ports"], service["clusterIP"]),
        "webhooks": [
            hook["clientConfig"] for name in (MUTATING_NAME, VALIDATING_NAME) for hook in found[name]["webhooks"]
        ],
    }


def test_tour_contains_every_pair_of_installers() -> None:
    assert len(set(pairwise(TOUR))) == len(TOUR) - 1 == len(INSTALLERS) * (len(INSTALLERS) - 1)


def test_each_installer_takes_over_from_each_other(fresh: Administrator, tmp_path: Path) -> None:
    """No object is deleted, no write is rejected, and no group is changed (R-OP-44, R-OP-50, R-OP-56)."""
    commands, leaving, remove = page()
    assert commands.keys() == set(INSTALLERS)
    run(fresh, commands[TOUR[0]])
    fresh.await_kind()
    fresh.kubectl("create", "namespace", GROUPS)
    with served(fresh, "live") as writes, operator(fresh, tmp_path):
        create_set(fresh, "before")
        before, whole = kept(fresh), groups(fresh)
        for former, now in pairwise(TOUR):
            if former == OPERATED:
                run(fresh, leaving[OPERATED])
            run(fresh, commands[now])
            if now == OPERATED:
                fresh.kubectl("wait", "--for=condition=Available", "lwsop/cluster", "--timeout=60s")
            if former == CHART:
                run(fresh, leaving[CHART])
            assert kept(fresh) == before, (former, now)
        run(fresh, remove)
        assert fresh.helm("list", *IN, "-q") == ""
        assert (kept(fresh), groups(fresh)) == (before, whole)
        create_set(fresh, "after")
    assert (writes.refused, writes.admitted > len(TOUR)) == ([], True)
    fresh.kubectl("delete", "namespace", GROUPS, "--wait=false")
