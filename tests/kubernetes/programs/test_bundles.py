"""Tests that the Operator Framework reads and validates the bundles."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from testkit.repository import ROOT
from tests.kubernetes.programs import build

VERIFY = build.OPERATOR_VERIFY.find()
FOLDER = ROOT / "deploy/olm"
VERSION = "manifests/lws-operator.clusterserviceversion.yaml"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(VERIFY is None, reason=build.OPERATOR_VERIFY.missing)]


EXPLAINED = (
    # Permissions contain an API group without a version. Therefore, this validator warns about each rule for such a
    # kind.
    r"this bundle is using APIs which were deprecated and removed in v1\.25\..*StrategySpec\.\w*[pP]ermissions",
    # This validator still covers the checks of both of its successors.
    r'The \\"operatorhub\\" validator is deprecated',
)
"""Warnings that do not apply to a bundle."""


def findings(folder: Path) -> str:
    """Return errors and warnings, including the results of the OperatorHub validators."""
    words = [str(VERIFY), "manifests", "--operatorhub_validate", "--object_validate", str(folder)]
    lines = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60).stderr.splitlines()
    return "\n".join(line for line in lines if not any(re.search(warning, line) for warning in EXPLAINED))


@pytest.mark.parametrize("package", ["leader-worker-set", "lws-operator"])
def test_bundle_has_neither_errors_nor_warnings(package: str) -> None:
    """The validators of the Operator Framework accept the bundle (R-OP-36, R-OP-69)."""
    assert findings(FOLDER / package) == ""


@pytest.mark.parametrize(
    ("good", "bad", "finding"),
    [
        ("Do not edit.\n", "Do not edit.\n---\n", "unable to find a csv"),
        ("displayName: Leader Worker Set Operator (lws)", "maturity2: x", "Spec.DisplayName"),
        ("capabilities: Seamless Upgrades", "capabilities: Everything", "Everything"),
    ],
    ids=["a first document without an object", "a field that is missing", "a value that is not known"],
)
def test_wrong_bundle_is_detected(tmp_path: Path, good: str, bad: str, finding: str) -> None:
    """An invalid bundle must fail the check."""
    shutil.copytree(FOLDER / "lws-operator", tmp_path / "bundle")
    file = tmp_path / "bundle" / VERSION
    assert good in file.read_text()
    file.write_text(file.read_text().replace(good, bad, 1))
    assert finding in findings(tmp_path / "bundle")
