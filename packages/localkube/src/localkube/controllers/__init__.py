"""Implements the controllers of the embedded cluster, which use its API server like other clients.

`controllermanager.py` runs all controllers. Most have pure modules that decide, and a thin driver that observes: `garbage/`,
`scheduler/`, `statefulset/`, `volumes/`. The small controllers in `nodes/`, `namespaces.py` and `endpointslices.py` combine
both. All writes are actions in plans (`kuberuntime/plan.py`), which the executor performs.
"""
