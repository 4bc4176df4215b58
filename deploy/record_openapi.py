"""Records the part of an API server's OpenAPI document that the full CRD requires.

kubectl get --raw /openapi/v3/api/v1 | python deploy/record_openapi.py

In: the document, on standard input. Out: `deploy/openapi/core-v1.json`. A new field of a newer Kubernetes is also
missing in the field tables (`gotypes/kubernetes.json` of the runtime, `api/gotypes.json` of the product): then
`packages/leaderworkerset/tests/unit/leaderworkerset/api/test_openapi.py` fails.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api.descriptions import ROOTS

RECORDED = Path(__file__).parent / "openapi" / "core-v1.json"
PREFIX = "#/components/schemas/"


def reachable(document: JSONObject) -> JSONObject:
    """Return the document with only the definitions to which `ROOTS` refer, directly or indirectly."""
    definitions = document["components"]["schemas"]
    names: set[str] = set()
    queue = list(ROOTS)
    while queue:
        name = queue.pop()
        if name not in names:
            names.add(name)
            queue += references(definitions[name])
    schemas = {name: definitions[name] for name in sorted(names)}
    return {"openapi": document["openapi"], "info": document["info"], "components": {"schemas": schemas}}


def references(value: JSON) -> Iterator[str]:
    """Yield the names of the definitions to which a part of the document refers."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(PREFIX)
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def main() -> int:
    """Record the document. Return the exit code."""
    document = reachable(json.load(sys.stdin))
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{RECORDED}: Kubernetes {document['info']['version']}, {len(document['components']['schemas'])} schemas")
    return 0


if __name__ == "__main__":
    sys.exit(main())
