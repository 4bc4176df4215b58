"""Tests upgrades and downgrades with running groups, by `lws install` and by Helm."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.install.conftest import DEFINITION, Administrator
from tests.kubernetes.install.served import IN, may_listen, served
from tests.kubernetes.install.test_change_of_installer import (
    CHART,
    GROUPS,
    ROOT,
    create_set,
    groups,
    kept,
    page,
    run,
)
from tests.kubernetes.programs.build import HELM

from leaderworkerset.api.metadata import MANAGER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HELM.find() is None, reason=HELM.missing),
    pytest.mark.skipif(not may_listen(), reason="this user may not listen at port 443"),
]

BUDGET = f"poddisruptionbudget/{MANAGER}"
OLDER, NEWER = "registry.example.com/lws:older", "registry.example.com/lws:newer"


def older_chart(directory: Path) -> Path:
    """Return the chart of an earlier version, which does not contain a new object."""
    chart = directory / "lws"
    shutil.copytree(ROOT / "deploy/helm/lws", chart)
    (chart / "templates/poddisruptionbudget-controller-manager.yaml").unlink()
    identity = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump(identity | {"version": "0.0.9"}))
    return chart


def older_definition() -> dict[str, Any]:
    """Return the CRD of an earlier version, which has no printer columns."""
    definition: dict[str, Any] = yaml.safe_load((ROOT / "deploy/crds/leaderworkersets.yaml").read_text())
    del definition["spec"]["versions"][0]["additionalPrinterColumns"]
    return definition


def image(administrator: Administrator) -> str:
    deployment = administrator.there(f"deployment/{MANAGER}", *IN)
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def chosen(name: str) -> str:
    repository, _, tag = name.rpartition(":")
    return f"--set=image.manager.repository={repository},image.manager.tag={tag}"


def test_groups_survive_an_upgrade_and_a_downgrade(fresh: Administrator, tmp_path: Path) -> None:
    """CRDs, objects and images change. No group is written, and no other write is rejected (R-OP-39, R-OP-44)."""
    fresh.lws("install", "--image", OLDER)
    fresh.await_kind()
    fresh.kubectl("create", "namespace", GROUPS)
    with served(fresh, "live") as writes:
        create_set(fresh, "before")
        whole = groups(fresh)
        change(fresh, older_chart(tmp_path), kept(fresh))
        assert groups(fresh) == whole
        create_set(fresh, "after")
    assert (writes.refused, writes.admitted > 0) == ([], True)
    fresh.kubectl("delete", "namespace", GROUPS, "--wait=false")


def change(administrator: Administrator, older: Path, before: dict[str, Any]) -> None:
    """Upgrade to the newer version and downgrade, with both methods."""
    define = ("apply", "--server-side", "--force-conflicts", "--field-manager=lws-install", "-f", "-")
    administrator.kubectl(*define, objects=[older_definition()])
    administrator.lws("install", "--image", NEWER)
    assert (image(administrator), kept(administrator)) == (NEWER, before)
    administrator.lws("install", "--image", OLDER)
    administrator.kubectl(*define, objects=[older_definition()])
    assert "additionalPrinterColumns" not in administrator.there(f"crd/{DEFINITION}")["spec"]["versions"][0]
    assert (image(administrator), kept(administrator)) == (OLDER, before)

    administrator.kubectl("delete", BUDGET, *IN)
    administrator.helm("install", "lws", str(older), *IN, "--take-ownership", chosen(OLDER))
    administrator.helm("upgrade", "lws", str(ROOT / "deploy/helm/lws"), *IN, chosen(NEWER))
    assert administrator.get(BUDGET, *IN) is not None
    assert (image(administrator), kept(administrator)) == (NEWER, before)
    run(administrator, rollback())
    assert administrator.get(BUDGET, *IN) is None
    assert (image(administrator), kept(administrator)) == (OLDER, before)
    run(administrator, page()[1][CHART])


def rollback() -> str:
    """Return the command on the page that rolls back a release."""
    section = (ROOT / "docs/how-to/upgrade.md").read_text().partition("## Downgrade")[2]
    return section[section.index("helm rollback") :].partition("`")[0]
