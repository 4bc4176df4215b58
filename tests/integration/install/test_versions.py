"""The way to a newer version and back under live groups: by `lws install` and by Helm."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.install.conftest import DEFINITION, Administrator
from tests.integration.install.test_change_of_installer import (
    CHART,
    GROUPS,
    IN,
    ROOT,
    create_set,
    groups,
    kept,
    manager,
    page,
    run,
)
from tests.packages.build import HELM

from leaderworkerset.install.metadata import MANAGER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(HELM.find() is None, reason=HELM.missing)]

BUDGET = f"poddisruptionbudget/{MANAGER}"
OLDER, NEWER = "registry.example.com/lws:older", "registry.example.com/lws:newer"


def older_chart(directory: Path) -> Path:
    """Return a chart as an earlier version may have had it: without an object that is new."""
    chart = directory / "lws"
    shutil.copytree(ROOT / "deploy/helm/lws", chart)
    (chart / "templates/poddisruptionbudget-controller-manager.yaml").unlink()
    identity = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump(identity | {"version": "0.0.9"}))
    return chart


def older_definition() -> dict[str, Any]:
    """Return a definition as an earlier version may have had it: without columns."""
    definition: dict[str, Any] = yaml.safe_load((ROOT / "deploy/crds/leaderworkersets.yaml").read_text())
    del definition["spec"]["versions"][0]["additionalPrinterColumns"]
    return definition


def image(administrator: Administrator) -> str:
    deployment = administrator.there(f"deployment/{MANAGER}", *IN)
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def chosen(name: str) -> str:
    repository, _, tag = name.rpartition(":")
    return f"--set=image.manager.repository={repository},image.manager.tag={tag}"


def test_groups_outlive_a_newer_version_and_the_way_back(fresh: Administrator, tmp_path: Path) -> None:
    """R-OP-39, R-OP-44: definitions, objects and images change; nothing of a group is written or restarted."""
    older = older_chart(tmp_path)
    fresh.lws("install", "--image", OLDER)
    fresh.await_kind()
    fresh.kubectl("create", "namespace", GROUPS)
    with manager(fresh, "first"):
        create_set(fresh, "before")
    before = kept(fresh)
    define = ("apply", "--server-side", "--force-conflicts", "--field-manager=lws-install", "-f", "-")
    fresh.kubectl(*define, objects=[older_definition()])
    assert kept(fresh) == before

    fresh.lws("install", "--image", NEWER)
    assert (image(fresh), kept(fresh)) == (NEWER, before)
    fresh.lws("install", "--image", OLDER)
    fresh.kubectl(*define, objects=[older_definition()])
    assert "additionalPrinterColumns" not in fresh.there(f"crd/{DEFINITION}")["spec"]["versions"][0]
    assert (image(fresh), kept(fresh)) == (OLDER, before)

    fresh.kubectl("delete", BUDGET, *IN)
    fresh.helm("install", "lws", str(older), *IN, "--take-ownership", chosen(OLDER))
    fresh.helm("upgrade", "lws", str(ROOT / "deploy/helm/lws"), *IN, chosen(NEWER))
    assert fresh.get(BUDGET, *IN) is not None
    assert (image(fresh), kept(fresh)) == (NEWER, before)
    run(fresh, rollback())
    assert fresh.get(BUDGET, *IN) is None
    assert (image(fresh), kept(fresh)) == (OLDER, before)
    run(fresh, page()[1][CHART])
    with manager(fresh, "last"):
        create_set(fresh, "after")
        assert groups(fresh).items() >= before["groups"].items()
    fresh.kubectl("delete", "namespace", GROUPS, "--wait=false")


def rollback() -> str:
    """Return the command of the page that takes a release back."""
    section = (ROOT / "docs/how-to/install.md").read_text().partition("## Upgrade, and go back")[2]
    return section[section.index("helm rollback") :].partition("`")[0]
