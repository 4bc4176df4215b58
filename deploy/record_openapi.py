"""Record what the full definition needs of an API server's OpenAPI document: the definitions reached from its roots.

kubectl get --raw /openapi/v3/api/v1 | python deploy/record_openapi.py

In: the document, on standard input. Out: `deploy/openapi/core-v1.json`. A field that a newer Kubernetes has is missing
in the field tables too (`gotypes/kubernetes.json` of the runtime, `api/gotypes.json` of the product): then
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
    """Return the document with what `ROOTS` refer to, directly and by others, and nothing else."""
    definitions = document["components"]["schemas"]
    found: set[str] = set()
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += references(definitions[name])
    kept = {name: definitions[name] for name in sorted(found)}
    return {"openapi": document["openapi"], "info": document["info"], "components": {"schemas": kept}}


def references(value: JSON) -> Iterator[str]:
    """Yield the names of the definitions that a part of the document refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(PREFIX)
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def main() -> int:
    """Record; return the exit code."""
    kept = reachable(json.load(sys.stdin))
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{RECORDED}: Kubernetes {kept['info']['version']}, {len(kept['components']['schemas'])} definitions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
