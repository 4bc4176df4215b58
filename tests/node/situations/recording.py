"""Records the objects that diagnoses of situations on real nodes read. Unit tests replay these objects.

    LWS_SITUATIONS=DIRECTORY make test-node ARGS="-k causes_are_true"
    python -m tests.node.situations.recording DIRECTORY

The variable makes the tests write a file for each situation, the command puts these into one archive.
"""

import json
import lzma
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from testkit.repository import ROOT
from tests.node.api import Api
from tests.node.product import NAMESPACE
from tests.node.situations.situation import Situation

from kuberuntime.objects.meta import JSONObject

VARIABLE: Final = "LWS_SITUATIONS"
ARCHIVE: Final = ROOT / "packages" / "lwsctl" / "tests" / "vectors" / "situations.json.xz"

LISTS: Final = {
    **{
        kind: f"api/v1/namespaces/{{}}/{kind}"
        for kind in ("pods", "events", "services", "persistentvolumeclaims", "resourcequotas", "limitranges")
    },
    **{kind: f"apis/apps/v1/namespaces/{{}}/{kind}" for kind in ("statefulsets", "controllerrevisions")},
    "nodes": "api/v1/nodes",
    "storageclasses": "apis/storage.k8s.io/v1/storageclasses",
    "deployments": f"apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "leases": f"apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
}
"""The lists that diagnoses read, with their paths. A replay forbids all other lists."""


def record(api: Api, namespace: str, name: str, situation: Situation) -> None:
    """Write the objects of a situation if recording is requested and the file does not exist."""
    directory = os.environ.get(VARIABLE)
    file = Path(directory or "") / f"{name}.json"
    if directory is None or file.exists():
        return
    path = f"apis/leaderworkerset.x-k8s.io/v1/namespaces/{namespace}/leaderworkersets/{name}"
    content = {
        "name": name,
        "time": datetime.now(UTC).isoformat(),
        "codes": sorted(situation.codes),
        "words": situation.words,
        "verdicts": sorted(situation.verdicts),
        "never": situation.never,
        "object": brief(api.read(path)),
        "lists": {
            kind: [brief(one) for one in api.read(place.format(namespace))["items"]] for kind, place in LISTS.items()
        },
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def brief(obj: JSONObject) -> JSONObject:
    """Return an object without its managed fields."""
    own: dict[str, Any] = obj["metadata"]
    fields = [{key: one[key] for key in one if key != "fieldsV1"} for one in own.get("managedFields") or []]
    return {**obj, "metadata": {**own, "managedFields": fields}}


def archive(directory: Path) -> None:
    """Add all files in a directory to the archive."""
    found = [json.loads(file.read_text()) for file in sorted(directory.glob("*.json"))]
    ARCHIVE.write_bytes(lzma.compress(json.dumps(found, sort_keys=True).encode(), preset=9))


if __name__ == "__main__":
    archive(Path(sys.argv[1]))
