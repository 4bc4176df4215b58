"""The controllers of the embedded cluster: clients of its API server like any other.

`composition.py` runs them all. Each decides in pure modules and acts in a thin driver: `statefulset/`, `garbage/`,
`scheduler/`, `claims.py` with `volumebinder.py`; `namespaces.py`, `endpoints.py`, `podgc.py`, `nodes.py` are small
enough to be both.
"""
