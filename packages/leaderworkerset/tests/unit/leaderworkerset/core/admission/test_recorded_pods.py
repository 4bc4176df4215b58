"""Tests admission with pods that the Go manager admitted.

`vectors/pod-admission.json` contains each observed combination of features.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from leaderworkerset.core.admission.pod import admit_pod

RECORDED = json.loads((Path(__file__).parents[4] / "vectors" / "pod-admission.json").read_text())


def as_recorded(pod: dict[str, Any]) -> dict[str, Any]:
    """Keep the recorded fields of a container, without the variable that the Go manager does not inject."""
    fields = {
        field: [
            {
                "name": container["name"],
                "env": [entry for entry in container["env"] if entry["name"] != "LWS_GROUP_INDEX"],
            }
            for container in pod["spec"][field]
        ]
        for field in ("containers", "initContainers")
        if field in pod["spec"]
    }
    return pod | {"spec": pod["spec"] | fields}


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: record["pod"]["metadata"]["name"])
def test_admitted_pod_equals_the_recorded_one(record: dict[str, Any]) -> None:
    """The admitted pod equals the recorded pod (R-ADM-4 to R-ADM-15, R-ENV-1 to R-ENV-4, R-TPU-1 to R-TPU-5)."""
    assert as_recorded(admit_pod(record["pod"])) == record["admitted"]
