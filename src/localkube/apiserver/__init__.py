"""The Kubernetes API over SQLite.

`server.py` answers requests: `routes.py` finds the verb (`verbs/`), `registry.py` the kind (`builtin/`, `custom/`). A write
passes `admission/`, objects live in `storage/`, `forms/` and `patch/` read and show them, `front/` lets clients in,
`about/` answers what is not about objects.
"""
