"""Tests that the bill of materials lists exactly the pinned packages in the lock."""

import importlib.metadata
import json
import re

import pytest
from deploy.packages import sbom
from testkit.repository import ROOT

import leaderworkerset

LOCK = (ROOT / "requirements/runtime.lock").read_text()
BILL = sbom.build(LOCK, leaderworkerset.__version__)
ROOT_REFERENCE = BILL["metadata"]["component"]["bom-ref"]


def graph() -> dict[str, list[str]]:
    return {one["ref"]: one["dependsOn"] for one in BILL["dependencies"]}


def test_every_pin_is_a_component() -> None:
    """The bill of materials contains the locked packages (R-OP-78)."""
    pinned = {tuple(one.split("==")) for one in re.findall(r"^([\w.-]+==[\w.]+)", LOCK, re.MULTILINE)}
    found = {(one["name"], one["version"]) for one in BILL["components"]}
    assert found == pinned | {("kuberuntime", leaderworkerset.__version__)}


def test_every_hash_of_the_lock_is_listed() -> None:
    """The image is installed with these hashes, so it contains a file with one of them."""
    found = [digest["content"] for one in BILL["components"] for digest in one.get("hashes", [])]
    assert sorted(found) == sorted(re.findall(r"sha256:([0-9a-f]{64})", LOCK))
    pinned = [one for one in BILL["components"] if one["purl"].startswith("pkg:pypi/")]
    assert all(one["hashes"] for one in pinned)


def test_every_component_exists_and_is_required() -> None:
    """References resolve, and each component is a dependency of the product."""
    known = [ROOT_REFERENCE, *(one["bom-ref"] for one in BILL["components"])]
    assert len(known) == len(set(known))
    assert set(graph()) == set(known)
    reached, ahead = set[str](), [ROOT_REFERENCE]
    while ahead:
        one = ahead.pop()
        if one not in reached:
            reached.add(one)
            ahead += graph()[one]
    assert reached == set(known)


def test_dependencies_agree_with_the_installed_packages() -> None:
    """A dependency in the bill of materials is a requirement that the installed package declares."""
    by_name = {reference: re.split(r"[/@]", reference)[1] for reference in graph()}
    for reference, needs in graph().items():
        name = by_name[reference]
        if name not in {"leaderworkerset", "kuberuntime"} and needs:
            declared = {re.split(r"[ ;<>=!~\[(]", one)[0].lower() for one in importlib.metadata.requires(name) or []}
            assert {by_name[one] for one in needs} <= {one.replace("_", "-") for one in declared}, name


def test_platform_specific_package_is_optional() -> None:
    scopes = {one["name"]: one["scope"] for one in BILL["components"] if "scope" in one}
    assert (scopes["aiohttp"], scopes["cffi"]) == ("required", "optional")


@pytest.mark.parametrize("line", ["click>=8 \\", "    --hash=md5:00", "-r other.txt", "    # via"])
def test_malformed_line_is_rejected(line: str) -> None:
    """An ignored pin would be missing in the bill of materials."""
    text = f"aiohttp==3 \\\n{line}\n"
    if line.strip() == "# via":
        assert [one.name for one in sbom.read(text)] == ["aiohttp"]
    else:
        with pytest.raises(sbom.LockError, match="line 2 of the lock"):
            sbom.read(text)


def test_file_equals_the_bill() -> None:
    assert json.loads((ROOT / "deploy/sbom.cdx.json").read_text()) == BILL
