"""Generates `docs/reference/conformance.md` from the table of differences: `python -m tests.conformance.document`."""

from testkit.repository import ROOT
from tests.conformance.refused import TABLE

PAGE = ROOT / "docs/reference/conformance.md"

HEAD = """# Conformance

This page explains how the embedded cluster is compared with Kubernetes. Tests send the same requests to it and to Kubernetes 1.36, and compare
the responses.

| part | compared with | how |
|---|---|---|
| API server | kube-apiserver | the same requests to both: status codes, reasons, messages, causes, whole objects with their `managedFields`, generations, the order of watch events; picked by hand, and generated |
| StatefulSet controller, garbage collector, evictions by taints | kube-controller-manager | the same scenarios on both: all objects when they are at rest, and the order of pods where it is fixed |
| both, by `kubectl` | the same kubectl on a control plane with kwok | get, apply, diff, patch, scale, label, annotate, replace, describe, delete, wait, rollout, explain, api-resources, auth, create, cordon; logs, attach, exec, port-forward on the embedded cluster only |

```bash
pytest packages/localkube/tests/conformance tests/kubernetes/kubectl    # LWS_CONTROLPLANE_ASSETS=FOLDER uses built binaries
```

The comparison ignores UIDs, times, ages, continue tokens, generated suffixes and the order of causes. resourceVersions are compared by their
rank.

## What differs

Each line is a pattern in `packages/localkube/tests/conformance/refused.py` or `refusedwords.py`; any other difference fails the tests.

| here | why |
|---|---|
"""

TAIL = """
## Limits

| of | here | there |
|---|---|---|
| objects and lists in one another, in JSON and YAML | 100: all that descends into them is safe; the largest definitions in use have about 60 | 10,000 |
| a field set in `managedFields` | 95 levels; what is deeper is owned as a whole, so that the object can be sent back | none |
| `pattern` in a definition | the syntax of RE2 without scripts of Unicode (`\\p{Greek}`), at most 5,000 instructions; matched in linear time | RE2 |
| matching one value with a `pattern` | about a second: a value that takes longer is refused as too long | none |

## kubectl

| asked for | answer |
|---|---|
| `kubectl port-forward` | served over WebSockets, as kubectl speaks since 1.31; also of a Service: its `targetPort` is followed, unless it is headless, as on any cluster |
| `kubectl attach` | whole lines of output from then on; no standard input, as containers have none here |
| `kubectl debug` | 501, with the name of what is not served |
| `kubectl create` of a kind that is not read in protobuf (Deployment, Job, Role …) | 415 or 404 |
| `kubectl top` | there is no metrics API |
| `kubectl explain` | LeaderWorkerSets and kinds of CRDs with the descriptions of their definitions; of built-in kinds and their types one line, and fields without descriptions |
"""


def build() -> str:
    """Return the page."""
    rows = [f"| {one.what} | {one.why} |" for one in TABLE]
    return HEAD + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(build())
