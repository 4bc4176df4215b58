"""Tests `lws doctor` on a real control plane with several faults in the installation."""

import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.install.conftest import Administrator

from leaderworkerset.api import metadata
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.configurations import MUTATING_NAME, VALIDATING_NAME

pytestmark = pytest.mark.slow

IN = ("-n", "lws-system")


def report(administrator: Administrator, code: int, *words: str) -> dict[str, dict[str, Any]]:
    """Return the findings that are not OK, by code. The command must exit with `code`."""
    typed = [sys.executable, "-m", "lwsctl.cli", "doctor", "--no-machine", "-o", "json", *words]
    result = administrator._run(typed, {}, None)
    assert result.returncode == code, result.stdout + result.stderr
    found = json.loads(result.stdout)
    assert found["healthy"] == (code == 0)
    return {one["code"]: one for one in found["findings"] if one["level"] != "ok"}


def test_missing_and_broken_parts_are_named(fresh: Administrator) -> None:
    missing = report(fresh, 1)
    assert {"LWS-D202", "LWS-D302", "LWS-D502", "LWS-D512"} <= missing.keys()
    assert missing["LWS-D202"]["fix"] == "run `lws install`"

    fresh.install()
    fresh.await_kind()
    installed = report(fresh, 1)
    assert not {"LWS-D202", "LWS-D302", "LWS-D502"} & installed.keys()
    assert "LWS-D303" in installed  # no manager has run, and therefore the CA bundle is empty
    assert "failed calling webhook" in installed["LWS-D305"]["text"]

    stale = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": metadata.LEASE, "namespace": "lws-system"},
        "spec": {
            "holderIdentity": "lws-controller-manager-0",
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }
    fresh.kubectl("create", "-f", "-", objects=[stale])
    ended = certificates.create_authority(datetime.now(UTC) - timedelta(days=30), validity=timedelta(days=1))
    bundle = base64.b64encode(ended.certificate).decode()
    for name in (MUTATING_NAME, VALIDATING_NAME):
        kind = name.removeprefix("lws-").replace("-", "")
        hooks = fresh.there(f"{kind}/{name}")["webhooks"]
        patch = [
            {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": bundle} for at in range(len(hooks))
        ]
        fresh.kubectl("patch", kind, name, "--type=json", "-p", json.dumps(patch))
    broken = report(fresh, 1)
    assert "of lws-controller-manager-0 has not been renewed" in broken["LWS-D514"]["text"]
    assert "expired at" in broken["LWS-D402"]["text"]
    assert "LWS-D303" not in broken

    older = [
        {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/networkConfig"}
    ]
    fresh.kubectl("patch", "crd", "leaderworkersets.leaderworkerset.x-k8s.io", "--type=json", "-p", json.dumps(older))
    assert "it does not have the field spec.networkConfig" in report(fresh, 1)["LWS-D204"]["text"]
    fresh.lws("install")
    assert "LWS-D204" not in report(fresh, 1)


def test_missing_permissions_of_a_user_are_named(fresh: Administrator, tmp_path: Path) -> None:
    fresh.install()
    fresh.await_kind()
    fresh.kubectl("create", "serviceaccount", "looker", "-n", "default")
    config = yaml.safe_load(fresh.plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": fresh.kubectl("create", "token", "looker", "-n", "default").strip()}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    try:
        found = report(fresh, 0, f"--kubeconfig={path}")
    finally:
        fresh.kubectl("delete", "serviceaccount", "looker", "-n", "default")
    assert "you are not permitted to get leaderworkersets" in found["LWS-D602"]["text"]
    assert {"LWS-D201", "LWS-D301", "LWS-D306", "LWS-D511"} <= found.keys()
