"""The controllers of the embedded Kubernetes, which are clients of its API server like any other.

`composition.py` runs them all. Each has pure modules that decide, and a thin driver that observes: `garbage/`,
`scheduler/`, `statefulset/`, `volumes/`. Those of `nodes/`, `namespaces.py` and `endpoints.py` are small enough to be
both. All their writes are actions of plans (`kuberuntime/plan.py`), performed by the executor.
"""
